//! Names of variables in programs and libraries.

use crate::unwind::Word;
use object::{Object, ObjectSymbol, ReadCache, SymbolKind};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;

/// Each word's name: the variable, plus the offset if the word lies inside one; without a symbol,
/// the address.
pub(crate) fn names(words: impl Iterator<Item = Word>, files: &[String]) -> HashMap<Word, String> {
    let mut variables: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
    let mut names = HashMap::new();
    for word in words {
        match word {
            Word::Variable { file, address } => {
                variables.entry(file).or_default().insert(address);
            }
            Word::At(address) => {
                names.insert(word, format!("at {address:#x}"));
            }
        }
    }
    for (file, addresses) in variables {
        let path = &files[file as usize];
        let found = look_up(path, &addresses).unwrap_or_default();
        let short = path.rsplit('/').next().unwrap_or(path);
        for address in addresses {
            let name = found.get(&address).cloned();
            let name = name.unwrap_or_else(|| format!("at {address:#x} of {short}"));
            names.insert(Word::Variable { file, address }, name);
        }
    }
    names
}

/// The variable in the name of a word; none if it lies in no variable that has a name.
pub(crate) fn variable(name: &str) -> Option<&str> {
    let is_named = !name.starts_with("at 0x");
    is_named.then(|| name.split_once('+').map_or(name, |(variable, _)| variable))
}

/// The names of those addresses for which the file at `path` has symbols.
fn look_up(path: &str, addresses: &BTreeSet<u64>) -> Option<HashMap<u64, String>> {
    let data = ReadCache::new(File::open(path).ok()?);
    let file = object::File::parse(&data).ok()?;
    let mut names = HashMap::new();
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        if symbol.kind() != SymbolKind::Data || symbol.size() == 0 {
            continue;
        }
        let start = symbol.address();
        for &address in addresses.range(start..start + symbol.size()) {
            let Ok(name) = symbol.name() else { continue };
            let name = format!("{:#}", rustc_demangle::demangle(name));
            names
                .entry(address)
                .or_insert_with(|| match address - start {
                    0 => name,
                    distance => format!("{name}+{distance}"),
                });
        }
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Thread;
    use crate::tasks::{Family, Files};
    use crate::unwind::Unwinder;
    use std::sync::atomic::AtomicU64;

    static SOUGHT_FOR: [AtomicU64; 2] = [const { AtomicU64::new(1) }; 2];

    #[test]
    fn a_variable_has_its_name_and_what_is_none_its_address() {
        let mut files = Files::default();
        let own = std::process::id();
        let family = Family::scan(&[own], &mut files);
        let process = family
            .watched(Thread { pid: own, tid: own })
            .expect("this process");
        let heap = Box::new(1_u64);
        let addresses = [
            (&raw const SOUGHT_FOR[0]).addr(),
            (&raw const SOUGHT_FOR[1]).addr(),
            (&raw const *heap).addr(),
        ];
        let mut unwinder = Unwinder::default();
        let words = addresses.map(|at| unwinder.word(&process.image, &files, at as u64));
        let names = names(words.into_iter(), files.names());
        let of = |at: usize| names[&words[at]].as_str();
        assert!(of(0).ends_with("SOUGHT_FOR"), "{names:?}");
        assert!(of(1).ends_with("SOUGHT_FOR+8"), "{names:?}");
        assert_eq!(variable(of(1)), variable(of(0)));
        assert_eq!(of(2), format!("at {:#x}", addresses[2]));
        assert_eq!(variable(of(2)), None);
    }
}
