//! A permit, for which its owner waits on a futex.

use crate::errno;
use core::ptr::null;
use core::sync::atomic::{AtomicU32, Ordering};

const EMPTY: u32 = 0;
const GIVEN: u32 = 1;
const WAITING: u32 = 2;

/// Given by any thread, taken and waited for by its owner.
pub(crate) struct Permit(AtomicU32);

impl Permit {
    /// Not given.
    pub(crate) const fn new() -> Self {
        Permit(AtomicU32::new(EMPTY))
    }

    /// Gives the permit, and wakes the owner if it waits.
    pub(crate) fn give(&self) {
        // Release: pairs with the acquire in `wait`.
        if self.0.swap(GIVEN, Ordering::Release) == WAITING {
            let _errno = errno::keep();
            // SAFETY: the kernel uses the address as a key only.
            unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), WAKE, 1) };
        }
    }

    /// Waits until the permit is given, and takes it. Only the owner calls this.
    pub(crate) fn wait(&self) {
        // Relaxed: only the owner leaves GIVEN, and it takes the permit below.
        let waits = |from, to| {
            self.0
                .compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed)
        };
        let _errno = errno::keep();
        while waits(EMPTY, WAITING).is_ok() || self.0.load(Ordering::Relaxed) == WAITING {
            // SAFETY: the word is valid for the call; there is no time limit.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    self.0.as_ptr(),
                    WAIT,
                    WAITING,
                    null::<libc::timespec>(),
                )
            };
        }
        // Acquire: pairs with the release in `give`.
        self.0.swap(EMPTY, Ordering::Acquire);
    }
}

const WAKE: i32 = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
const WAIT: i32 = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
