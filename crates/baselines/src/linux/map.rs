//! A space's VMAs, in order, and how they are split and merged.
//!
//! Linux 2.6.39, `mm/mmap.c`: `vma_merge`, `vma_adjust`, `split_vma`, `do_munmap`, `dup_mmap`, with
//! their locks: moving an end alone takes no anon_vma lock (`brk` that grows), every other change
//! of a VMA that has touched anonymous memory takes its root's; any change of a file's mapping
//! takes the file's. Linux's list and red-black tree are one ordered map here. A change of rights
//! splits first and merges then, where Linux moves a border at once.

use super::Version;
use super::change::Change;
use super::list::Pinned;
use super::vma::Vma;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use machine::{Machine, VaRange};
use vm::Prot;

/// The VMAs by their starts. Under the map's lock.
pub(super) struct Map<M: Machine, V: Version>(BTreeMap<usize, Pinned<Vma<M, V>>>);

impl<M: Machine, V: Version> Map<M, V> {
    pub(super) fn new() -> Self {
        Map(BTreeMap::new())
    }

    /// The VMA at `address`.
    pub(super) fn find(&self, address: usize) -> Option<&Vma<M, V>> {
        let (_, vma) = self.0.range(..=address).next_back()?;
        (address < vma.range().end).then_some(vma)
    }

    /// The last VMA that begins before `address`.
    fn before(&self, address: usize) -> Option<&Vma<M, V>> {
        self.0.range(..address).next_back().map(|(_, vma)| &**vma)
    }

    /// The first VMA that begins at `address` or above.
    fn after(&self, address: usize) -> Option<&Vma<M, V>> {
        self.0.range(address..).next().map(|(_, vma)| &**vma)
    }

