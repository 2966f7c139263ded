//! The limit on open files.

/// Raises the limit as far as this process may: threads that are sampled one by one take a file for
/// each CPU.
pub(super) fn raise_limit() {
    // SAFETY: both calls read or write only `limit`, a local variable.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            // If it fails, opening a file says so.
            let _ = libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}
