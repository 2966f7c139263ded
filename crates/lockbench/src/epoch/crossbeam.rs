//! The epochs of `crossbeam-epoch`, for comparison.

use super::{Done, all_ran, done};
use crate::subject::Subject;
use crossbeam_epoch::{Collector, Guard, LocalHandle};
use machine::CpuRange;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// The time that the last callbacks may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Pin and unpin, as its users do.
pub struct Pin;

impl Subject for Pin {
    const EXCLUSIVE: bool = false;
    type Own<'a> = ();

    fn new(_: CpuRange) -> Self {
        Pin
    }

    fn own(&self) {}

    #[inline(always)]
    fn operate(&self, (): &mut (), section: impl FnOnce()) {
        let guard = crossbeam_epoch::pin();
        section();
        drop(guard);
    }

    fn verify(&self, _: u64) -> Result<(), String> {
        unpinned()
    }
}

/// Pin and unpin inside another pin.
pub struct Nested;

impl Subject for Nested {
    const EXCLUSIVE: bool = false;
    type Own<'a> = Guard;

    fn new(_: CpuRange) -> Self {
        Nested
    }

    fn own(&self) -> Guard {
        crossbeam_epoch::pin()
    }

    #[inline(always)]
    fn operate(&self, _: &mut Guard, section: impl FnOnce()) {
        let guard = crossbeam_epoch::pin();
        section();
        drop(guard);
    }

    fn verify(&self, _: u64) -> Result<(), String> {
        unpinned()
    }
}

/// Fails if the calling thread is left pinned; the library does not tell of others.
fn unpinned() -> Result<(), String> {
    if crossbeam_epoch::is_pinned() {
        Err("still pinned after the last".into())
    } else {
        Ok(())
    }
}

/// Pin and unpin by the thread's handle, so without a look-up.
pub struct Handle(Collector);

impl Subject for Handle {
    const EXCLUSIVE: bool = false;
    type Own<'a> = LocalHandle;

    fn new(_: CpuRange) -> Self {
        Handle(Collector::new())
    }

    fn own(&self) -> LocalHandle {
        self.0.register()
    }

    #[inline(always)]
    fn operate(&self, own: &mut LocalHandle, section: impl FnOnce()) {
        let guard = own.pin();
        section();
        drop(guard);
    }

    fn verify(&self, _: u64) -> Result<(), String> {
        unpinned()
    }
}

/// Pin and flush: an attempt to advance. It does not wait for readers.
pub struct Flush(Collector);

impl Subject for Flush {
    const EXCLUSIVE: bool = false;
    type Own<'a> = LocalHandle;

    fn new(_: CpuRange) -> Self {
        Flush(Collector::new())
    }

    fn own(&self) -> LocalHandle {
        self.0.register()
    }

    #[inline(always)]
    fn operate(&self, own: &mut LocalHandle, section: impl FnOnce()) {
        own.pin().flush();
        section();
    }

    fn verify(&self, _: u64) -> Result<(), String> {
        unpinned()
    }
}

/// An object allocated, and freed by a deferred function.
pub struct Defer {
    collector: Collector,
    done: Done,
}

impl Subject for Defer {
    const EXCLUSIVE: bool = false;
    type Own<'a> = LocalHandle;

    fn new(_: CpuRange) -> Self {
        Defer {
            collector: Collector::new(),
            done: done(),
        }
    }

    fn own(&self) -> LocalHandle {
        self.collector.register()
    }

    #[inline(always)]
    fn operate(&self, own: &mut LocalHandle, section: impl FnOnce()) {
        section();
        let done = self.done;
        // The size is that of `sync`'s object with its node.
        let object = Box::new([0u64; 3]);
        own.pin().defer(move || {
            drop(object);
            done.fetch_add(1, Relaxed);
        });
    }

    fn verify(&self, operations: u64) -> Result<(), String> {
        let handle = self.collector.register();
        let end = Instant::now() + PATIENCE;
        // There is no way to wait for callbacks but to try again.
        while self.done.load(Relaxed) < operations && Instant::now() < end {
            handle.pin().flush();
        }
        all_ran(self.done, operations)
    }
}
