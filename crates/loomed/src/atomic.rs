//! loom's atomics and cells.

use crate::Loomed;
use crate::flaw::{self, Zero};
use loom::sync::atomic as la;
use machine::{Atomic, AtomicInt, AtomicPair, Atomics, Ordering, SharedCell};
use std::sync::Mutex;

macro_rules! atomic {
    ($name:ident, $inner:ty, $value:ty) => {
        /// A loom atomic.
        pub struct $name($inner);
        impl Atomic<$value> for $name {
            #[track_caller]
            fn new(value: $value) -> Self {
                $name(<$inner>::new(value))
            }
            #[track_caller]
            fn load(&self, order: Ordering) -> $value {
                if flaw::is_blind() {
                    return <$value as Zero>::ZERO;
                }
                self.0.load(flaw::weaken(order))
            }
            #[track_caller]
            fn store(&self, value: $value, order: Ordering) {
                self.0.store(value, flaw::weaken(order))
            }
            #[track_caller]
            fn swap(&self, value: $value, order: Ordering) -> $value {
                self.0.swap(value, flaw::weaken(order))
            }
            #[track_caller]
            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                let (success, failure) = (flaw::weaken(success), flaw::weaken(failure));
                self.0.compare_exchange(current, new, success, failure)
            }
            #[track_caller]
            fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                let (success, failure) = (flaw::weaken(success), flaw::weaken(failure));
                self.0.compare_exchange_weak(current, new, success, failure)
            }
            #[track_caller]
            fn publish(&self, value: $value) {
                self.0.store(value, flaw::weaken(Ordering::Release));
                if !flaw::is_here() {
                    la::fence(Ordering::SeqCst);
                }
            }
        }
    };
}

macro_rules! integer {
    ($name:ident, $inner:ty, $value:ty) => {
        atomic!($name, $inner, $value);
        impl AtomicInt<$value> for $name {
            #[track_caller]
            fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_add(value, flaw::weaken(order))
            }
            #[track_caller]
            fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_sub(value, flaw::weaken(order))
            }
            #[track_caller]
            fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_and(value, flaw::weaken(order))
            }
            #[track_caller]
            fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_or(value, flaw::weaken(order))
            }
        }
    };
}

integer!(U8, la::AtomicU8, u8);
integer!(U16, la::AtomicU16, u16);
integer!(U32, la::AtomicU32, u32);
integer!(U64, la::AtomicU64, u64);
integer!(Usize, la::AtomicUsize, usize);
atomic!(Ptr, la::AtomicPtr<()>, *mut ());

/// A pair of words: loom has none, so each stored value gets a number, and the loom atomic holds
/// the number. Order and visibility are then loom's own.
pub struct Pair {
    current: la::AtomicUsize,
    values: Mutex<Vec<[u64; 2]>>,
}

impl Pair {
    fn value(&self, number: usize) -> [u64; 2] {
        self.values.lock().unwrap()[number]
    }

    fn number(&self, value: [u64; 2]) -> usize {
        let mut values = self.values.lock().unwrap();
        values.push(value);
        values.len() - 1
    }
}

impl AtomicPair for Pair {
    fn new(value: [u64; 2]) -> Self {
        Pair {
            current: la::AtomicUsize::new(0),
            values: Mutex::new(vec![value]),
        }
    }

    fn load(&self) -> [u64; 2] {
        // The instruction is a locked read-modify-write: it sees the last value.
        self.value(self.current.fetch_add(0, Ordering::SeqCst))
    }

    fn load_word(&self, index: usize, order: Ordering) -> u64 {
        self.value(self.current.load(order))[index]
    }

    fn store_word(&self, index: usize, word: u64, order: Ordering) {
        // The other word keeps its last value, so this is an exchange here. It continues a release
        // sequence, which a store would end.
        let mut seen = self.current.fetch_add(0, Ordering::Relaxed);
        loop {
            let mut value = self.value(seen);
            value[index] = word;
            let next = self.number(value);
            match self
                .current
                .compare_exchange(seen, next, order, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(other) => seen = other,
            }
        }
    }

    fn compare_exchange(&self, current: [u64; 2], new: [u64; 2]) -> Result<[u64; 2], [u64; 2]> {
        let number = self.current.fetch_add(0, Ordering::SeqCst);
        let mut seen = number;
        loop {
            let old = self.value(seen);
            if old != current {
                return Err(old);
            }
            let next = self.number(new);
            match self
                .current
                .compare_exchange(seen, next, Ordering::SeqCst, Ordering::SeqCst)
            {
                Ok(_) => return Ok(old),
                Err(other) => seen = other,
            }
        }
    }
}

/// A loom cell: a read that races with a write ends the model.
pub struct Cell<T>(loom::cell::UnsafeCell<T>);

// SAFETY: loom itself checks every access for races.
unsafe impl<T: Send> Send for Cell<T> {}
// SAFETY: loom itself checks every access for races.
unsafe impl<T: Send> Sync for Cell<T> {}

impl<T: Send> SharedCell<T> for Cell<T> {
    #[track_caller]
    fn new(value: T) -> Self {
        Cell(loom::cell::UnsafeCell::new(value))
    }
    #[track_caller]
    fn read(&self) -> *const T {
        self.0.with(|p| p)
    }
    #[track_caller]
    fn write(&self) -> *mut T {
        self.0.with_mut(|p| p)
    }
    #[track_caller]
    fn into_inner(self) -> T {
        // All other accesses must have happened before, as before a write.
        self.write();
        self.0.into_inner()
    }
}

impl Atomics for Loomed {
    type AtomicU8 = U8;
    type AtomicU16 = U16;
    type AtomicU32 = U32;
    type AtomicU64 = U64;
    type AtomicUsize = Usize;
    type AtomicPtr = Ptr;
    type AtomicPair = Pair;
    type Cell<T: Send> = Cell<T>;

    /// Each access is a step that schedules differ in.
    fn inspect(_: impl FnOnce() -> bool) -> bool {
        true
    }

    #[track_caller]
    fn fence(order: Ordering) {
        if flaw::weaken(order) != Ordering::Relaxed {
            la::fence(order);
        }
    }

    // The defaults, at the caller's place: in loom neither fence is free.
    #[track_caller]
    fn light_fence() {
        Self::fence(Ordering::SeqCst);
    }

    #[track_caller]
    fn heavy_fence() {
        Self::fence(Ordering::SeqCst);
    }
}
