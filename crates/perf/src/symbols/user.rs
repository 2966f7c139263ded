//! Names of functions of programs and libraries.
//!
//! By file and offset, not by process: most children of a shell are dead by now.

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
) -> HashMap<Place, Vec<String>> {
    let mut names = HashMap::new();
    for (&file, offsets) in places {
        let path = &files[file as usize];
        let offsets: Vec<u64> = offsets.iter().copied().collect();
        let found = look_up(symbolizer, path, &offsets);
        for (index, offset) in offsets.into_iter().enumerate() {
            let functions = functions(found.get(index)).unwrap_or_else(|| vec![module(path)]);
            names.insert(Place { file, offset }, functions);
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

/// A file's name in brackets.
fn module(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    format!("[{}]", name.trim_start_matches('[').trim_end_matches(']'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_without_a_name_is_its_file() {
        assert_eq!(module("/lib/libc.so.6"), "[libc.so.6]");
        assert_eq!(module("[vdso]"), "[vdso]");
        assert_eq!(module("//anon"), "[anon]");
    }
}
