//! `core`'s own atomics keep the contract as they are.
//!
//! Machines that are real (hosted threads, metal) name these types; there is
//! nothing between them and the instruction.

use crate::{Atomic, AtomicInt, ConstInit, SharedCell};
use core::cell::UnsafeCell;
use core::sync::atomic::{
    AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

macro_rules! atomic {
    ($atomic:ty, $value:ty) => {
        impl Atomic<$value> for $atomic {
            #[inline(always)]
            fn new(value: $value) -> Self {
                <$atomic>::new(value)
            }
            #[inline(always)]
            fn load(&self, order: Ordering) -> $value {
                self.load(order)
            }
            #[inline(always)]
            fn store(&self, value: $value, order: Ordering) {
                self.store(value, order)
            }
            #[inline(always)]
            fn swap(&self, value: $value, order: Ordering) -> $value {
                self.swap(value, order)
            }
            #[inline(always)]
            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }
            #[inline(always)]
            fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange_weak(current, new, success, failure)
            }
            #[inline(always)]
            fn publish(&self, value: $value) {
                // x86-64: `xchg` stores and fences at once; LLVM's `mov; mfence` for
                // a relaxed store and a fence takes twice as long. The exchange alone
                // is no fence in the language's model, so the compiler gets one.
                // Elsewhere, and under an interpreter of that model, say it in full.
                if cfg!(all(target_arch = "x86_64", not(miri))) {
                    self.swap(value, Ordering::SeqCst);
                    core::sync::atomic::compiler_fence(Ordering::SeqCst);
                } else {
                    self.store(value, Ordering::Release);
                    core::sync::atomic::fence(Ordering::SeqCst);
                }
            }
        }
    };
}

macro_rules! integer {
    ($atomic:ty, $value:ty) => {
        atomic!($atomic, $value);
        impl AtomicInt<$value> for $atomic {
            #[inline(always)]
            fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                self.fetch_add(value, order)
            }
            #[inline(always)]
            fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                self.fetch_sub(value, order)
            }
            #[inline(always)]
            fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                self.fetch_and(value, order)
            }
            #[inline(always)]
            fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                self.fetch_or(value, order)
            }
        }
        impl ConstInit for $atomic {
            #[allow(clippy::declare_interior_mutable_const)]
            const ZERO: Self = <$atomic>::new(0);
        }
    };
}

integer!(AtomicU8, u8);
integer!(AtomicU16, u16);
integer!(AtomicU32, u32);
integer!(AtomicU64, u64);
integer!(AtomicUsize, usize);
atomic!(AtomicPtr<()>, *mut ());

impl ConstInit for AtomicPtr<()> {
    #[allow(clippy::declare_interior_mutable_const)]
    const ZERO: Self = AtomicPtr::new(core::ptr::null_mut());
}

/// Plain shared data on a real machine: an [`UnsafeCell`] that may be shared.
#[repr(transparent)]
pub struct NativeCell<T>(UnsafeCell<T>);

// SAFETY: the cell only hands out raw pointers; who uses one answers for the protocol.
unsafe impl<T: Send> Send for NativeCell<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for NativeCell<T> {}

impl<T: Send> SharedCell<T> for NativeCell<T> {
    #[inline(always)]
    fn new(value: T) -> Self {
        NativeCell(UnsafeCell::new(value))
    }
    #[inline(always)]
    fn read(&self) -> *const T {
        self.0.get()
    }
    #[inline(always)]
    fn write(&self) -> *mut T {
        self.0.get()
    }
    #[inline(always)]
    fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

#[cfg(target_arch = "x86_64")]
pub use pair::NativePair;

#[cfg(target_arch = "x86_64")]
mod pair {
    use crate::AtomicPair;
    use core::cell::UnsafeCell;
    use core::sync::atomic::Ordering::SeqCst;

    /// Two words under `lock cmpxchg16b`.
    #[repr(C, align(16))]
    pub struct NativePair(UnsafeCell<u128>);

    // SAFETY: all access is by an atomic instruction.
    unsafe impl Send for NativePair {}
    // SAFETY: as above.
    unsafe impl Sync for NativePair {}

    #[inline]
    fn pack([low, high]: [u64; 2]) -> u128 {
        low as u128 | (high as u128) << 64
    }

    #[inline]
    fn unpack(value: u128) -> [u64; 2] {
        [value as u64, (value >> 64) as u64]
    }

    impl NativePair {
        /// Stores `new` if the pair is `current`; returns what it was.
        ///
        /// Never inlined: LLVM would inline it into callers without the feature, and
        /// there make the exchange a call of a library that nobody links.
        #[inline(never)]
        #[target_feature(enable = "cmpxchg16b")]
        fn exchange(&self, current: u128, new: u128) -> u128 {
            // SAFETY: the cell is 16-byte aligned, valid, and only accessed here.
            unsafe { core::arch::x86_64::cmpxchg16b(self.0.get(), current, new, SeqCst, SeqCst) }
        }
    }

    impl AtomicPair for NativePair {
        #[inline]
        fn new(value: [u64; 2]) -> Self {
            NativePair(UnsafeCell::new(pack(value)))
        }

        #[inline]
        fn load(&self) -> [u64; 2] {
            // SAFETY: every x86-64 CPU since 2006 has the instruction, and the
            // systems this runs on require it. Exchanging 0 for 0 writes nothing new.
            unpack(unsafe { self.exchange(0, 0) })
        }

        #[inline]
        fn compare_exchange(&self, current: [u64; 2], new: [u64; 2]) -> Result<[u64; 2], [u64; 2]> {
            // SAFETY: as in `load`.
            let old = unpack(unsafe { self.exchange(pack(current), pack(new)) });
            if old == current { Ok(old) } else { Err(old) }
        }
    }
}
