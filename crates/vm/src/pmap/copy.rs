//! Sharing pages with a child, and ceasing to.
//!
//! Fork makes the entries of private pages read-only on both sides; the pages are then
//! known to be shared because they have more than one reference. Or it makes the entry read-only
//! that leads to all of them ([`super::shared`]). It flushes once, at its
//! end. Until then other CPUs of the parent may still write such a page: the child does
//! not run yet and sees what they write, as they do themselves. Who in the meantime relies
//! on an entry being read-only flushes first: `protect_locked` asks
//! [`Pmap::is_forking`], and a copy is only made of a page whose mapping is gone and
//! flushed.

use super::entry::{self, Entry};
use super::{Pmap, Table};
use crate::error::Error;
use crate::policy::Policies;
use crate::prot::Prot;
use crate::tree::{Kind, Part};
use machine::{Atomic, AtomicInt, Flush, Frame, Ordering, PAGE_SIZE, Platform, VaRange, pte};

/// A fork under way. The flush is due when it ends, also if it fails.
pub(crate) struct Forking<'a, M: Platform, P: Policies<M>>(&'a Pmap<M, P>);

impl<M: Platform, P: Policies<M>> Pmap<M, P> {
    /// Begins a fork, before the first slot is locked.
    pub(crate) fn fork(&self) -> Forking<'_, M, P> {
        // Relaxed: the slots' locks order it before what others read under them.
        self.forks.fetch_add(1, Ordering::Relaxed);
        Forking(self)
    }

    /// Whether TLBs may know entries as writable that a fork has made read-only. Under
    /// the lock of their slots.
    pub(super) fn is_forking(&self) -> bool {
        // Acquire: pairs with the release of the fork that has flushed.
        self.forks.load(Ordering::Acquire) != 0
    }

    /// Puts `frame`, with the content of the page at the start of `part`, in that page's
    /// place, for tasks to write. The caller's reference becomes the mapping's.
    ///
    /// The mapping is gone and flushed before the page is copied, so nothing that tasks of
    /// this space have written is missing.
    pub(crate) fn replace(
        &self,
        part: &mut Part<'_, M, P>,
        frame: Frame,
        prot: Prot,
    ) -> Result<(), Error> {
        self.prepare(part)?;
        let old = self.take_out(part);
        self.vm.machine().copy(old, frame);
        self.vm.release_page(old);
        self.link(part, entry::page(frame, Kind::Private, prot, true));
        Ok(())
    }

    /// Takes the page at the start of `part` away: no CPU of this space reaches it any more.
    pub(crate) fn undo(&self, part: &mut Part<'_, M, P>) {
        let frame = self.take_out(part);
        self.vm.release_page(frame);
    }

    /// Empties the entry at the start of `part`, which names a slot of the swap space; the
    /// entry's reference of the slot is the caller's.
    pub(crate) fn forget_slot(&self, part: &mut Part<'_, M, P>) {
        let address = part.range().start;
        self.clear(part, address, 0);
    }

    /// Takes the page at the start of `part` away from it: no CPU of this space reaches it
    /// any more. The mapping's reference is the caller's. Under the slot's lock.
    fn take_out(&self, part: &mut Part<'_, M, P>) -> Frame {
        let Entry::Page { frame, .. } = self.entry_at(part) else {
            unreachable!("the caller has found a page here");
        };
        let mut list = self.vm.lock_pv(frame);
        self.detach(part, &mut list, 0)
    }
}

impl<M: Platform, P: Policies<M>> Forking<'_, M, P> {
    /// The parent.
    pub(super) fn parent(&self) -> &Pmap<M, P> {
        self.0
    }

    /// Gets tables of its own for the parent's slot of `part`.
    pub(crate) fn own(&self, part: &mut Part<'_, M, P>) -> Result<(), Error> {
        self.0.own(part)
    }

    /// Makes the parent's slot of `part` one whose pages can be shared one by one.
    pub(crate) fn demote(&self, part: &mut Part<'_, M, P>) {
        self.0.demote(part);
    }

    /// Gives the child, whose `to` is the same place, the private pages that a slot with
    /// this table has at `range`, and ceases to write them alone. An object's pages stay away: the child
    /// finds them where the parent did. Under the locks of both slots.
    pub(crate) fn share(
        &self,
        leaf: Table,
        range: VaRange,
        child: &Pmap<M, P>,
        to: &mut Part<'_, M, P>,
    ) -> Result<(), Error> {
        for (address, bits) in self.0.used(leaf, range) {
            let mut to = to.cut(VaRange::sized(address, PAGE_SIZE));
            match entry::kind(bits) {
                Kind::Object => {}
                Kind::Private => {
                    child.prepare(&mut to)?;
                    let bits = self.0.write_protect(leaf, address);
                    self.0.vm.page(pte::frame(bits)).retain();
                    child.link(&mut to, bits & !(pte::DIRTY | pte::ACCESSED));
                }
                Kind::Swapped => {
                    child.prepare_leaf(&mut to)?;
                    if let Entry::Swapped(slot) = Entry::decode(bits) {
                        self.0.vm.retain_swapped(slot);
                    }
                    child.write(&mut to, bits);
                }
            }
        }
        Ok(())
    }
}

impl<M: Platform, P: Policies<M>> Pmap<M, P> {
    /// Makes the entry at `address` read-only; returns what it is then. Flushes nothing.
    fn write_protect(&self, leaf: Table, address: usize) -> u64 {
        let leaf = leaf.get().expect("a mapping has a table");
        let entry = self.entry(leaf, 0, address);
        // AcqRel: the walker may set accessed and dirty, as in `remove`.
        entry.fetch_and(!pte::WRITABLE, Ordering::AcqRel) & !pte::WRITABLE
    }
}

impl<M: Platform, P: Policies<M>> Drop for Forking<'_, M, P> {
    fn drop(&mut self) {
        self.0.flush(Flush::All);
        // Release: who finds no fork finds it flushed. Pairs with `is_forking`.
        self.0.forks.fetch_sub(1, Ordering::Release);
    }
}
