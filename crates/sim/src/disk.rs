//! Stores of pages that take simulated time.

use crate::Sim;
use crate::engine::{self, Time};
use core::sync::atomic::{AtomicU64, Ordering};
use machine::{Frame, PAGE_SIZE, Pager, PagerError, Truncate};

/// A store that takes time: `pager` keeps the pages, and this type adds the time.
///
/// The disk moves one page after the other, in the order of the calls, and each call also has a
/// latency, which overlaps with that of other calls. The calling task is blocked meanwhile. The
/// calling CPU does `pager`'s own work: for a write before the disk, for a read after it. A failing
/// call takes as long as any other.
pub struct Disk<P> {
    pager: P,
    latency: Time,
    page: Time,
    /// When the disk has moved all requested pages. Accessed in turn; it is not part of the
    /// machine.
    free_at: AtomicU64,
}

impl<P> Disk<P> {
    /// `pager` behind a disk that takes `latency` nanoseconds per call and moves a page in `page`
    /// nanoseconds.
    pub fn new(pager: P, latency: u64, page: u64) -> Self {
        Disk {
            pager,
            latency: latency.saturating_mul(1000),
            page: page.saturating_mul(1000),
            free_at: AtomicU64::new(0),
        }
    }

    /// The pager that keeps the pages.
    pub fn pager(&self) -> &P {
        &self.pager
    }

    /// Blocks the calling task while the disk moves this many pages. Takes no time outside the
    /// machine's CPUs.
    fn take(&self, pages: usize) {
        engine::sleep(|now| {
            // Relaxed (both): one CPU of the machine runs at a time, on one thread.
            let begin = self.free_at.load(Ordering::Relaxed).max(now);
            let end = begin.saturating_add(self.page.saturating_mul(pages as Time));
            self.free_at.store(end, Ordering::Relaxed);
            end.saturating_add(self.latency)
        });
    }
}

impl<P: Pager<Sim>> Pager<Sim> for Disk<P> {
    unsafe fn read(&self, machine: &Sim, first: u64, frames: &[Frame]) -> Result<(), PagerError> {
        self.take(frames.len());
        // SAFETY: so says the caller.
        unsafe { self.pager.read(machine, first, frames) }
    }

    unsafe fn write(
        &self,
        machine: &Sim,
        first: u64,
        frames: &[Frame],
        bytes: usize,
    ) -> Result<(), PagerError> {
        // SAFETY: so says the caller.
        let written = unsafe { self.pager.write(machine, first, frames, bytes) };
        self.take(bytes.div_ceil(PAGE_SIZE).min(frames.len()));
        written
    }
}

impl<P: Truncate<Sim>> Truncate<Sim> for Disk<P> {
    /// Moves no page, and takes the latency.
    fn truncate(&self, machine: &Sim, bytes: u64) -> Result<(), PagerError> {
        self.take(0);
        self.pager.truncate(machine, bytes)
    }
}
