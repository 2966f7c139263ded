//! Implementations of `lock_api` for the raw locks: of 0.5, and with the feature `lock_api_0_4` of
//! 0.4, which many crates still use.
//!
//! On a machine whose atomics have constants, each lock is a [`lock_api::RawMutex`], so
//! `lock_api::Mutex<Ticket<Hosted>, T>` has its guards, mapped guards and `const` constructor. The
//! state that an acquisition carries to its release is `lock_api`'s guard state, so queue locks fit
//! as well. 0.4 has no such state; there locks fit whose acquisitions carry nothing.

use core::marker::PhantomData;

/// An acquisition as `lock_api`'s guard state.
///
/// Not `Send`: the CPU that acquires a spin lock releases it, and the task that acquires a watched
/// one.
pub struct Acquisition<H> {
    pub(crate) held: H,
    not_send: PhantomData<*mut ()>,
}

// SAFETY: a shared reference to an acquisition gives access to nothing.
unsafe impl<H> Sync for Acquisition<H> {}

impl<H> Acquisition<H> {
    #[inline]
    pub(crate) fn new(held: H) -> Self {
        Acquisition {
            held,
            not_send: PhantomData,
        }
    }
}

/// Implements [`lock_api::RawMutex`] by a lock's [`crate::RawLock`]:
/// `impl_lock_api!([M: Machine<AtomicU8: ConstInit>] Lock<M> = UNLOCKED_CONSTANT);`.
/// The machine's name has to be `M`.
///
/// The lock must survive being moved and dropped while a forgotten guard holds it, so it must not
/// store its own address, nor free memory that a holder still uses.
macro_rules! impl_lock_api {
    ([$($generics:tt)*] $lock:ty = $unlocked:expr) => {
        // SAFETY: `RawLock` asks for the same exclusion and ordering; `lock` and `unlock` do not
        // unwind while they own the lock; the macro's contract covers moving and dropping.
        unsafe impl<$($generics)*> lock_api::RawMutex for $lock {
            #[allow(clippy::declare_interior_mutable_const)]
            const INIT: Self = $unlocked;

            type Guard = $crate::ecosystem::Acquisition<<Self as $crate::raw::RawLock<M>>::Held>;

            #[inline]
            fn lock(&self) -> Self::Guard {
                $crate::ecosystem::Acquisition::new($crate::raw::RawLock::lock(self))
            }

            #[inline]
            fn try_lock(&self) -> Option<Self::Guard> {
                $crate::raw::RawLock::try_lock(self).map($crate::ecosystem::Acquisition::new)
            }

            #[inline]
            unsafe fn unlock(&self, guard: Self::Guard) {
                // SAFETY: the caller hands over the state of this acquisition.
                unsafe { $crate::raw::RawLock::unlock(self, guard.held) }
            }

            #[inline]
            fn is_locked(&self) -> bool {
                $crate::raw::RawLock::is_locked(self)
            }
        }
    };
}

/// Implements `RawMutex` of both versions, for a lock whose acquisition carries nothing.
macro_rules! impl_lock_apis {
    ([$($generics:tt)*] $lock:ty = $unlocked:expr) => {
        $crate::ecosystem::impl_lock_api!([$($generics)*] $lock = $unlocked);

        #[cfg(feature = "lock_api_0_4")]
        // SAFETY: as above.
        unsafe impl<$($generics)*> lock_api_0_4::RawMutex for $lock {
            #[allow(clippy::declare_interior_mutable_const)]
            const INIT: Self = $unlocked;

            type GuardMarker = lock_api_0_4::GuardNoSend;

            #[inline]
            fn lock(&self) {
                $crate::raw::RawLock::lock(self)
            }

            #[inline]
            fn try_lock(&self) -> bool {
                $crate::raw::RawLock::try_lock(self).is_some()
            }

            #[inline]
            unsafe fn unlock(&self) {
                // SAFETY: the caller has acquired the lock, and that carries nothing.
                unsafe { $crate::raw::RawLock::unlock(self, ()) }
            }

            #[inline]
            fn is_locked(&self) -> bool {
                $crate::raw::RawLock::is_locked(self)
            }
        }
    };
}

pub(crate) use impl_lock_api;
pub(crate) use impl_lock_apis;
