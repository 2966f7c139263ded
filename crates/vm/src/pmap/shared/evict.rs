//! Taking a page away from a table that several have.

use crate::page::{Page, PvList};
use crate::pmap::listed::Members;
use crate::pmap::{How, Pv, entry};
use crate::policy::Policies;
use crate::tree::Kind;
use crate::vm::Vm;
use machine::{Atomic, Flush, Ordering, PAGE_SIZE, Platform, VaRange, pte};

impl<M: Platform, P: Policies<M>> Vm<M, P> {
    /// Clears and flushes the mapping of `pv`, the first on `list`, whose table `members` have; how
    /// many mappings that were. The caller's hold keeps the page.
    ///
    /// # Safety
    /// They are those of `pv`, a locked family of several.
    pub(in crate::pmap) unsafe fn take_from(
        &self,
        members: &Members<'_, M>,
        list: &mut PvList<'_, M, P>,
        pv: Pv,
        how: How,
    ) -> usize {
        let machine = self.machine();
        // SAFETY: the list is locked.
        let (leaf, address) = unsafe { (pv.leaf(machine), pv.address(machine)) };
        if let Some(slot) = how.slot {
            self.retain_swapped(slot);
        }
        let next = how.slot.map_or(0, entry::swapped);
        let entry = machine.word(leaf, pte::index(address, 0));
        // AcqRel: as in `Pmap::clear`.
        let old = entry.swap(next, Ordering::AcqRel);
        list.set_flags(Page::<M, P::Invalidation>::harvest(old));
        // SAFETY: the mapping's, so it is on this list.
        unsafe { list.remove(machine, pv) };
        for member in members.all() {
            // SAFETY: a member has not left, since the family is locked.
            let (pmap, slot) = unsafe { member.get::<M, P>() };
            slot.add(Kind::Private, -1);
            if next != 0 {
                slot.add(Kind::Swapped, 1);
            }
            pmap.count_resident(-1);
            pmap.flush(Flush::Range(VaRange::sized(address, PAGE_SIZE)));
        }
        self.release_page(pte::frame(old));
        members.all().len()
    }
}
