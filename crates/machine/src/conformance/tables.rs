//! Page tables for the checks of translation.

use super::owned::Owned;
use crate::{Asid, Atomic, Frame, Memory, Mmu, Ordering, PAGE_SIZE, pte};
use core::sync::atomic::AtomicU32;

/// Frames the suite uses: the first ones that the machine hands over.
pub const FRAMES: usize = 16;

/// An address whose index differs at each level.
pub(super) const ADDRESS: usize = (3 << 39) | (5 << 30) | (7 << 21) | (9 << 12);
/// The page after it.
pub(super) const NEXT: usize = ADDRESS + PAGE_SIZE;

/// The ASID of the tables, and another one, which not every machine has.
pub(super) const ASID: Asid = Asid(0);
pub(super) const OTHER: Asid = Asid(1);

/// Bits of an entry that tasks may read through.
pub(super) const READ: u64 = pte::PRESENT | pte::USER;
/// Bits of an entry that tasks may write through.
pub(super) const WRITE: u64 = READ | pte::WRITABLE;

/// The suite's `index`-th frame.
pub(super) fn frame<M: Memory>(m: &Owned<M>, index: u32) -> Frame {
    let mut first = None;
    m.usable(&mut |range| first = first.or(Some(range.start)));
    Frame(first.expect("the machine has frames") + index)
}

/// The first of the 512 frames that the checks of large pages use besides: aligned to as many.
pub(super) fn large<M: Memory>(m: &Owned<M>) -> Frame {
    const COUNT: u32 = pte::ENTRIES as u32;
    let past = frame(m, FRAMES as u32).0;
    let mut found = None;
    m.usable(&mut |range| {
        let start = range.start.max(past).next_multiple_of(COUNT);
        found = found.or((start + COUNT <= range.end).then_some(Frame(start)));
    });
    found.expect("room for a large page")
}

/// An address space made of the suite's frames.
pub(super) struct Tables<M: Memory> {
    machine: Owned<M>,
    pub(super) root: Frame,
    next: AtomicU32,
}

impl<M: Mmu> Tables<M> {
    /// A space with the kernel's part and nothing else, which takes the suite's frames from the
    /// `first` on.
    pub(super) fn new(machine: &Owned<M>, first: u32) -> Self {
        let tables = Tables {
            machine: machine.clone(),
            root: frame(machine, first),
            next: AtomicU32::new(first),
        };
        tables.frame();
        if let Some(kernel) = machine.kernel_entries() {
            for place in kernel.places {
                let entry = machine.word(kernel.root, place).load(Ordering::Relaxed);
                machine
                    .word(tables.root, place)
                    .store(entry, Ordering::Relaxed);
            }
        }
        tables
    }

    /// A zeroed frame.
    pub(super) fn frame(&self) -> Frame {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        assert!((index as usize) < FRAMES, "the suite has no more frames");
        let frame = frame(&self.machine, index);
        self.machine.zero(frame);
        frame
    }

    /// The entry for `address` at `level`; makes the tables above it where they are missing.
    pub(super) fn entry_at(&self, address: usize, level: u32) -> &M::AtomicU64 {
        let mut table = self.root;
        for above in (level + 1..pte::LEVELS).rev() {
            let word = self.machine.word(table, pte::index(address, above));
            let entry = word.load(Ordering::Acquire);
            table = pte::frame(entry);
            if entry == 0 {
                table = self.frame();
                word.store(table.address() | WRITE, Ordering::Release);
            }
        }
        self.machine.word(table, pte::index(address, level))
    }

    /// The entry that maps the page at `address`.
    pub(super) fn entry(&self, address: usize) -> &M::AtomicU64 {
        self.entry_at(address, 0)
    }

    /// Maps the page at `address` to `frame`.
    pub(super) fn map(&self, address: usize, frame: Frame, bits: u64) {
        let entry = frame.address() | bits;
        self.entry(address).store(entry, Ordering::Release);
    }

    /// Maps the page at `address` to a new frame.
    pub(super) fn map_new(&self, address: usize, bits: u64) -> Frame {
        let frame = self.frame();
        self.map(address, frame, bits);
        frame
    }

    /// Maps the 2 MiB around `address` to the frames from [`large`] on; returns the frame at
    /// `address`, zeroed.
    pub(super) fn map_large(&self, address: usize, bits: u64) -> Frame {
        let first = large(&self.machine);
        let frame = Frame(first.0 + pte::index(address, 0) as u32);
        self.machine.zero(frame);
        let entry = first.address() | bits | pte::HUGE;
        self.entry_at(address, 1).store(entry, Ordering::Release);
        frame
    }
}
