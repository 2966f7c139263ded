//! The modules of the crate are layers: each uses only those below it.
//!
//! Two things are looked at in the sources: paths from the crate's root on, and calls of methods that a
//! module adds to a type of another one (`impl Vm` in `reclaim`, say), which no path shows.
//! Unit tests may use anything.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The modules, from the bottom up.
const LAYERS: &[&str] = &[
    // Words: requests and refusals.
    "prot",
    "flags",
    "usage",
    "error",
    // The kernel's heap and locks; a store in memory.
    "heap",
    "lock",
    "pager",
    // PV entries, and the differences between systems.
    "pv",
    "policy",
    "invalidation",
    "swap",
    "best",
    // Memory.
    "frames",
    "page",
    "vm",
    // Mappings.
    "object",
    "tree",
    "pmap",
    // Users of all the others.
    "reclaim",
    "file",
    "space",
    "proc",
    "debug",
];

/// Types to which modules above their own add methods, and the names of their variables.
const OPEN_TYPES: &[(&str, &str)] = &[("Vm", "vm"), ("Object", "object"), ("Pmap", "pmap")];

/// A source file: the module it is of, and its code without comments and unit tests.
struct Source {
    module: String,
    code: String,
}

impl Source {
    fn new(path: &str, text: &str) -> Self {
        let module = path.split('/').next().unwrap_or(path);
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or("");
        let code = text
            .lines()
            .map(|line| line.split("//").next().unwrap_or(""));
        let mut code = code.collect::<Vec<_>>().join("\n");
        let module = module.trim_end_matches(".rs").to_owned();
        if path == format!("{module}.rs") || path == format!("{module}/mod.rs") {
            code = code.replace("super::", "crate::");
        }
        Source { module, code }
    }

    /// The modules that paths of the code begin with. Paths in braces are not read, and no module is called "".
    fn uses(&self) -> Vec<&str> {
        self.code.split("crate::").skip(1).map(word).collect()
    }

    /// The methods that the module adds to `type_name`, which is another's.
    fn adds_to(&self, type_name: &str) -> Vec<&str> {
        let mut found = Vec::new();
        let mut is_inside = false;
        for line in self.code.lines() {
            if line.starts_with("impl") {
                let of = line.split_once("> ").map_or("", |(_, of)| of);
                is_inside = !line.contains(" for ") && word(of) == type_name;
            }
            if let Some((_, name)) = line.split_once("fn ")
                && is_inside
                && line.starts_with("    ")
                && !line.starts_with("     ")
            {
                found.push(word(name));
            }
        }
        found
    }

    /// Whether the code calls `method` of a variable called `name`, or of `self` in the home of
    /// the type.
    fn calls(&self, name: &str, is_home: bool, method: &str) -> bool {
        let callers = [format!("{name}.{method}("), format!("{name}().{method}(")];
        let own = format!("self.{method}(");
        callers.iter().any(|call| self.code.contains(call)) || is_home && self.code.contains(&own)
    }
}

/// The identifier that `text` begins with.
fn word(text: &str) -> &str {
    let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    &text[..end.unwrap_or(text.len())]
}

/// All sources but the crate's root and unit tests.
fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            let name = path.strip_prefix(&root).expect("in the root");
            let name = name.to_str().expect("a plain name").to_owned();
            let is_test = name.ends_with("/tests.rs") || name.ends_with("/model.rs");
            if path.is_dir() {
                folders.push(path);
            } else if name != "lib.rs" && !is_test {
                let text = fs::read_to_string(&path).expect("a source");
                found.push(Source::new(&name, &text));
            }
        }
    }
    found
}

/// Uses from below, as `user -> used`, with the method if it is one.
fn violations(sources: &[Source]) -> Vec<String> {
    let ranks: BTreeMap<&str, usize> = LAYERS.iter().copied().zip(0..).collect();
    let rank = |module: &str| ranks.get(module).copied();
    let mut wrong = Vec::new();
    for source in sources {
        let Some(own) = rank(&source.module) else {
            wrong.push(format!("{} has no layer", source.module));
            continue;
        };
        for used in source.uses() {
            if rank(used).is_none_or(|used| used > own) {
                wrong.push(format!("{} -> {used}", source.module));
            }
        }
    }
    for &(type_name, variable) in OPEN_TYPES {
        let home = variable;
        let at_home = |source: &&Source| source.module == home;
        let own: Vec<_> = sources
            .iter()
            .filter(at_home)
            .flat_map(|source| source.adds_to(type_name))
            .collect();
        for upper in sources {
            for method in upper.adds_to(type_name) {
                let is_below = |lower: &&Source| rank(&lower.module) < rank(&upper.module);
                let calls = |lower: &&Source| lower.calls(variable, lower.module == home, method);
                if !own.contains(&method) {
                    let users = sources.iter().filter(is_below).filter(calls);
                    let arrow =
                        |user: &Source| format!("{} -> {} ({method})", user.module, upper.module);
                    wrong.extend(users.map(arrow));
                }
            }
        }
    }
    wrong
}

#[test]
fn modules_use_only_those_below() {
    let sources = sources();
    for layer in LAYERS {
        let is_there = sources.iter().any(|source| source.module == *layer);
        assert!(is_there, "no module {layer}");
    }
    assert_eq!(violations(&sources), Vec::<String>::new());
}

#[test]
fn a_wrong_path_is_noticed() {
    let line = "use crate::space::Limit; // crate::proc\n";
    let wrong = [Source::new("error.rs", line)];
    assert_eq!(violations(&wrong), ["error -> space"]);
    let nowhere = [Source::new("pmap/flush.rs", "fn f(_: crate::Hold) {}")];
    assert_eq!(violations(&nowhere), ["pmap -> Hold"]);
    let relative = [Source::new("pmap/mod.rs", "use super::space::Space;\n")];
    assert_eq!(violations(&relative), ["pmap -> space"]);
    let grouped = [Source::new("pmap/mod.rs", "use crate::{space, tree};\n")];
    assert_eq!(violations(&grouped), ["pmap -> "]);
}

#[test]
fn a_call_of_a_method_from_above_is_noticed() {
    let upper = "impl<M: Platform, P: Policies<M>> Vm<M, P> {\n    pub fn reclaim(&self) {}\n}\n";
    let lower = "fn read(vm: &Vm) {\n    vm.reclaim();\n}\n";
    let sources = [
        Source::new("reclaim/scan.rs", upper),
        Source::new("object/fill.rs", lower),
        Source::new("space/map.rs", lower),
    ];
    assert_eq!(violations(&sources), ["object -> reclaim (reclaim)"]);
}
