//! The contract of all mutual-exclusion locks, and a guard for any of them.

use machine::Machine;

/// A lock without data.
///
/// The shape is `lock_api::RawMutex`'s, except that a function makes a lock: a checker's atomics
/// have no constants. An acquisition carries a [`RawLock::Held`] to its release (a queue
/// lock's node); it is `()` for most locks.
///
/// # Safety
/// At most one `Held` of a lock exists that was not given to `unlock`; locking has acquire
/// semantics, unlocking release semantics, and a lock synchronizes with the unlock before it.
pub unsafe trait RawLock<M: Machine>: Send + Sync {
    /// The token that the holder hands to `unlock`.
    type Held;

    /// The lock's name, as the command prints it.
    const NAME: &'static str;

    /// True if a task that waits for the lock may sleep, and so must hold no
    /// [`Cpus::Pin`](machine::Cpus::Pin). Spin locks leave it at `false`.
    const MAY_SLEEP: bool = false;

    /// An unlocked lock.
    fn new() -> Self;

    /// Acquires the lock, waiting as long as it takes.
    fn lock(&self) -> Self::Held;

    /// Acquires the lock if no wait is needed.
    #[must_use = "a lock that was acquired must be released"]
    fn try_lock(&self) -> Option<Self::Held>;

    /// Releases the lock.
    ///
    /// # Safety
    /// `held` comes from this lock.
    unsafe fn unlock(&self, held: Self::Held);

    /// Returns true if the lock was held a moment ago.
    fn is_locked(&self) -> bool;
}

/// A held [`RawLock`], for code that keeps a lock apart from its data.
#[must_use = "the lock is released when this is dropped"]
pub struct RawGuard<'a, M: Machine, R: RawLock<M>> {
    lock: &'a R,
    held: Option<R::Held>,
}

impl<'a, M: Machine, R: RawLock<M>> RawGuard<'a, M, R> {
    /// Acquires `lock`, waiting as long as it takes.
    #[inline]
    #[track_caller]
    pub fn new(lock: &'a R) -> Self {
        let held = Some(lock.lock());
        RawGuard { lock, held }
    }

    /// Acquires `lock` if no wait is needed.
    #[inline]
    #[track_caller]
    #[must_use = "without a guard the lock is not held"]
    pub fn try_new(lock: &'a R) -> Option<Self> {
        let held = Some(lock.try_lock()?);
        Some(RawGuard { lock, held })
    }
}

impl<M: Machine, R: RawLock<M>> Drop for RawGuard<'_, M, R> {
    #[inline]
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            // SAFETY: `held` comes from this lock, acquired when the guard was made, and is taken
            // only once.
            unsafe { self.lock.unlock(held) };
        }
    }
}
