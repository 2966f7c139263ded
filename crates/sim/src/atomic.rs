//! Shared memory: `core`'s atomics, with a call of the engine before each access.
//!
//! They have the size and alignment of `core`'s, so types keep their layout.

use crate::Sim;
use crate::engine::{self, Kind, Running, Shared};
use core::cell::UnsafeCell;
use core::sync::atomic::{
    AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
use machine::{Atomic, AtomicInt, AtomicPair, Atomics, ConstInit, NativePair, SharedCell};

/// An atomic whose accesses cost simulated time.
#[repr(transparent)]
pub struct Modelled<A>(A);

impl<A> Modelled<A> {
    /// The atomic itself, whose accesses cost no simulated time.
    pub(crate) fn raw(&self) -> &A {
        &self.0
    }

    #[inline(always)]
    fn touch(&self, kind: Kind) {
        engine::touch(Shared::of(self), kind);
    }
}

macro_rules! atomic {
    ($atomic:ty, $value:ty, $bits:expr) => {
        impl Atomic<$value> for Modelled<$atomic> {
            fn new(value: $value) -> Self {
                Modelled(<$atomic>::new(value))
            }
            #[inline]
            fn load(&self, order: Ordering) -> $value {
                self.touch(Kind::Load);
                self.0.load(order)
            }
            #[inline]
            fn store(&self, value: $value, order: Ordering) {
                let bits: fn($value) -> u64 = $bits;
                if order == Ordering::SeqCst {
                    self.touch(Kind::Exchange);
                    self.0.store(value, order);
                } else if !engine::store(Shared::of(self), bits(value)) {
                    self.0.store(value, order);
                }
            }
            #[inline]
            fn swap(&self, value: $value, order: Ordering) -> $value {
                self.touch(Kind::Exchange);
                self.0.swap(value, order)
            }
            #[inline]
            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.touch(Kind::Exchange);
                self.0.compare_exchange(current, new, success, failure)
            }
            #[inline]
            fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                // Never fails spuriously: nothing may depend on the host.
                self.compare_exchange(current, new, success, failure)
            }
            #[inline]
            fn publish(&self, value: $value) {
                self.swap(value, Ordering::SeqCst);
            }
        }
    };
}

macro_rules! integer {
    ($atomic:ty, $value:ty) => {
        atomic!($atomic, $value, |value| value as u64);
        impl AtomicInt<$value> for Modelled<$atomic> {
            #[inline]
            fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                self.touch(Kind::Exchange);
                self.0.fetch_add(value, order)
            }
            #[inline]
            fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                self.touch(Kind::Exchange);
                self.0.fetch_sub(value, order)
            }
            #[inline]
            fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                self.touch(Kind::Exchange);
                self.0.fetch_and(value, order)
            }
            #[inline]
            fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                self.touch(Kind::Exchange);
                self.0.fetch_or(value, order)
            }
        }
        impl ConstInit for Modelled<$atomic> {
            #[allow(clippy::declare_interior_mutable_const)]
            const ZERO: Self = Modelled(<$atomic>::new(0));
        }
    };
}

integer!(AtomicU8, u8);
integer!(AtomicU16, u16);
integer!(AtomicU32, u32);
integer!(AtomicU64, u64);
integer!(AtomicUsize, usize);
atomic!(AtomicPtr<()>, *mut (), |value| value as usize as u64);

impl ConstInit for Modelled<AtomicPtr<()>> {
    #[allow(clippy::declare_interior_mutable_const)]
    const ZERO: Self = Modelled(AtomicPtr::new(core::ptr::null_mut()));
}

impl AtomicPair for Modelled<NativePair> {
    fn new(value: [u64; 2]) -> Self {
        Modelled(NativePair::new(value))
    }

    fn load(&self) -> [u64; 2] {
        self.touch(Kind::Exchange);
        self.0.load()
    }

    fn load_word(&self, index: usize, order: Ordering) -> u64 {
        self.touch(Kind::Load);
        self.0.load_word(index, order)
    }

    fn store_word(&self, index: usize, value: u64, order: Ordering) {
        let word = Shared {
            address: core::ptr::from_ref(self) as usize + 8 * index,
            bytes: 8,
        };
        if order == Ordering::SeqCst {
            self.touch(Kind::Exchange);
            self.0.store_word(index, value, order);
        } else if index > 1 || !engine::store(word, value) {
            self.0.store_word(index, value, order);
        }
    }

    fn compare_exchange(&self, current: [u64; 2], new: [u64; 2]) -> Result<[u64; 2], [u64; 2]> {
        self.touch(Kind::Exchange);
        self.0.compare_exchange(current, new)
    }
}

/// Plain shared data whose accesses cost simulated time.
#[repr(transparent)]
pub struct SimCell<T>(UnsafeCell<T>);

// SAFETY: the cell only hands out raw pointers; code that uses one answers for the protocol.
unsafe impl<T: Send> Send for SimCell<T> {}
// SAFETY: `&SimCell` only hands out raw pointers; code that uses one answers for the protocol.
unsafe impl<T: Send> Sync for SimCell<T> {}

impl<T: Send> SharedCell<T> for SimCell<T> {
    fn new(value: T) -> Self {
        SimCell(UnsafeCell::new(value))
    }

    #[inline]
    fn read(&self) -> *const T {
        engine::touch(Shared::of(self.0.get()), Kind::Load);
        self.0.get()
    }

    #[inline]
    fn write(&self) -> *mut T {
        engine::touch(Shared::of(self.0.get()), Kind::Store);
        self.0.get()
    }

    fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl Atomics for Sim {
    type AtomicU8 = Modelled<AtomicU8>;
    type AtomicU16 = Modelled<AtomicU16>;
    type AtomicU32 = Modelled<AtomicU32>;
    type AtomicU64 = Modelled<AtomicU64>;
    type AtomicUsize = Modelled<AtomicUsize>;
    type AtomicPtr = Modelled<AtomicPtr<()>>;
    type AtomicPair = Modelled<NativePair>;
    type Cell<T: Send> = SimCell<T>;

    fn fence(order: Ordering) {
        // Other fences order nothing on a machine with total store order.
        if order == Ordering::SeqCst {
            engine::fence();
        }
    }

    /// Orders the code; the heavy fence waits for the stores.
    fn light_fence() {}

    fn heavy_fence() {
        engine::ping();
    }

    fn label(address: *const (), bytes: usize, what: &'static str) {
        if let Some(running) = Running::current() {
            running.with(|engine| engine.label(address as usize, bytes, what));
        }
    }

    /// Takes no time. While stores of the CPU are on their way, memory is not what the CPU sees.
    fn inspect(look: impl FnOnce() -> bool) -> bool {
        match Running::current() {
            Some(running) => !running.has_stored_all() || running.aside(look),
            None => look(),
        }
    }

    fn key(address: usize) -> usize {
        crate::arena::offset_of(address)
    }
}
