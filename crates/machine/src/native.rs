//! `core`'s own atomics keep the contract as they are.
//!
//! Real machines (hosted threads, bare metal) name these types; nothing stands between them and the
//! instruction.

use crate::{Atomic, AtomicInt, ConstInit, SharedCell};
use core::cell::UnsafeCell;
use core::sync::atomic::{
    AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

/// Gives a real machine `core`'s atomics: `native_atomics!(Machine);`. Functions that replace the
/// defaults follow in braces.
#[macro_export]
macro_rules! native_atomics {
    ($machine:ty $(, { $($own:item)* })?) => {
        impl $crate::Atomics for $machine {
            type AtomicU8 = ::core::sync::atomic::AtomicU8;
            type AtomicU16 = ::core::sync::atomic::AtomicU16;
            type AtomicU32 = ::core::sync::atomic::AtomicU32;
            type AtomicU64 = ::core::sync::atomic::AtomicU64;
            type AtomicUsize = ::core::sync::atomic::AtomicUsize;
            type AtomicPtr = ::core::sync::atomic::AtomicPtr<()>;
            type AtomicPair = $crate::NativePair;
            type Cell<T: Send> = $crate::NativeCell<T>;

            #[inline(always)]
            fn fence(order: $crate::Ordering) {
                match order {
                    $crate::Ordering::SeqCst => $crate::full_fence(),
                    order => ::core::sync::atomic::fence(order),
                }
            }

            $($($own)*)?
        }
    };
}

/// A sequentially consistent fence. x86-64: a locked instruction that changes nothing, on a line of
/// the CPU's own; `mfence`, the compiler's choice, takes several times as long, as it also orders
/// memory that is not cached. Elsewhere, and under an interpreter of the language's model, the
/// fence of the language.
#[doc(hidden)]
#[inline(always)]
pub fn full_fence() {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the byte below the stack pointer keeps its value; no option promises that memory
    // stays as it is, so the compiler moves no access across. 64 bytes below, since a return
    // address or a local variable would be waited for.
    unsafe {
        core::arch::asm!("lock or byte ptr [rsp - 64], 0")
    };
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    core::sync::atomic::fence(Ordering::SeqCst);
}

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
                self.store(value, Ordering::Release);
                full_fence();
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

// SAFETY: the cell only hands out raw pointers; code that uses one answers for the protocol.
unsafe impl<T: Send> Send for NativeCell<T> {}
// SAFETY: `&NativeCell` only hands out raw pointers; code that uses one answers for the protocol.
unsafe impl<T: Send> Sync for NativeCell<T> {}

impl<T> NativeCell<T> {
    /// A cell that holds `value`, for a `static`.
    pub const fn holding(value: T) -> Self {
        NativeCell(UnsafeCell::new(value))
    }
}

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
