//! What the parts below processes know of the calling task.

use crate::errno::Errno;

/// Knows which thread the calling task is. One that is no thread is never disturbed, and may write
/// everything.
pub trait Caller: Sync {
    /// Returns true if it is a thread that has a signal to take, or whose process ends.
    fn is_disturbed(&self) -> bool;

    /// Calls `sleep`, in which the task sleeps at a key, if there is one, or for a time.
    fn asleep(&self, key: Option<*const ()>, sleep: &mut dyn FnMut());

    /// How many of the `bytes` it may write to a file from `offset` on; if none, it gets a signal.
    fn room(&self, offset: u64, bytes: usize) -> Result<usize, Errno>;
}
