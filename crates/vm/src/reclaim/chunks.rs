//! Chunks of PV entries, when there are no pages to be had.
//!
//! Where entries come from chunks ([`PvChunks`]) mappings can go to free them, as FreeBSD does when
//! it has no frame for another chunk (`reclaim_pv_chunk`): the policy names whose turn it is, and the
//! mappings of pages that are found again go.

use crate::policy::{MapLocking, Policies, PvChunks};
use crate::vm::Vm;
use machine::Platform;

/// Addresses that are gathered of one chunk.
const GATHERED: usize = 168;

/// Chunks that are looked at for one that can be emptied.
const LOOKS: usize = 256;

impl<M: Platform, P: Policies<M>> Vm<M, P> {
    /// Takes mappings away whose entries are in chunks, about `wanted`; how many it did. Only those of
    /// objects' pages that are not locked in memory: they can be made again. The caller holds no
    /// lock of the VM's.
    pub fn reclaim_chunks(&self, wanted: usize) -> usize {
        if !self.pv_chunks().is_used() {
            return 0;
        }
        self.reclaiming(|| {
            let (mut looks, mut gone) = (0, 0);
            while gone < wanted
                && looks < LOOKS
                && let Some(found) = self.empty_next_chunk()
            {
                looks += 1;
                gone += found;
            }
            gone
        })
    }

    /// Empties the chunk whose turn it is as far as that goes; how many mappings went. `None` if
    /// there are no chunks.
    fn empty_next_chunk(&self) -> Option<usize> {
        let victim = self.pv_chunks().next_victim(self.machine())?;
        let tag = usize::from(victim.tag.0);
        let Some((_, pmap)) = self.roster().first(tag..tag + 1) else {
            return Some(0);
        };
        let (mut addresses, mut count) = ([0; GATHERED], 0);
        {
            let _lock = pmap.locking.pmap();
            let see = |address| {
                if count < GATHERED {
                    addresses[count] = address;
                    count += 1;
                }
            };
            self.pv_chunks()
                .mappings_of(self.machine(), pmap.chunks(), victim, see);
        }
        // They may have changed meanwhile: then others that may go do, or none.
        let gone = addresses[..count]
            .iter()
            .filter(|&&at| pmap.spare_mapping(at));
        Some(gone.count())
    }
}
