//! The one contract of all mutual-exclusion locks.

use machine::Machine;

/// A lock without data.
///
/// The shape is `lock_api::RawMutex`'s, except that a lock is made by a function:
/// atomics of a checker have no constants. [`RawLock::Held`] is what an
/// acquisition carries to its release (a queue lock's node); it is `()` for most.
///
/// # Safety
/// At most one `Held` of a lock exists that was not given to `unlock`; locking
/// has acquire semantics, unlocking release semantics, and a lock synchronizes
/// with the unlock before it.
pub unsafe trait RawLock<M: Machine>: Send + Sync {
    /// What the holder must give back.
    type Held;

    /// The lock's name, as the command prints it.
    const NAME: &'static str;

    /// An unlocked lock.
    fn new() -> Self;

    /// Acquires the lock, waiting as long as it takes.
    fn lock(&self) -> Self::Held;

    /// Acquires the lock if that needs no waiting.
    fn try_lock(&self) -> Option<Self::Held>;

    /// Releases the lock.
    ///
    /// # Safety
    /// `held` comes from this lock.
    unsafe fn unlock(&self, held: Self::Held);

    /// Whether somebody holds the lock, a moment ago.
    fn is_locked(&self) -> bool;
}
