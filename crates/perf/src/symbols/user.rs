//! Names of functions in programs and libraries.
//!
//! Looked up by file and offset, not by process: most children of a shell are dead by then.

use super::Function;
use crate::tasks::{Place, is_system};
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Symbolized, Symbolizer};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The functions at each place, inlined ones before their callers; `[file]` where there is no name.
pub(crate) fn names(
    symbolizer: &Symbolizer,
    places: &BTreeMap<u32, BTreeSet<u64>>,
    files: &[String],
) -> HashMap<Place, Vec<Function>> {
    let mut names = HashMap::new();
    for (&file, offsets) in places {
        let path = &files[file as usize];
        let offsets: Vec<u64> = offsets.iter().copied().collect();
        let system = is_system(path);
        let found = look_up(symbolizer, path, &offsets);
        for (index, offset) in offsets.into_iter().enumerate() {
            let mut known = functions(found.get(index)).unwrap_or_else(|| vec![module(path)]);
            known
                .iter_mut()
                .for_each(|function| function.system = system);
            names.insert(Place { file, offset }, known);
        }
    }
    names
}

/// The symbol at each offset; nothing if the file cannot be read.
fn look_up<'a>(symbolizer: &'a Symbolizer, path: &str, offsets: &[u64]) -> Vec<Symbolized<'a>> {
    // The kernel's (`[vdso]`) or no file (`//anon`).
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
    // Unreadable debug information must not hide the symbol table.
    found
        .or_else(|_| symbolizer.symbolize(&with(false), input))
        .unwrap_or_default()
}

fn functions(symbol: Option<&Symbolized>) -> Option<Vec<Function>> {
    let symbol = symbol?.as_sym()?;
    let inlined = symbol.inlined.iter().rev();
    let inlined = inlined.map(|one| function(plain(&one.name), one.code_info.as_ref()));
    let own = function(&symbol.name, symbol.code_info.as_deref());
    let mut functions: Vec<Function> = inlined.chain([own]).collect();
    // A function that is partly inlined into its own rest is one.
    functions.dedup_by(|a, b| a.name == b.name);
    Some(functions)
}

fn function(name: &str, code: Option<&CodeInfo>) -> Function {
    let source = code.map(|code| code.to_path().to_string_lossy().into_owned());
    Function {
        name: name.to_owned(),
        source: source.unwrap_or_default(),
        line: code.and_then(|code| code.line).unwrap_or_default(),
        system: false,
    }
}

/// An inlined function's name without its type arguments, which may be longer than all the rest of
/// a stack.
fn plain(name: &str) -> &str {
    match name.find('<') {
        Some(end @ 1..) => &name[..end],
        _ => name,
    }
}

/// The function of an address outside everything known.
pub(crate) fn unknown() -> Function {
    Function {
        name: "[unknown]".to_owned(),
        system: true,
        ..Function::default()
    }
}

/// The function for callers that the kernel did not deliver.
pub(crate) fn cut() -> Function {
    Function {
        name: "[deeper than the kernel records]".to_owned(),
        ..unknown()
    }
}

/// A file's name in brackets.
pub(crate) fn module(path: &str) -> Function {
    let name = path.rsplit('/').next().unwrap_or(path);
    let name = format!("[{}]", name.trim_start_matches('[').trim_end_matches(']'));
    Function {
        name,
        ..Function::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_without_what_they_are_instantiated_with() {
        assert_eq!(plain("lock<alloc::sync::Arc<u64>>"), "lock");
        assert_eq!(plain("{closure#0}<()>"), "{closure#0}");
        assert_eq!(
            plain("<impl core::ops::Drop for X>"),
            "<impl core::ops::Drop for X>"
        );
    }

    #[test]
    fn a_place_without_a_name_is_its_file() {
        assert_eq!(module("/lib/libc.so.6").name, "[libc.so.6]");
        assert_eq!(module("[vdso]").name, "[vdso]");
        assert_eq!(module("//anon").name, "[anon]");
    }
}