    /// The VMAs, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Vma<M, V>> {
        self.0.values().map(|vma| &**vma)
    }

    /// The VMAs that overlap `range`.
    pub(super) fn within(&self, range: VaRange) -> impl Iterator<Item = &Vma<M, V>> {
        let first = self
            .find(range.start)
            .map_or(range.start, |vma| vma.range().start);
        self.0
            .range(first..range.end.max(first))
            .map(|(_, vma)| &**vma)
    }

    /// A neighbour of `vma` whose anon_vma it may share (`find_mergeable_anon_vma`): one that could
    /// merge with it if rights were the same, and has inherited nothing.
    pub(super) fn neighbour(&self, vma: &Vma<M, V>) -> Option<&Vma<M, V>> {
        let VaRange { start, end } = vma.range();
        let next = self.0.get(&end).map(|next| &**next);
        let next = next.filter(|next| vma.goes_on_in(next, false) && next.is_alone());
        next.or_else(|| {
            let before = self.before(start)?;
            (before.goes_on_in(vma, false) && before.is_alone()).then_some(before)
        })
    }

    /// Adds `new`, in an empty range: merges it with a neighbour, or inserts it.
    pub(super) fn insert(&mut self, mm: &Change<'_, M, V>, new: Pinned<Vma<M, V>>) {
        let VaRange { start, end } = new.range();
        let before = self.before(start).filter(|vma| vma.goes_on_in(&new, true));
        let next = self.0.get(&end).filter(|next| new.goes_on_in(next, true));
        match (before, next) {
            (Some(before), _) => {
                let range = VaRange {
                    end,
                    ..before.range()
                };
                Self::adjust(mm, before, range, None);
                mm.covers(VaRange { start, end }, before);
                self.merge(mm, end);
            }
            (None, Some(next)) => {
                let key = end;
                let range = VaRange {
                    start,
                    ..next.range()
                };
                Self::adjust(mm, next, range, None);
                mm.covers(VaRange { start, end }, next);
                if let Some(next) = self.0.remove(&key) {
                    self.0.insert(start, next);
                }
            }
            (None, None) => {
                Self::list(&new);
                mm.relinks(self.before(start), self.after(end));
                mm.covers(new.range(), &new);
                self.0.insert(start, new);
            }
        }
    }

    /// Removes the VMAs in `range`; those that extend beyond it are split.
    pub(super) fn remove(&mut self, mm: &Change<'_, M, V>, range: VaRange) {
        self.split_off(mm, range);
        let keys: Vec<usize> = self
            .0
            .range(range.start..range.end)
            .map(|(&key, _)| key)
            .collect();
        for key in keys {
            if let Some(gone) = self.0.remove(&key) {
                mm.lock(&gone);
                mm.relinks(self.before(key), self.after(gone.range().end));
                mm.uncovers(gone.range());
                mm.anon.unlink(&gone);
                Self::unlist(&gone);
                mm.retire(gone);
            }
        }
    }

    /// Splits the VMAs that extend beyond `range`.
    pub(super) fn split_off(&mut self, mm: &Change<'_, M, V>, range: VaRange) {
        self.split(mm, range.start, false);
        self.split(mm, range.end, true);
    }

    /// Sets the rights of the VMAs in `range`.
    pub(super) fn protect(&mut self, mm: &Change<'_, M, V>, range: VaRange, prot: Prot) {
        self.split(mm, range.start, false);
        self.split(mm, range.end, false);
        let mut borders: Vec<usize> = Vec::new();
        for (&start, vma) in self.0.range(range.start..range.end) {
            mm.lock(vma);
            vma.set_prot(prot);
            borders.push(start);
        }
        borders.push(range.end);
        borders
            .into_iter()
            .for_each(|border| self.merge(mm, border));
    }

    /// Copies the VMAs for a child. Each VMA's family grows by one.
    pub(super) fn fork(&self, mm: &Change<'_, M, V>) -> Self {
        let copy = |vma: &Vma<M, V>| {
            mm.lock(vma);
            let child = Vma::new(
                vma.range(),
                vma.prot(),
                vma.kind.clone(),
                vma.first(),
                vma.lock().is_some(),
            );
            mm.anon.fork(&child, vma);
            Self::list(&child);
            (vma.range().start, child)
        };
        Map(self.iter().map(copy).collect())
    }

    /// Splits the VMA that contains `at`; the new one is `below` it, or above.
    fn split(&mut self, mm: &Change<'_, M, V>, at: usize, below: bool) {
        let Some(old) = self.find(at).filter(|vma| vma.range().start < at) else {
            return;
        };
        let VaRange { start, end } = old.range();
        let lower = VaRange { start, end: at };
        let upper = VaRange { start: at, end };
        let (kept, range) = if below {
            (upper, lower)
        } else {
            (lower, upper)
        };
        let first = old.index_of(range.start);
        let new = Vma::new(
            range,
            old.prot(),
            old.kind.clone(),
            first,
            old.lock().is_some(),
        );
        if let Some(shared) = old.anon_vma() {
            mm.anon.clone_chain(&new, old);
            new.set_anon_vma(shared);
        }
        Self::adjust(mm, old, kept, Some(&new));
        if below && let Some(old) = self.0.remove(&start) {
            self.0.insert(at, old);
        }
        mm.covers(range, &new);
        mm.relinks(self.before(range.start), self.after(range.end));
        self.0.insert(range.start, new);
    }

    /// Merges the VMAs that meet at `border`, if nothing but their ranges differs.
    fn merge(&mut self, mm: &Change<'_, M, V>, border: usize) {
        let (Some(before), Some(next)) = (self.before(border), self.0.get(&border)) else {
            return;
        };
        // Either may have no anon_vma; two different ones are not merged.
        let mergeable = match (before.anon_vma(), next.anon_vma()) {
            (Some(before), Some(next)) => before == next,
            _ => true,
        };
        if !mergeable || !before.goes_on_in(next, true) {
            return;
        }
        if let (None, Some(shared)) = (before.anon_vma(), next.anon_vma()) {
            mm.anon.clone_chain(before, next);
            before.set_anon_vma(shared);
        }
        let end = next.range().end;
        let range = VaRange {
            end,
            ..before.range()
        };
        mm.lock(before);
        mm.lock(next);
        {
            let mappings = before.kind.file.as_ref().map(|file| file.mappings().lock());
            let _root = mm.anon.lock(before);
            before.set_range(range);
            if let Some(mappings) = mappings {
                // SAFETY: every VMA of a file is listed.
                unsafe { mappings.remove(&next.shared) };
            }
        }
        mm.covers(next.range(), before);
        if let Some(next) = self.0.remove(&border) {
            mm.relinks(self.before(border), self.after(end));
            mm.anon.unlink(&next);
            mm.retire(next);
        }
    }

    /// Moves the borders of `vma`; `split` is the part that has been split off.
    fn adjust(mm: &Change<'_, M, V>, vma: &Vma<M, V>, range: VaRange, split: Option<&Vma<M, V>>) {
        mm.lock(vma);
        let mappings = vma.kind.file.as_ref().map(|file| file.mappings().lock());
        if let (Some(mappings), Some(new)) = (&mappings, split) {
            // SAFETY: the VMA is new, and boxed.
            unsafe { mappings.push(&new.shared) };
        }
        let end_only = split.is_none() && range.start == vma.range().start;
        let _root = if end_only { None } else { mm.anon.lock(vma) };
        vma.set_range(range);
    }

    /// Adds a mapping of a file to the file's list.
    fn list(vma: &Vma<M, V>) {
        if let Some(file) = &vma.kind.file {
            // SAFETY: the VMA is new, and boxed.
            unsafe { file.mappings().lock().push(&vma.shared) };
        }
    }

    /// Removes a mapping of a file from the file's list.
    fn unlist(vma: &Vma<M, V>) {
        if let Some(file) = &vma.kind.file {
            // SAFETY: every VMA of a file is listed.
            unsafe { file.mappings().lock().remove(&vma.shared) };
        }
    }
}
