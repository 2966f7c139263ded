//! `seize`, for comparison: batches that count the threads which may still look (Hyaline).

use super::{Counted, Done, all_ran, done};
use crate::subject::Subject;
use machine::CpuRange;
use seize::{Collector, Guard, reclaim};
use std::hint::black_box;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Acquire;

/// Enter and leave, as its users do.
pub struct Enter(Collector);

impl Subject for Enter {
    const EXCLUSIVE: bool = false;
    type Own<'a> = ();

    fn new(_: CpuRange) -> Self {
        Enter(Collector::new())
    }

    fn own(&self) {}

    #[inline(always)]
    fn operate(&self, (): &mut (), section: impl FnOnce()) {
        let guard = self.0.enter();
        section();
        drop(guard);
    }

    fn verify(&self, _: u64) -> Result<(), String> {
        Ok(()) // the library does not tell of other threads
    }
}

/// Enter, load a protected pointer, leave.
pub struct Protect {
    collector: Collector,
    object: AtomicPtr<u64>,
}

impl Subject for Protect {
    const EXCLUSIVE: bool = false;
    type Own<'a> = ();

    fn new(_: CpuRange) -> Self {
        Protect {
            collector: Collector::new(),
            object: AtomicPtr::new(Box::into_raw(Box::new(1))),
        }
    }

    fn own(&self) {}

    #[inline(always)]
    fn operate(&self, (): &mut (), section: impl FnOnce()) {
        let guard = self.collector.enter();
        let object = guard.protect(&self.object, Acquire);
        // SAFETY: the object is freed with the subject.
        black_box(unsafe { *object });
        section();
        drop(guard);
    }

    fn verify(&self, _: u64) -> Result<(), String> {
        Ok(()) // the library does not tell of other threads
    }
}

impl Drop for Protect {
    fn drop(&mut self) {
        // SAFETY: no thread is left that could read it.
        drop(unsafe { Box::from_raw(*self.object.get_mut()) });
    }
}

/// An object allocated, and freed once no thread can see it.
pub struct Retire {
    collector: Collector,
    done: Done,
}

impl Subject for Retire {
    const EXCLUSIVE: bool = false;
    type Own<'a> = ();

    fn new(_: CpuRange) -> Self {
        Retire {
            collector: Collector::new(),
            done: done(),
        }
    }

    fn own(&self) {}

    #[inline(always)]
    fn operate(&self, (): &mut (), section: impl FnOnce()) {
        section();
        let object = Box::into_raw(Counted::boxed(self.done));
        // SAFETY: the object is new, given away, and linked nowhere.
        unsafe { self.collector.retire(object, reclaim::boxed) };
    }

    fn verify(&self, operations: u64) -> Result<(), String> {
        // SAFETY: no thread is left.
        unsafe { self.collector.reclaim_all() };
        all_ran(self.done, operations)
    }
}
