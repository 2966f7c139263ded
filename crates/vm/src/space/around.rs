//! Fault-around: a read of an object's page also maps the neighbouring pages that are in memory.
//!
//! Text and files are mostly read page after page, so one fault replaces many. The neighbours lie
//! in one aligned block, in one mapping and one slot, and are mapped with the same rights as the
//! page, while the slot is still locked; nothing is read in, and nothing waited for. Their accessed
//! bits are clear: neighbours that no task reads age as before.

use super::fault::Faulting;
use crate::flags::Flags;
use crate::system::System;
use machine::{Frame, PAGE_SIZE, VaRange};

impl<S: System> Faulting<'_, '_, S> {
    /// Maps the neighbours of the page, which has been mapped for reading, if they are likely to be
    /// read. O(levels of the object + pages of the block).
    #[inline]
    pub(super) fn around(&mut self) {
        let pages = self.space.vm.fault_around();
        if !self.writes && pages > 1 && !self.flags.has(Flags::RANDOM) {
            self.map_around(pages * PAGE_SIZE);
        }
    }

    /// Maps the pages around the fault, in a block of `size` bytes.
    fn map_around(&mut self, size: usize) {
        debug_assert!(size.is_power_of_two(), "no aligned block has {size} bytes");
        let address = self.part.range().start;
        let block = self.part.again(VaRange::sized(address & !(size - 1), size));
        let (Some(range), Some((object, index))) = (block.mapping_of(address), self.object) else {
            return;
        };
        let first = index - ((address - range.start) / PAGE_SIZE) as u64;
        let place = |index| range.start + (index - first) as usize * PAGE_SIZE;
        // SAFETY: as in `Faulting::mapped_object`.
        let shown = unsafe { &*object }
            .object()
            .all_shown(first..first + range.pages() as u64);
        if self.space.vm.lists_objects() {
            return shown.for_each(|(index, page)| {
                let neighbour = Faulting {
                    space: self.space,
                    op: &mut *self.op,
                    part: self.part.again(VaRange::sized(place(index), PAGE_SIZE)),
                    flags: self.flags,
                    writes: self.writes,
                    object: Some((object, index)),
                };
                neighbour.list_shown(page);
            });
        }
        let mut block = self.part.again(range);
        let rights = self.object_rights();
        let pages = shown.map(|(index, page)| (place(index), page));
        let pmap = &self.space.pmap;
        pmap.make_all_attached(&mut block, pages, rights);
    }

    /// Maps the object's page in `frame`, which it has shown since the slot was locked, if nothing
    /// is mapped here, and lists the mapping.
    fn list_shown(mut self, frame: Frame) {
        let (vm, pmap) = (&self.space.vm, &self.space.pmap);
        if pmap.bits_at(&self.part) == 0
            && let Some(page) = vm.page_ref(frame)
            && pmap.prepare(&mut self.part).is_ok()
        {
            self.object_page(page.into_frame());
        }
    }
}
