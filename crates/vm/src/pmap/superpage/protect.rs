//! Other rights for all of a superpage.

use super::frame_at;
use crate::pmap::flush::Gather;
use crate::pmap::{Pmap, entry};
use crate::policy::Policies;
use crate::prot::Prot;
use crate::tree::{Part, Size};
use machine::{Atomic, Ordering, Platform, pte};

impl<M: Platform, P: Policies<M>> Pmap<M, P> {
    /// Gives the pages of `part` the rights `prot`, if they are all of a superpage that can
    /// have them; else they are mapped by pages from now on, and `false` says that it is to be done
    /// there.
    pub(in crate::pmap) fn protect_superpage(
        &self,
        part: &mut Part<'_, M, P>,
        prot: Prot,
        shared: bool,
        gather: &mut Gather,
    ) -> bool {
        if part.size() == Size::Pages {
            return false;
        }
        if !part.is_all() {
            self.split(part);
        } else if part.size() == Size::Superpage {
            let superpage = self.superpage(part.range().start);
            let first = pte::frame(superpage.load(Ordering::Relaxed));
            let ours = |index| self.vm.is_exclusive(frame_at(first, index));
            if !prot.writes() || shared || (0..pte::ENTRIES).all(ours) {
                if self.give_rights(superpage, entry::rights(prot, true)) || self.is_forking() {
                    // The flush of one page forgets all.
                    gather.touch(part.range().start);
                }
                return true;
            }
            self.demote(part);
        }
        false
    }
}
