//! What a machine can see that its user must not do.
//!
//! Always on: a frame has one owner at a time, and nobody translates to it with what
//! a TLB has kept from before it was freed. What breaks that panics on the CPU where it
//! shows, and so ends the run with the reason.

use machine::Frame;

/// One frame's history.
#[derive(Clone, Copy, Default)]
struct History {
    /// Counts allocations and frees: odd while the frame is owned.
    changes: u16,
    /// Whether anybody has ever told us of it; machines without a frame allocator do not.
    known: bool,
}

/// All frames' histories.
pub(crate) struct Oracle {
    frames: Box<[History]>,
}

impl Oracle {
    pub(crate) fn new(frames: usize) -> Self {
        Oracle {
            frames: vec![History::default(); frames].into(),
        }
    }

    /// What a TLB notes with an entry of this frame.
    #[inline]
    pub(crate) fn note(&self, frame: Frame) -> u16 {
        self.frames
            .get(frame.index())
            .map_or(0, |frame| frame.changes)
    }

    pub(crate) fn allocated(&mut self, frame: Frame) {
        let history = &mut self.frames[frame.index()];
        let owned = history.changes % 2 == 1;
        assert!(!owned, "{frame:?} is allocated, and was not freed before");
        history.known = true;
        history.changes = history.changes.wrapping_add(1);
    }

    pub(crate) fn freed(&mut self, frame: Frame) {
        let history = &mut self.frames[frame.index()];
        let owned = history.changes % 2 == 1;
        assert!(owned, "{frame:?} is freed, and nobody owned it");
        history.changes = history.changes.wrapping_add(1);
    }

    /// A task uses a translation to `frame` that was noted as `note`.
    #[inline]
    pub(crate) fn used(&self, frame: Frame, note: u16, address: usize, cpu: usize) {
        let history = self.frames[frame.index()];
        if history.known && history.changes != note {
            stale(frame, address, cpu);
        }
    }
}

#[cold]
#[inline(never)]
fn stale(frame: Frame, address: usize, cpu: usize) -> ! {
    panic!(
        "CPU {cpu} uses a stale translation of {address:#x} to {frame:?}, which has been freed since"
    )
}
