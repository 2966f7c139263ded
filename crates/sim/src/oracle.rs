//! What a machine can see that its user must not do.
//!
//! Always on: a frame has one owner at a time, and nobody translates with what a TLB has
//! kept from before the frame was freed, or, if that is of 2 MiB, one of its 512 frames:
//! whoever freed that one had to have it flushed, and so the whole. What breaks that panics
//! on the CPU where it shows, and so ends the run with the reason.

use machine::soft::Entry;
use machine::{Frame, pte};

/// All frames' histories.
pub(crate) struct Oracle {
    /// How often each frame was allocated and freed, odd while it is owned; 0 while nobody
    /// has told us of it, as on a machine without a frame allocator.
    changes: Box<[u16]>,
    /// How often one was freed of 512 aligned frames, such as a page of 2 MiB has.
    frees: Box<[u16]>,
}

impl Oracle {
    pub(crate) fn new(frames: usize) -> Self {
        Oracle {
            changes: vec![0; frames].into(),
            frees: vec![0; frames.div_ceil(pte::ENTRIES)].into(),
        }
    }

    /// What a TLB notes with an entry.
    #[inline]
    pub(crate) fn note(&self, entry: &Entry) -> u16 {
        let frame = entry.frame.index();
        let noted = match entry.large {
            true => self.frees.get(frame / pte::ENTRIES),
            false => self.changes.get(frame),
        };
        noted.copied().unwrap_or(0)
    }

    pub(crate) fn allocated(&mut self, frame: Frame) {
        let changes = &mut self.changes[frame.index()];
        let owned = *changes % 2 == 1;
        assert!(!owned, "{frame:?} is allocated, and was not freed before");
        *changes += 1;
    }

    pub(crate) fn freed(&mut self, frame: Frame) {
        let changes = &mut self.changes[frame.index()];
        let owned = *changes % 2 == 1;
        assert!(owned, "{frame:?} is freed, and nobody owned it");
        *changes = changes.checked_add(1).unwrap_or(2);
        let frees = &mut self.frees[frame.index() / pte::ENTRIES];
        *frees = frees.wrapping_add(1);
    }

    /// A task uses an entry for `address` with its note.
    #[inline]
    pub(crate) fn used(&self, entry: &Entry, address: usize, cpu: usize) {
        let now = self.note(entry);
        if now != entry.note && (entry.large || now != 0) {
            stale(entry, address, cpu);
        }
    }
}

#[cold]
#[inline(never)]
fn stale(entry: &Entry, address: usize, cpu: usize) -> ! {
    let frame = entry.frame;
    let freed = match entry.large {
        true => "in 2 MiB of which a frame has been freed since",
        false => "which has been freed since",
    };
    panic!("CPU {cpu} uses a stale translation of {address:#x} to {frame:?}, {freed}")
}
