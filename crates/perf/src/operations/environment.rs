//! The computer and its settings.

use recording::Environment;
use std::fs;

/// Beginnings of names of variables that set an allocator.
const VARIABLES: &[&str] = &[
    "MALLOC_",
    "GLIBC_TUNABLES",
    "LD_PRELOAD",
    "MIMALLOC_",
    "_RJEM_MALLOC_CONF",
    "JE_MALLOC_CONF",
    "TCMALLOC_",
];

/// The environment of a recording of the processes `roots`.
pub(super) fn environment(roots: &[u32]) -> Environment {
    let number = |path: &str| text(path).parse().unwrap_or_default();
    let cpus = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let cpus = stats::environment::listed_cpus(cpus.trim()).unwrap_or_default();
    let mut variables: Vec<(String, String)> = roots.iter().flat_map(|&pid| of(pid)).collect();
    variables.sort();
    variables.dedup();
    Environment {
        kernel: text("/proc/sys/kernel/osrelease"),
        cpus: cpus.len() as u32,
        huge_pages: chosen(&text("/sys/kernel/mm/transparent_hugepage/enabled")),
        overcommit: number("/proc/sys/vm/overcommit_memory") as u32,
        max_map_count: number("/proc/sys/vm/max_map_count"),
        variables,
    }
}

fn text(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.trim().to_owned()
}

/// The word in brackets.
fn chosen(words: &str) -> String {
    let after = words.split_once('[').map_or("", |(_, after)| after);
    after.split(']').next().unwrap_or_default().to_owned()
}

/// The variables of a process that set an allocator.
fn of(pid: u32) -> Vec<(String, String)> {
    let bytes = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let all = bytes.split(|&byte| byte == 0).map(String::from_utf8_lossy);
    let pairs = all.filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        let sets = VARIABLES.iter().any(|start| name.starts_with(start));
        sets.then(|| (name.to_owned(), value.to_owned()))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_computer_is_described() {
        let found = environment(&[std::process::id()]);
        assert!(found.cpus > 0 && found.max_map_count > 0, "{found:?}");
        assert!(!found.kernel.is_empty(), "{found:?}");
        assert_eq!(chosen("always [madvise] never"), "madvise");
    }
}
