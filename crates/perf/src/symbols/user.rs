//! Names of functions of programs and libraries.
//!
//! By file and offset, not by process: most children of a shell are dead by now.

use super::Function;
use crate::tasks::Place;
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The functions at each place, inlined ones before those they are inlined in;
/// `[file]` where there is no name.
pub(crate) fn names(
    symbolizer: &Symbolizer,
    places: &BTreeMap<u32, BTreeSet<u64>>,
    files: &[String],
) -> HashMap<Place, Vec<Function>> {
    let mut names = HashMap::new();
    for (&file, offsets) in places {
        let path = &files[file as usize];
        let offsets: Vec<u64> = offsets.iter().copied().collect();
        let found = look_up(symbolizer, path, &offsets);
        for (index, offset) in offsets.into_iter().enumerate() {
            let functions = functions(found.get(index)).unwrap_or_else(|| vec![module(path)]);
            let system = is_system(path);
            let known = functions.into_iter().map(|name| Function { name, system });
            names.insert(Place { file, offset }, known.collect());
        }
    }
    names
}

/// One symbol an offset; nothing if the file can not be read.
fn look_up<'a>(symbolizer: &'a Symbolizer, path: &str, offsets: &[u64]) -> Vec<Symbolized<'a>> {
    // The kernel's (`[vdso]`) or nobody's (`//anon`).
    if !path.starts_with('/') || path.starts_with("//") {
        return Vec::new();
    }
    let input = Input::FileOffset(offsets);
    let with = |debug_syms| {
        Source::Elf(Elf {
            debug_syms,
            ..Elf::new(path)
        })
    };
    let found = symbolizer.symbolize(&with(true), input);
    // Debug information that can not be read must not hide the symbols beside it.
    found
        .or_else(|_| symbolizer.symbolize(&with(false), input))
        .unwrap_or_default()
}

fn functions(symbol: Option<&Symbolized>) -> Option<Vec<String>> {
    let symbol = symbol?.as_sym()?;
    let inlined = symbol
        .inlined
        .iter()
        .rev()
        .map(|inlined| inlined.name.to_string());
    let mut functions: Vec<String> = inlined.chain([symbol.name.to_string()]).collect();
    // A function of which a part is inlined in the rest is one.
    functions.dedup();
    Some(functions)
}

/// What stands for an address where nothing is known to be.
pub(crate) fn unknown() -> Function {
    Function {
        name: "[unknown]".to_owned(),
        system: true,
    }
}

/// Whether a file is the C library, the loader or the kernel's.
fn is_system(path: &str) -> bool {
    const SYSTEM: [&str; 7] = [
        "libc.",
        "libc-",
        "libpthread",
        "ld-",
        "ld.",
        "[vdso]",
        "[vsyscall]",
    ];
    let name = path.rsplit('/').next().unwrap_or(path);
    SYSTEM.iter().any(|start| name.starts_with(start))
}

/// A file's name in brackets.
fn module(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    format!("[{}]", name.trim_start_matches('[').trim_end_matches(']'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_c_library_is_the_systems() {
        assert!(is_system("/usr/lib/x86_64-linux-gnu/libc.so.6"));
        assert!(is_system("/lib64/ld-linux-x86-64.so.2") && is_system("[vdso]"));
        assert!(!is_system("/usr/bin/ld") && !is_system("/usr/lib/libcurl.so.4"));
    }

    #[test]
    fn a_place_without_a_name_is_its_file() {
        assert_eq!(module("/lib/libc.so.6"), "[libc.so.6]");
        assert_eq!(module("[vdso]"), "[vdso]");
        assert_eq!(module("//anon"), "[anon]");
    }
}
