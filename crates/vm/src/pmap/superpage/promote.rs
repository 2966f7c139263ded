//! Promotion of pages to a superpage.

use super::{USED, piece, table};
use crate::pmap::{Pmap, entry};
use crate::system::System;
use crate::tree::{Kind, Part, Size};
use machine::{Atomic, AtomicInt, Flush, Frame, Memory, Ordering, pte};

impl<S: System> Pmap<S> {
    /// Maps the slot of `part` by a superpage, if all its pages are at their places with equal
    /// rights. O(1) as long as some are missing.
    #[inline]
    pub(crate) fn promote(&self, part: &mut Part<'_, S>) {
        if part.size() == Size::Run && part.slot().count(Kind::Private) == pte::ENTRIES {
            self.promote_full(part);
        }
    }

    #[cold]
    fn promote_full(&self, part: &mut Part<'_, S>) {
        let leaf = part.leaf();
        let Some(leaf_frame) = leaf.get() else {
            return;
        };
        let Some(alike) = self.alike(leaf_frame) else {
            return;
        };
        machine::invariant!(
            S::Machine: part.is_uniform_private(),
            "a superpage is one mapping of private memory"
        );
        let range = part.slot_range();
        let run = self.lock_run(pte::frame(alike));
        let superpage = self.superpage(range.start);
        // Release: a walker that finds the superpage finds its pages' content.
        let old = superpage.swap(alike | pte::HUGE, Ordering::AcqRel);
        debug_assert_eq!(old, table(leaf), "the slot's table was not in use");
        machine::invariant!(
            S::Machine: self.is_run_locked(pte::frame(alike)),
            "a superpage begins under the PV locks of its pages"
        );
        self.flush(Flush::Range(range));
        // No walker reaches the table any more; this collects the marks made there until now.
        let used = self.entries(leaf_frame).fold(0, |used, bits| used | bits);
        superpage.fetch_or(used & USED, Ordering::Relaxed);
        part.set_size(Size::Superpage);
        drop(run);
    }

    /// The first entry of `leaf`, if all entries map one block with equal rights; the walker's
    /// marks may differ.
    fn alike(&self, leaf: Frame) -> Option<u64> {
        let first = self.entries(leaf).next()?;
        let is_aligned = pte::frame(first).index().is_multiple_of(pte::ENTRIES);
        if first & pte::PRESENT == 0 || entry::kind(first) != Kind::Private || !is_aligned {
            return None;
        }
        // From the end: tasks mostly give back rights in ascending order.
        let mut entries = self.entries(leaf).enumerate().rev();
        let alike = entries.all(|(index, bits)| (bits ^ piece(first, index)) & !USED == 0);
        alike.then_some(first)
    }

    /// All entries of `leaf`.
    fn entries(&self, leaf: Frame) -> impl DoubleEndedIterator<Item = u64> + ExactSizeIterator {
        let machine = self.vm.machine();
        // SAFETY: a leaf table, whose slot is locked.
        let word = move |index| unsafe { machine.word(leaf, index) };
        (0..pte::ENTRIES).map(move |index| word(index).load(Ordering::Relaxed))
    }
}
