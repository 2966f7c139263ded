//! The calling task, for the parts below processes.

use crate::errno::Errno;

/// Answers for the calling task. A task that is no thread is never disturbed, and may write
/// everything.
pub trait Caller: Sync {
    /// Returns true if the task is a thread that has a signal to take, or whose process ends.
    fn is_disturbed(&self) -> bool;

    /// Calls `sleep`, in which the task sleeps, at a key if there is one, otherwise for a time.
    fn asleep(&self, key: Option<*const ()>, sleep: &mut dyn FnMut());

    /// The number of the `bytes` that the task may write to a file from `offset` on. If it may
    /// write none, it gets a signal.
    fn room(&self, offset: u64, bytes: usize) -> Result<usize, Errno>;
}
