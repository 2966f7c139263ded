//! Allocations that fail for tests, in builds with debug assertions or feature `failures`. In
//! others none fails, and nothing is checked.

#[cfg(any(debug_assertions, feature = "failures"))]
mod planned {
    use crate::frames::Frames;
    use machine::{Atomic, AtomicInt, Ordering, Platform};

    /// A flag beyond the number of the failing allocation: all later ones fail, too.
    const FOR_GOOD: u64 = 1 << 63;

    /// The number of the allocation from now that fails; 0 means none does. With [`FOR_GOOD`] all
    /// later ones fail, too. Written by tests only.
    pub(in crate::frames) struct Failures<M: Platform>(M::AtomicU64);

    impl<M: Platform> Failures<M> {
        pub(in crate::frames) fn new() -> Self {
            Failures(M::AtomicU64::new(0))
        }

        /// Returns true if this allocation is to fail.
        #[inline]
        pub(in crate::frames) fn is_due(&self) -> bool {
            self.0.load(Ordering::Relaxed) != 0 && self.count_down()
        }

        #[cold]
        fn count_down(&self) -> bool {
            if self.0.load(Ordering::Relaxed) == FOR_GOOD | 1 {
                return true;
            }
            self.0.fetch_sub(1, Ordering::Relaxed) == 1
        }
    }

    impl<M: Platform> Frames<M> {
        /// Makes the `nth` allocation from now, of a frame or a block, fail (1 = the next); 0
        /// switches it off.
        pub fn fail_after(&self, nth: u64) {
            self.failures.0.store(nth, Ordering::Relaxed);
        }

        /// Makes the `nth` allocation from now fail, and all that follow: frames that reclaim frees
        /// do not help.
        pub fn fail_from(&self, nth: u64) {
            self.failures.0.store(nth | FOR_GOOD, Ordering::Relaxed);
        }
    }
}

#[cfg(not(any(debug_assertions, feature = "failures")))]
mod planned {
    use core::marker::PhantomData;
    use machine::Platform;

    pub(in crate::frames) struct Failures<M: Platform>(PhantomData<fn() -> M>);

    impl<M: Platform> Failures<M> {
        pub(in crate::frames) fn new() -> Self {
            Failures(PhantomData)
        }

        #[inline]
        pub(in crate::frames) fn is_due(&self) -> bool {
            false
        }
    }
}

pub(super) use planned::Failures;
