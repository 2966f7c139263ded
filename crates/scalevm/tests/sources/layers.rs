//! The modules of some crates are layers: each uses only those below it.
//!
//! Two things are looked at in the sources: paths from the crate's root on, and calls of methods
//! that a module adds to a type of another one (`impl Vm` in `reclaim`, say), which no path shows.
//! Unit tests, and the crate's root, may use anything.

use super::support::tree::{files, root};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// A crate whose modules are layers.
struct Layered {
    /// Its sources, from the repository's root.
    sources: &'static str,
    /// The modules, from the bottom up.
    layers: &'static [&'static str],
    /// Types to which modules above their own add methods.
    open: &'static [Open],
}

/// A type to which modules above its own add methods, its module, and the name of its variables.
type Open = (&'static str, &'static str, &'static str);

const CRATES: &[Layered] = &[SYNC, VM, BENCH, C, KERNEL, COMMAND];

const SYNC: Layered = Layered {
    sources: "crates/sync/src",
    layers: &[
        // The contract of locks, and what a task knows of them.
        "padded",
        "percpu",
        "raw",
        "ecosystem",
        "locals",
        "effort",
        // Where tasks sleep.
        "off_cpu",
        "turnstile",
        "sleepq",
        // Locks, and data behind them.
        "spin",
        "blocking",
        "adaptive",
        "obm",
        "rwlock",
        "mutex",
        // Without locks.
        "counter",
        "deferred",
        "epoch",
        "hazard",
        // Users of all the others.
        "watch",
        "debug",
    ],
    open: &[],
};

const VM: Layered = Layered {
    sources: "crates/vm/src",
    layers: &[
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
        "system",
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
        "linux",
        "proc",
        "debug",
    ],
    open: &[
        ("Vm", "vm", "vm"),
        ("Object", "object", "object"),
        ("Pmap", "pmap", "pmap"),
    ],
};

const BENCH: Layered = Layered {
    sources: "crates/bench/src",
    layers: &[
        "harness",
        "points",
        "on",
        // Tasks, and the user's own workloads.
        "tasks",
        "own",
        // The systems.
        "os",
        "inside",
        "kernel",
        "ours",
        "simulated",
        "system",
        // Users of all the others.
        "delays",
        "profiling",
        "bin",
    ],
    open: &[],
};

const C: Layered = Layered {
    sources: "crates/c/src",
    layers: &[
        // The thread.
        "errno", "words", "tsan", // The machine, and objects on it.
        "process", "object", // The objects.
        "tas", "ticket", "conbo", "mcs", "clh", "k42", "mutex", "adaptive", "rwlock", "counter",
        "epoch",
    ],
    open: &[],
};

const KERNEL: Layered = Layered {
    sources: "kernel/kernel/src",
    layers: &[
        // Words, and the kernel's heap.
        "errno",
        "version",
        "heap",
        "single",
        // What all others use.
        "affinity",
        "users",
        "caller",
        "disturbed",
        "system",
        "event_count",
        "timers",
        "swap",
        "profile",
        // Programs, files, and processes, which have both.
        "program",
        "fs",
        "process",
        // What processes share.
        "terminal",
        "numbered",
        "segments",
        "semaphores",
        "messages",
        // Users of all the others.
        "proc",
        "abi",
        // Examples of their own.
        "conformance",
        "stale",
    ],
    open: &[
        ("Thread", "process", "thread"),
        ("Process", "process", "process"),
    ],
};

const COMMAND: Layered = Layered {
    sources: "crates/scalevm/src",
    layers: &["stdout", "output", "cli", "commands"],
    open: &[],
};

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
        let code = code.collect::<Vec<_>>().join("\n");
        // Goes up to the crate's root.
        let depth = path.trim_end_matches("/mod.rs").split('/').count();
        Source {
            module: module.trim_end_matches(".rs").to_owned(),
            code: code.replace(&"super::".repeat(depth), "crate::"),
        }
    }

    /// The modules that paths of the code begin with. Paths in braces are not read, and no module
    /// is called "".
    fn uses(&self) -> Vec<&str> {
        self.code.split("crate::").skip(1).map(word).collect()
    }

    /// The methods that the module adds to `type_name`, which is another's.
    fn adds_to(&self, type_name: &str) -> Vec<&str> {
        let mut found = Vec::new();
        let mut is_inside = false;
        for line in self.code.lines() {
            if let Some(of) = line.strip_prefix("impl") {
                let of = of.split_once("> ").map_or(of.trim_start(), |(_, of)| of);
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

    /// Returns true if the code calls `method` of a variable of the type, or of `self` in its home.
    fn calls(&self, (_, home, variable): Open, method: &str) -> bool {
        let of = |variable: &str| self.code.contains(&format!("{variable}.{method}("));
        of(variable) || of(&format!("{variable}()")) || self.module == home && of("self")
    }
}

/// The identifier that `text` begins with.
fn word(text: &str) -> &str {
    let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    &text[..end.unwrap_or(text.len())]
}

impl Layered {
    /// All sources but the crate's root and unit tests.
    fn read(&self) -> Vec<Source> {
        let root = root().join(self.sources);
        let source = |path: PathBuf| {
            let name = path.strip_prefix(&root).expect("in the root");
            let name = name.to_str().expect("a plain name");
            let ends = ["/tests.rs", "/model.rs"];
            let is_test = name.contains("/tests/") || ends.iter().any(|it| name.ends_with(it));
            if is_test || name == "lib.rs" || name == "main.rs" {
                return None;
            }
            let text = fs::read_to_string(&path).expect("a source");
            Some(Source::new(name, &text))
        };
        files(&root).into_iter().filter_map(source).collect()
    }

    /// Uses from below, as `user -> used`, with the method if it is one.
    fn violations(&self, sources: &[Source]) -> Vec<String> {
        let ranks: BTreeMap<&str, usize> = self.layers.iter().copied().zip(0..).collect();
        let rank = |module: &str| ranks.get(module).copied();
        // The path to an exported macro does not name its module.
        let makes = |macro_name: &str| {
            let head = format!("macro_rules! {macro_name} ");
            sources.iter().find(|source| source.code.contains(&head))
        };
        let mut wrong = Vec::new();
        for source in sources {
            let Some(own) = rank(&source.module) else {
                wrong.push(format!("{} has no layer", source.module));
                continue;
            };
            for used in source.uses() {
                let used_rank = rank(used).or_else(|| rank(&makes(used)?.module));
                if used_rank.is_none_or(|used| used > own) {
                    wrong.push(format!("{} -> {used}", source.module));
                }
            }
        }
        for &open in self.open {
            let (name, home, _) = open;
            let at_home = sources.iter().filter(|source| source.module == home);
            let own: Vec<_> = at_home.flat_map(|source| source.adds_to(name)).collect();
            for upper in sources {
                let mut added = upper.adds_to(name);
                added.retain(|method| !own.contains(method));
                for method in added {
                    let is_below = |lower: &&Source| rank(&lower.module) < rank(&upper.module);
                    let calls = |lower: &&Source| lower.calls(open, method);
                    let users = sources.iter().filter(is_below).filter(calls);
                    let arrow =
                        |user: &Source| format!("{} -> {} ({method})", user.module, upper.module);
                    wrong.extend(users.map(arrow));
                }
            }
        }
        wrong
    }
}

#[test]
fn modules_use_only_those_below() {
    for layered in CRATES {
        let sources = layered.read();
        for layer in layered.layers {
            let is_there = sources.iter().any(|source| source.module == *layer);
            assert!(is_there, "{}: no module {layer}", layered.sources);
        }
        let wrong = layered.violations(&sources);
        assert_eq!(wrong, Vec::<String>::new(), "{}", layered.sources);
    }
}

#[test]
fn a_wrong_path_is_noticed() {
    let wrong = |path, text| VM.violations(&[Source::new(path, text)]);
    let line = "use crate::space::Limit; // crate::proc\n";
    assert_eq!(wrong("error.rs", line), ["error -> space"]);
    let nowhere = "fn f(_: crate::Hold) {}";
    assert_eq!(wrong("pmap/flush.rs", nowhere), ["pmap -> Hold"]);
    let relative = "use super::space::Space;\n";
    assert_eq!(wrong("pmap/mod.rs", relative), ["pmap -> space"]);
    let farther = "use super::super::space::Space;\nuse super::space;\n";
    assert_eq!(wrong("pmap/flush.rs", farther), ["pmap -> space"]);
    let grouped = "use crate::{space, tree};\n";
    assert_eq!(wrong("pmap/mod.rs", grouped), ["pmap -> "]);
}

#[test]
fn a_macro_is_of_the_module_that_makes_it() {
    let uses = Source::new("locals.rs", "pub use crate::lock_class;\n");
    let makes = Source::new("watch/class.rs", "macro_rules! lock_class {\n");
    assert_eq!(SYNC.violations(&[uses, makes]), ["locals -> lock_class"]);
}

#[test]
fn a_call_of_a_method_from_above_is_noticed() {
    let upper = "impl<S: System> Vm<S> {\n    pub fn reclaim(&self) {}\n}\n";
    let lower = "fn read(vm: &Vm) {\n    vm.reclaim();\n}\n";
    let sources = [
        Source::new("reclaim/scan.rs", upper),
        Source::new("object/fill.rs", lower),
        Source::new("space/map.rs", lower),
    ];
    assert_eq!(VM.violations(&sources), ["object -> reclaim (reclaim)"]);
    let upper = "impl Thread {\n    pub fn open(&self) {}\n}\n";
    let lower = "fn run(thread: &Thread) {\n    thread.open();\n}\n";
    let sources = [
        Source::new("abi/file.rs", upper),
        Source::new("process/thread.rs", lower),
    ];
    assert_eq!(KERNEL.violations(&sources), ["process -> abi (open)"]);
}
