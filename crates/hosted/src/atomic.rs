//! Shared memory: `core`'s atomics.

use crate::Hosted;
use core::sync::atomic::{
    AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
use machine::{Atomics, NativeCell, NativePair};

impl Atomics for Hosted {
    type AtomicU8 = AtomicU8;
    type AtomicU16 = AtomicU16;
    type AtomicU32 = AtomicU32;
    type AtomicU64 = AtomicU64;
    type AtomicUsize = AtomicUsize;
    type AtomicPtr = AtomicPtr<()>;
    type AtomicPair = NativePair;
    type Cell<T: Send> = NativeCell<T>;

    #[inline(always)]
    fn fence(order: Ordering) {
        core::sync::atomic::fence(order);
    }
}
