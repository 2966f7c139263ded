//! Checks a kernel's use of frames as only the machine can see it.
//!
//! A frame has one owner at a time, and no CPU translates with a TLB entry from before the frame
//! was freed. For an entry of 2 MiB that holds for each of its 512 frames: freeing one of them
//! needs a flush, and a flush drops the whole translation. A violation panics on the CPU where it
//! shows, and so ends the run with the reason.
//!
//! All accesses are relaxed: the entry that names a frame orders a legitimate use behind its
//! allocation, and the flush orders it before its freeing. A check that races with a freeing may
//! miss a violation; no check reports a use that was right.

use super::Entry;
use crate::{Frame, pte};
use alloc::boxed::Box;
use core::sync::atomic::{AtomicU16, Ordering::Relaxed};

/// All frames' histories.
pub struct Oracle {
    /// How often each frame was allocated and freed, odd while it is owned; 0 as long as the kernel
    /// has not reported the frame, as on a machine without a frame allocator.
    changes: Box<[AtomicU16]>,
    /// Per 512 aligned frames, such as a page of 2 MiB has: how often one of them was freed.
    frees: Box<[AtomicU16]>,
}

impl Oracle {
    /// An oracle for `frames` frames, none of them reported. Takes host memory only as frames are
    /// used.
    pub fn new(frames: usize) -> Self {
        Oracle {
            changes: zeroes(frames),
            frees: zeroes(frames.div_ceil(pte::ENTRIES)),
        }
    }

    /// The note that a TLB keeps with an entry.
    #[inline]
    pub fn note(&self, entry: &Entry) -> u16 {
        let frame = entry.frame.index();
        let noted = if entry.large {
            self.frees.get(frame / pte::ENTRIES)
        } else {
            self.changes.get(frame)
        };
        noted.map_or(0, |noted| noted.load(Relaxed))
    }

    /// Records that `frame` now has an owner.
    ///
    /// # Panics
    /// If it already has one.
    pub fn allocated(&self, frame: Frame) {
        let changes = self.changes[frame.index()].fetch_add(1, Relaxed);
        let owned = changes % 2 == 1;
        assert!(!owned, "{frame:?} is allocated although it was not freed");
    }

    /// Records that `frame` is now free.
    ///
    /// # Panics
    /// If it already was.
    pub fn freed(&self, frame: Frame) {
        let changes = &self.changes[frame.index()];
        let before = changes.fetch_add(1, Relaxed);
        assert!(
            before % 2 == 1,
            "{frame:?} is freed although it had no owner"
        );
        if before == u16::MAX {
            // 0 would be a frame that was never reported.
            changes.store(2, Relaxed);
        }
        self.frees[frame.index() / pte::ENTRIES].fetch_add(1, Relaxed);
    }

    /// Checks the use of an entry for `address` that carries its note.
    ///
    /// # Panics
    /// If the frame has been freed since the note was made, or is free.
    #[inline]
    pub fn used(&self, entry: &Entry, address: usize, cpu: usize) {
        let now = self.note(entry);
        let is_free = !entry.large && now != 0 && now.is_multiple_of(2);
        if now != entry.note && (entry.large || now != 0) || is_free {
            stale(entry, address, cpu);
        }
    }
}

/// Zeroes that take no memory until they are touched.
fn zeroes(count: usize) -> Box<[AtomicU16]> {
    // SAFETY: an atomic of all zero bytes is one that holds 0.
    unsafe { Box::new_zeroed_slice(count).assume_init() }
}

#[cold]
#[inline(never)]
fn stale(entry: &Entry, address: usize, cpu: usize) -> ! {
    let frame = entry.frame;
    let freed = if entry.large {
        "in 2 MiB with a frame that has been freed since"
    } else {
        "which has been freed since"
    };
    panic!("CPU {cpu} uses a stale translation of {address:#x} to {frame:?}, {freed}")
}
