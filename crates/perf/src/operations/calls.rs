//! The system calls that are traced.

use std::ffi::CString;

/// A system call, by what it does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Map,
    Unmap,
    Protect,
    Advise,
    Remap,
    Break,
    Lock,
    Unlock,
    Sync,
    InCore,
    Attach,
    Detach,
    /// It works on memory that its arguments do not tell.
    Other,
    /// Births, programs and ends: other events tell what they do, and the call that this is the
    /// kernel's time.
    Task,
}

/// The calls, the most frequent ones first: the kernel's filter asks in this order.
const CALLS: &[(i64, Kind)] = &[
    (libc::SYS_mmap, Kind::Map),
    (libc::SYS_munmap, Kind::Unmap),
    (libc::SYS_mprotect, Kind::Protect),
    (libc::SYS_brk, Kind::Break),
    (libc::SYS_madvise, Kind::Advise),
    (libc::SYS_mremap, Kind::Remap),
    (libc::SYS_msync, Kind::Sync),
    (libc::SYS_mincore, Kind::InCore),
    (libc::SYS_shmat, Kind::Attach),
    (libc::SYS_shmdt, Kind::Detach),
    (libc::SYS_mlock, Kind::Lock),
    (libc::SYS_munlock, Kind::Unlock),
    (libc::SYS_mlockall, Kind::Other),
    (libc::SYS_munlockall, Kind::Other),
    (libc::SYS_remap_file_pages, Kind::Other),
    (libc::SYS_mlock2, Kind::Lock),
    (libc::SYS_pkey_mprotect, Kind::Protect),
    (libc::SYS_process_madvise, Kind::Other),
    (libc::SYS_clone, Kind::Task),
    (libc::SYS_clone3, Kind::Task),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_fork, Kind::Task),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_vfork, Kind::Task),
    (libc::SYS_execve, Kind::Task),
    (libc::SYS_execveat, Kind::Task),
    (libc::SYS_exit, Kind::Task),
    (libc::SYS_exit_group, Kind::Task),
];

/// The kind of the call `number`; none if it is not traced.
pub(super) fn kind(number: i64) -> Option<Kind> {
    let found = CALLS.iter().find(|(call, _)| *call == number);
    found.map(|&(_, kind)| kind)
}

/// Returns true if the call executes a program.
pub(super) fn executes(number: i64) -> bool {
    matches!(number, libc::SYS_execve | libc::SYS_execveat)
}

/// The kernel's filter that lets only these calls through.
pub(super) fn filter() -> CString {
    let terms: Vec<String> = CALLS.iter().map(|(id, _)| format!("id == {id}")).collect();
    CString::new(terms.join(" || ")).expect("digits and words")
}
