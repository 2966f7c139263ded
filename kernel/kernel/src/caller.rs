//! The calling task, for the parts below processes.

use crate::errno::Errno;
use crate::users::Users;

/// Who a task is: its process, user and group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    pub process: u32,
    pub user: u32,
    pub group: u32,
}

/// Answers for the calling task. A task that is no thread is never disturbed, and may write
/// everything.
pub trait Caller: Sync {
    /// Returns true if the task is a thread that has a signal to take, or whose process ends.
    fn is_disturbed(&self) -> bool;

    /// Calls `sleep`, in which the task sleeps, at a key if there is one, otherwise for a time.
    fn asleep(&self, key: Option<*const ()>, sleep: &mut dyn FnMut());

    /// Calls `wait`, which waits while the task is not disturbed, with a timeout at `time`.
    fn wait_until(&self, time: u64, wait: &mut dyn FnMut());

    /// Takes a signal of this set that is pending for the task, as a file of signals has it.
    fn take_signal(&self, wanted: u64) -> Option<[u8; 128]>;

    /// Returns true if a signal of this set is pending for the task.
    fn has_signal(&self, wanted: u64) -> bool;

    /// The process of the task; 0 if it is no thread.
    fn process(&self) -> u32;

    /// Who the task is; root, if it is no thread.
    fn users(&self) -> Users;

    /// Its process, and who it acts as.
    fn identity(&self) -> Identity {
        let users = self.users();
        Identity {
            process: self.process(),
            user: users.user.effective,
            group: users.group.effective,
        }
    }

    /// The number of the `bytes` that the task may write to a file from `offset` on. If it may
    /// write none, it gets a signal.
    fn room(&self, offset: u64, bytes: usize) -> Result<usize, Errno>;
}
