//! Moving pages to other addresses of the space.

use super::Pmap;
use super::entry::{self, Entry};
use super::flush::Gather;
use crate::error::Error;
use crate::policy::Policies;
use crate::tree::{Kind, Part, Two};
use core::ptr;
use machine::{PAGE_SIZE, Platform, VaRange};

impl<M: Platform, P: Policies<M>> Pmap<M, P> {
    /// Gets the memory that it takes to move the pages of `from` to `to`, which is as long;
    /// both are locked. After an error nothing has changed, but that tables made so far
    /// stay with their slots, as tables do.
    pub(crate) fn prepare_move(
        &self,
        locked: &Two<'_, M, P>,
        from: VaRange,
        to: VaRange,
    ) -> Result<(), Error> {
        let prepared = self.tree.parts_of(locked, to).try_for_each(|mut part| {
            let at = part.range().start - to.start + from.start;
            let source = VaRange::sized(at, part.range().len());
            let (mut pages, mut slots) = (0, 0);
            for source in self.tree.parts_of(locked, source) {
                for (_, bits) in self.used(source.leaf(), source.range()) {
                    match entry::kind(bits) {
                        Kind::Swapped => slots += 1,
                        Kind::Private | Kind::Object => pages += 1,
                    }
                }
            }
            // A chunk that nothing is put into would never be given back.
            match (pages, slots) {
                (0, 0) => Ok(()),
                (0, _) => self.prepare_leaf(&mut part).map(drop),
                _ => self.prepare_many(&mut part, pages),
            }
        });
        if prepared.is_err() {
            for mut part in self.tree.parts_of(locked, to) {
                self.trim_chunks(&mut part);
            }
        }
        prepared
    }

    /// Moves what `from` has to `to`, which has nothing. It is prepared. When it returns, no
    /// CPU reaches the pages at their old addresses.
    ///
    /// A page stays on some mapping's list all the time, so nobody takes it for unmapped:
    /// no delayed invalidation.
    pub(crate) fn move_pages(&self, locked: &Two<'_, M, P>, from: VaRange, to: VaRange) {
        let mut gather = Gather::new();
        for mut part in self.tree.parts_of(locked, from) {
            let range = part.range();
            self.split(&mut part);
            for (address, bits) in self.used(part.leaf(), range) {
                let at = address - from.start + to.start;
                let page = VaRange::sized(at, PAGE_SIZE);
                for mut target in self.tree.parts_of(locked, page) {
                    self.move_page(&mut part, address, &mut target, bits);
                }
                gather.touch(address);
            }
        }
        self.settle(&mut gather);
    }

    /// Moves the entry at `address` of `part` to the start of `target`.
    fn move_page(
        &self,
        part: &mut Part<'_, M, P>,
        address: usize,
        target: &mut Part<'_, M, P>,
        bits: u64,
    ) {
        let Entry::Page { frame, .. } = Entry::decode(bits) else {
            let old = self.clear(part, address, 0);
            return self.write(target, old);
        };
        // SAFETY: the target's lock is held, and there is room.
        let pv = unsafe {
            let at = target.range().start;
            target.inside().chunks.take(at)
        };
        let mut list = self.vm.page(frame).lock_pv();
        let old_pv = list.find(ptr::from_ref(part.slot()).cast(), address);
        let old_pv = old_pv.expect("a mapping has a PV entry");
        let old = self.clear(part, address, 0);
        // SAFETY: one is fresh, the other just found on this list.
        unsafe {
            list.insert(pv);
            list.remove(old_pv);
        }
        drop(list);
        self.write(target, old);
        self.free_pv(part, old_pv);
    }
}
