//! The end of a forked child.

/// Ends the process when dropped, so also if what it does unwinds: the parent's code on its stack is
/// not the child's to run.
pub struct Exit(pub libc::c_int);

impl Drop for Exit {
    fn drop(&mut self) {
        // SAFETY: ends the process without running anything of the parent's.
        unsafe { libc::_exit(self.0) }
    }
}
