//! Tables, when there are no pages to be had.
//!
//! Memory that many map costs each of them tables, and they can fill memory though all of
//! them could be made again. So before an operation is refused, the pmaps are visited in
//! rotation: a hand goes round over their tags ([`crate::roster`]), and within each pmap another
//! one over its slots ([`Pmap::sweep`]). A pmap gives up some tables, and it is the next one's
//! turn. That is the order of FreeBSD's reclamation of PV entries (seed 002: a list of pmaps,
//! rotated, so that it approaches the least recently used), without the list.
//!
//! An operation that has been refused a frame may leave tables behind that it needs when it is
//! tried again. So tables alone do not let it try for ever: each time it asks for twice as
//! many, and after [`ROUNDS`] it is refused.
//!
//! [`Pmap::sweep`]: crate::pmap::Pmap::sweep

use crate::policy::Policies;
use crate::roster::TAGS;
use crate::vm::Vm;
use machine::Platform;

/// Tables that a pmap gives up before it is the next one's turn.
const SHARE: usize = 8;

/// How often an operation is tried again with tables.
pub(super) const ROUNDS: u32 = 8;

impl<M: Platform, P: Policies<M>> Vm<M, P> {
    /// Frees about `wanted` leaf tables that can be made again: those without entries, and those
    /// that map pages of objects only, which are not locked in memory. How many it did; 0 says
    /// that there were none. O(slots of all spaces) at most. The caller holds no lock of the VM's.
    pub fn reclaim_tables(&self, wanted: usize) -> usize {
        self.reclaiming(|| self.visit_pmaps(wanted))
    }

    fn visit_pmaps(&self, wanted: usize) -> usize {
        let first = self.hand().next_tag();
        let mut freed = 0;
        for mut tags in [first..TAGS, 0..first] {
            while freed < wanted
                && let Some((tag, pmap)) = self.roster().first(tags.clone())
            {
                tags.start = tag + 1;
                // Before the visit: who comes meanwhile begins with another.
                self.hand().set_next_tag(tag + 1);
                freed += pmap.sweep(SHARE.min(wanted - freed));
            }
        }
        freed
    }
}
