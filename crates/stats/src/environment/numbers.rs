//! Checks that /proc numbers processes as this process's system calls do.

use std::io;
use std::path::Path;

/// Succeeds if numbers of processes in /proc are those that this process's system calls take. They
/// are not where /proc is missing, or was mounted in another PID namespace: there the same numbers
/// are other processes.
pub fn numbers_are_ours() -> io::Result<()> {
    numbers_in(Path::new("/proc"), std::process::id())
}

fn numbers_in(proc: &Path, own: u32) -> io::Result<()> {
    let link = proc.join("self");
    let shown = std::fs::read_link(&link);
    let shown = shown.map_err(|error| {
        let text = format!(
            "{}: {error}; mount it: `mount -t proc proc /proc`",
            link.display()
        );
        io::Error::new(error.kind(), text)
    })?;
    if shown.as_os_str() == own.to_string().as_str() {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "{} is of another PID namespace, in which process {own} is {}; \
         mount this one's: `mount -t proc proc /proc`",
        proc.display(),
        shown.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proc_of_others_is_refused_and_named() {
        let root = tempfile::tempdir().unwrap();
        let said = |own| numbers_in(root.path(), own).unwrap_err().to_string();
        assert!(said(7).contains("self: No such file"), "{}", said(7));
        std::os::unix::fs::symlink("815", root.path().join("self")).unwrap();
        assert!(numbers_in(root.path(), 815).is_ok());
        assert!(
            said(7).contains("another PID namespace, in which process 7 is 815"),
            "{}",
            said(7)
        );
        numbers_are_ours().expect("a test has its own /proc");
    }
}
