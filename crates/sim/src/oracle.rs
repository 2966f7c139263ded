//! What a machine can see that its user must not do.
//!
//! Always on: a frame has one owner at a time, and nobody translates to it with what
//! a TLB has kept from before it was freed. What breaks that panics on the CPU where it
//! shows, and so ends the run with the reason.

use machine::Frame;

/// All frames' histories: how often each was allocated and freed, odd while it is owned;
/// 0 while nobody has told us of it, as on a machine without a frame allocator.
pub(crate) struct Oracle {
    changes: Box<[u16]>,
}

impl Oracle {
    pub(crate) fn new(frames: usize) -> Self {
        Oracle {
            changes: vec![0; frames].into(),
        }
    }

    /// What a TLB notes with an entry of this frame.
    #[inline]
    pub(crate) fn note(&self, frame: Frame) -> u16 {
        self.changes.get(frame.index()).copied().unwrap_or(0)
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
    }

    /// A task uses a translation to `frame` that was noted as `note`.
    #[inline]
    pub(crate) fn used(&self, frame: Frame, note: u16, address: usize, cpu: usize) {
        let changes = self.changes[frame.index()];
        if changes != 0 && changes != note {
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
