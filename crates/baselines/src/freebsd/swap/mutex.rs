//! Swap reservation by a counter under the swap devices' mutex, then one under the user's.

use machine::{Atomic, Machine, Ordering};
use sync::adaptive::FreebsdMutex;
use sync::watch::{LockClass, Watched};
use sync::{Padded, RawLock, lock_class};
use vm::Error;
use vm::system::{Extent, Part, Reservation};

lock_class!(
    /// `sw_dev_mtx`.
    pub SwapDevices = "swap devices", rank 35
);
lock_class!(
    /// The mutex of a user's account.
    pub SwapUser = "swap user", rank 35
);

/// Reservation as in FreeBSD in May 2018: `sw_dev_mtx`, which also guards the swap devices, around
/// the system's counter, then the user's mutex around the user's.
///
/// Each reserve and release takes both mutexes, one after the other.
pub struct MutexSwap<M: Machine> {
    limit: u64,
    system: Padded<Counter<M, SwapDevices>>,
    user: Padded<Counter<M, SwapUser>>,
}

/// A counter and the mutex in front of it: 16 bytes on one line.
struct Counter<M: Machine, C> {
    mutex: Watched<M, FreebsdMutex<M>, C>,
    /// Written under the mutex, whose lock and unlock order it; relaxed.
    pages: M::AtomicU64,
}

impl<M: Machine, C: LockClass> Counter<M, C> {
    fn new() -> Self {
        Counter {
            mutex: RawLock::new(),
            pages: M::AtomicU64::new(0),
        }
    }

    /// Under the mutex, replaces the count by the result of `change`, if there is one. Returns true
    /// if there was.
    fn update(&self, change: impl FnOnce(u64) -> Option<u64>) -> bool {
        let held = self.mutex.lock();
        let changed = change(self.pages.load(Ordering::Relaxed));
        if let Some(pages) = changed {
            self.pages.store(pages, Ordering::Relaxed);
        }
        // SAFETY: the mutex was locked above, by this call.
        unsafe { self.mutex.unlock(held) };
        changed.is_some()
    }

    /// Subtracts `pages` from the count. If that is more than the count, the caller has made a
    /// mistake, and the count becomes 0, as FreeBSD's for users does.
    fn lower(&self, pages: u64) {
        self.update(|count| {
            debug_assert!(count >= pages, "released {pages} pages of {count} reserved");
            Some(count.saturating_sub(pages))
        });
    }
}

impl<M: Machine> Part<M> for MutexSwap<M> {
    type Config = ();

    fn new(_: &(), extent: Extent) -> Result<Self, Error> {
        Ok(MutexSwap {
            limit: extent.swap,
            system: Padded(Counter::new()),
            user: Padded(Counter::new()),
        })
    }

    fn label(&self) {
        M::label_value(&self.system, "MutexSwap.system");
        M::label_value(&self.user, "MutexSwap.user");
    }
}

impl<M: Machine> Reservation<M> for MutexSwap<M> {
    fn reserve(&self, pages: u64) -> bool {
        let fits = |count: u64| count.checked_add(pages).filter(|&sum| sum <= self.limit);
        self.system.update(fits) && {
            // No resource limit is set, so the user's count accepts it. Only releases under way
            // make it exceed the system's.
            self.user.update(|count| Some(count.saturating_add(pages)))
        }
    }

    fn release(&self, pages: u64) {
        // The order is FreeBSD's.
        self.system.lower(pages);
        self.user.lower(pages);
    }

    fn reserved(&self) -> u64 {
        self.system.pages.load(Ordering::Relaxed)
    }
}
