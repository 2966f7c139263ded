//! Names of kernel functions, from kallsyms.

use crate::support::is_root;
use blazesym::MaybeDefault;
use blazesym::symbolize::source::{Kernel, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, BufRead, BufReader};

/// Names by address; `[kernel]` where there is none.
pub(crate) fn names(symbolizer: &Symbolizer, addresses: &BTreeSet<u64>) -> HashMap<u64, String> {
    let all: Vec<u64> = addresses.iter().copied().collect();
    // An image on disk need not be the running kernel's, so only kallsyms counts.
    let source = Kernel {
        vmlinux: MaybeDefault::None,
        debug_syms: false,
        ..Kernel::default()
    };
    let found = match all.as_slice() {
        [] => Vec::new(),
        all => symbolizer
            .symbolize(&Source::Kernel(source), Input::AbsAddr(all))
            .unwrap_or_default(),
    };
    let name = |symbol: Option<&Symbolized>| match symbol {
        Some(Symbolized::Sym(symbol)) => plain(&symbol.name).to_owned(),
        _ => "[kernel]".to_owned(),
    };
    let named = all.iter().enumerate();
    named
        .map(|(index, &address)| (address, name(found.get(index))))
        .collect()
}

/// Why names are missing, and how to allow them.
pub(crate) fn missing() -> Option<String> {
    const WHAT: &str = "names of kernel functions";
    match readable() {
        Ok(true) => None,
        Ok(false) => {
            let who = if is_root() { "" } else { "run as root, or " };
            Some(format!(
                "{WHAT}: /proc/kallsyms hides them; {who}sysctl kernel.kptr_restrict=0"
            ))
        }
        Err(error) => Some(format!("{WHAT}: /proc/kallsyms: {error}")),
    }
}

/// Returns true if kallsyms shows addresses; where they are hidden all are zero.
fn readable() -> io::Result<bool> {
    let mut lines = BufReader::new(File::open("/proc/kallsyms")?).lines();
    let first: Vec<String> = lines.by_ref().take(16).collect::<io::Result<_>>()?;
    Ok(first
        .iter()
        .any(|line| !line.starts_with("0000000000000000")))
}

/// A function's name as in the source, without the suffixes that the compiler gives to variants.
pub(crate) fn plain(name: &str) -> &str {
    const VARIANTS: [&str; 4] = [".isra.", ".constprop.", ".part.", ".cold"];
    let ends = VARIANTS.iter().filter_map(|variant| name.find(variant));
    &name[..ends.min().unwrap_or(name.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_of_a_function_are_the_function() {
        assert_eq!(plain("rwsem_wake.isra.0"), "rwsem_wake");
        assert_eq!(plain("f.constprop.0.cold"), "f");
        assert_eq!(plain("__vm_munmap"), "__vm_munmap");
    }
}
