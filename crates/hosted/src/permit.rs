//! A permit, for which one thread waits on a futex.

use core::ptr::{from_ref, null};
use core::sync::atomic::{AtomicU32, Ordering};

const EMPTY: u32 = 0;
const GIVEN: u32 = 1;
const WAITING: u32 = 2;

/// A permit: given by any thread, taken and waited for by its owner.
pub(crate) struct Permit(AtomicU32);

impl Permit {
    /// A permit that is not given.
    pub(crate) const fn new() -> Self {
        Permit(AtomicU32::new(EMPTY))
    }

    /// Gives the permit, and wakes the owner if it waits.
    pub(crate) fn give(&self) {
        // Release: pairs with the acquire in `take`.
        if self.0.swap(GIVEN, Ordering::Release) == WAITING {
            // SAFETY: the kernel uses the address as a key only.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    self.0.as_ptr(),
                    libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                    1,
                )
            };
        }
    }

    /// Returns true if the permit is given: a hint.
    #[inline]
    pub(crate) fn is_given(&self) -> bool {
        self.0.load(Ordering::Relaxed) == GIVEN
    }

    /// Takes the permit, if it is given. Called by the owner.
    pub(crate) fn take(&self) -> bool {
        // Acquire: pairs with the release in `give`.
        let taken = self
            .0
            .compare_exchange(GIVEN, EMPTY, Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok()
    }

    /// Waits until the permit is given, for `limit` nanoseconds at most, if there is a limit; may
    /// return early. Called by the owner.
    pub(crate) fn wait(&self, limit: Option<u64>) {
        // Only the owner leaves GIVEN, so the state is EMPTY or WAITING if it is not that.
        let waits = self
            .0
            .compare_exchange(EMPTY, WAITING, Ordering::Relaxed, Ordering::Relaxed);
        if waits == Err(GIVEN) {
            return;
        }
        const SECOND: u64 = 1_000_000_000;
        let limit = limit.map(|limit| libc::timespec {
            tv_sec: (limit / SECOND) as libc::time_t,
            tv_nsec: (limit % SECOND) as libc::c_long,
        });
        // SAFETY: the word and the limit are valid for the call; the kernel only reads them.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.0.as_ptr(),
                libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                WAITING,
                limit.as_ref().map_or(null(), from_ref),
            )
        };
        // So that no thread wakes the owner while it is awake. Relaxed: it takes the permit next.
        let _ = self
            .0
            .compare_exchange(WAITING, EMPTY, Ordering::Relaxed, Ordering::Relaxed);
    }
}
