//! Tables and chunks of PV entries, when no page can be freed.
//!
//! Memory that many spaces map costs each of them tables, which can fill memory though all of them
//! can be made again. So before an operation is refused, the pmaps are visited in rotation: a clock
//! hand goes round over their tags (in the VM's table of pmaps), and within each pmap another one
//! over its slots ([`Pmap::sweep`]). A pmap gives up some tables, and then the next one has its
//! turn. That is the order of FreeBSD's reclamation of PV entries (case study 002: a list of pmaps,
//! rotated, so that it approaches the least recently used), without the list.
//!
//! An operation that has been refused a frame may leave tables behind that it needs when it is
//! tried again. So tables alone do not let it try for ever: each time it asks for twice as
//! many, and after [`ROUNDS`] it is refused.
//!
//! # Chunks
//! Where PV entries come from chunks ([`PvChunks`]), removing mappings frees them, as FreeBSD does
//! when it has no frame for another chunk (`reclaim_pv_chunk`): [`PvChunks`] names the next chunk,
//! and its mappings of pages that can be found again are removed.
//!
//! [`Pmap::sweep`]: crate::Pmap

use crate::system::{PvChunks, System};
use crate::vm::{TAGS, Vm};

/// The number of tables that a pmap gives up before the next one has its turn.
const SHARE: usize = 8;

/// The number of tries of an operation that reclaim tables.
pub(super) const ROUNDS: u32 = 8;

/// The number of chunks that are searched for one that can be emptied.
const LOOKS: usize = 256;

impl<S: System> Vm<S> {
    /// Frees about `wanted` leaf tables that can be made again: those without entries, and those
    /// that map pages of objects only, which are not locked in memory. Returns their number; 0
    /// means that there were none. O(slots of all spaces) at most. The caller holds no lock of the
    /// VM's.
    pub fn reclaim_tables(&self, wanted: usize) -> usize {
        self.hand().reclaiming(|| self.visit_pmaps(wanted))
    }

    fn visit_pmaps(&self, wanted: usize) -> usize {
        let first = self.hand().next_tag();
        debug_assert!(first <= TAGS, "there is no tag {first}");
        let mut freed = 0;
        for mut tags in [first..TAGS, 0..first] {
            while freed < wanted
                && let Some((tag, pmap)) = self.roster().first(tags.clone())
            {
                tags.start = tag + 1;
                // Before the visit: a task that comes meanwhile begins with another.
                self.hand().set_next_tag(tag + 1);
                freed += pmap.sweep(SHARE.min(wanted - freed));
            }
        }
        freed
    }

    /// Removes about `wanted` mappings whose entries are in chunks, and returns their number: only
    /// mappings of objects' pages that are not locked in memory, which can be made again. The
    /// caller holds no lock of the VM's.
    pub fn reclaim_chunks(&self, wanted: usize) -> usize {
        let Some(chunks) = self.pv_chunks() else {
            return 0;
        };
        self.hand().reclaiming(|| {
            let (mut looks, mut gone) = (0, 0);
            while gone < wanted
                && looks < LOOKS
                && let Some(found) = self.empty_next_of(chunks)
            {
                looks += 1;
                gone += found;
            }
            gone
        })
    }

    /// Empties the next chunk as far as possible, and returns the number of mappings removed.
    /// `None` if there are no chunks.
    fn empty_next_of(&self, chunks: &S::PvChunks) -> Option<usize> {
        let victim = chunks.next_victim(self.machine())?;
        let tag = usize::from(victim.tag.0);
        let found = self.roster().first(tag..tag + 1);
        Some(found.map_or(0, |(_, pmap)| pmap.empty_chunk(victim)))
    }
}
