//! Reader-writer locks: the contract, the lock, and data behind one.

mod data;
mod spin_park;

pub use data::{ReadGuard, RwLock, WriteGuard};
pub use spin_park::SpinParkRw;

use machine::Machine;

/// A reader-writer lock without data.
///
/// # Safety
/// While a write acquisition is not released there is no other acquisition.
/// Acquiring has acquire semantics, releasing release semantics: a writer
/// synchronizes with all before it, a reader with the writers before it.
pub unsafe trait RawRw<M: Machine>: Send + Sync {
    /// The lock's name, as the command prints it.
    const NAME: &'static str;

    /// An unlocked lock.
    fn new() -> Self;

    /// Acquires the lock together with other readers, waiting as long as it takes.
    /// A task that reads already must not: a writer may have come in between.
    fn read(&self);

    /// Acquires the lock for reading if that needs no waiting.
    fn try_read(&self) -> bool;

    /// Releases a read acquisition.
    ///
    /// # Safety
    /// The caller has one.
    unsafe fn read_unlock(&self);

    /// Acquires the lock alone, waiting as long as it takes.
    fn write(&self);

    /// Acquires the lock alone if that needs no waiting.
    fn try_write(&self) -> bool;

    /// Releases the write acquisition.
    ///
    /// # Safety
    /// The caller has it.
    unsafe fn write_unlock(&self);

    /// Whether somebody holds the lock, a moment ago.
    fn is_locked(&self) -> bool;

    /// Whether a writer holds the lock or waits for readers to leave, a moment ago.
    fn is_write_locked(&self) -> bool;
}
