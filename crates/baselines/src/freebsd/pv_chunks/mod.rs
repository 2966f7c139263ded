//! PV entries in chunks, as in FreeBSD's pmap.
//!
//! A chunk is a frame of 168 entries of 24 bytes (address, next, previous) that belongs to one
//! pmap, with a bitmap of the free ones ([`chunk`]). A pmap's chunks form a list, those with room
//! in front, under the pmap's lock. To unmap a page, the pmap searches the page's list for its own
//! entry (`pmap_pvh_remove`).
//!
//! # Victims
//! When no frame is left for a chunk, another chunk loses its mappings. The order of victims:
//! - [`Order::Chunks`]: all chunks are in a list (`pv_chunks`, by `pc_lru`) under one mutex, the
//!   oldest first; a kernel built for NUMA has one list for each domain, half of the CPUs here
//!   or, with [`Order::Nodes`], the machine's node. Adding or removing a chunk
//!   takes the mutex; an operation that ends with several empty chunks takes it once
//!   (`free_pv_chunk_batch`; FreeBSD does so only at exit).
//! - [`Order::Pmaps`] (the "after" of case study 002): pmaps are in a list, entered once with the
//!   first use of their tag, as the constructor of FreeBSD's zone enters them; a tag stays in the
//!   list after its pmap's end. Reclaim rotates that list, and the pmap's own. Adding or removing a
//!   chunk takes no shared lock.
//!
//! # Locks
//! A lock of their own guards a pmap's chunks, where FreeBSD relies on the pmap's: it is never
//! contended, since the VM holds the pmap's lock. The mutex of the order, rank 44, comes after it.
//!
//! The differences: a frame for a chunk is requested before the mapping is made, so without one the
//! whole operation is retried after reclaim, not the chunk alone; superpages keep an entry for each
//! page; a chunk stays with its pmap until the operation that has emptied it ends.

mod chunk;
mod domains;
mod of_pmap;
mod pmaps;

use super::domain::DOMAINS;
use chunk::Chunk;
use domains::Domains;
use machine::{Asid, Frame, Machine, Memory};
use of_pmap::OfPmap;
use pmaps::Pmaps;
use sync::{Padded, lock_class};
use vm::Error;
use vm::pv::Pv;
use vm::system::{Extent, Part, PvChunks, Victim};

lock_class!(
    /// All chunks of a domain, by age (`pvc_lock`); or all pmaps.
    pub PvChunkList = "pv chunk list", rank 44
);
lock_class!(
    /// A pmap's chunks. Under the pmap's lock.
    pub PmapChunks = "pmap chunks", rank 43
);

/// Which chunk loses its mappings next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The oldest chunk, of each domain in turn.
    Chunks {
        /// The number of lists; at least one.
        domains: usize,
    },
    /// The oldest chunk, of each NUMA node in turn.
    Nodes,
    /// The first chunk of the pmap that has been spared for the longest time.
    Pmaps,
}

impl Default for Order {
    fn default() -> Self {
        Order::Chunks { domains: 1 }
    }
}

/// Chunks of PV entries.
pub enum Chunks<M: Machine> {
    /// For [`Order::Chunks`] and [`Order::Nodes`].
    ByChunk(Domains<M>),
    /// For [`Order::Pmaps`].
    ByPmap(Pmaps<M>),
}

/// A pmap's chunks, on cache lines of their own.
pub type PmapState<M> = Padded<OfPmap<M>>;

impl<M: Machine> Part<M> for Chunks<M> {
    type Config = Order;

    fn new(order: &Order, extent: Extent) -> Result<Self, Error> {
        Ok(match *order {
            Order::Chunks { domains } => Chunks::ByChunk(Domains::new(domains, Some(extent.cpus))?),
            Order::Nodes => Chunks::ByChunk(Domains::new(DOMAINS, None)?),
            Order::Pmaps => Chunks::ByPmap(Pmaps::new()),
        })
    }

    fn label(&self) {
        match self {
            Chunks::ByChunk(domains) => domains.label(),
            Chunks::ByPmap(pmaps) => pmaps.label(),
        }
    }
}

// SAFETY: an entry is one whose bit was set, and cleared, under the lock of its pmap's chunks,
// until the entry is returned; a chunk is freed only if all its bits are set.
unsafe impl<M: Machine> PvChunks<M> for Chunks<M> {
    type Pmap = PmapState<M>;

    fn new_pmap(&self, tag: Asid) -> PmapState<M> {
        if let Chunks::ByPmap(pmaps) = self {
            pmaps.enter(tag);
        }
        Padded(OfPmap::new())
    }

    fn has_room(&self, machine: &M, pmap: &PmapState<M>) -> bool
    where
        M: Memory,
    {
        pmap.has_room(machine)
    }

    fn add(&self, machine: &M, pmap: &PmapState<M>, frame: Frame, owner: *const (), tag: Asid)
    where
        M: Memory,
    {
        Chunk::make(machine, frame, owner, tag);
        if let Chunks::ByChunk(domains) = self {
            domains.enter(machine, frame);
        }
        pmap.add(machine, frame);
    }

    fn take(&self, machine: &M, pmap: &PmapState<M>, address: usize) -> Pv
    where
        M: Memory,
    {
        pmap.take(machine, address)
    }

    unsafe fn give(&self, machine: &M, pmap: &PmapState<M>, pv: Pv)
    where
        M: Memory,
    {
        pmap.give(machine, pv);
    }

    fn trim(&self, machine: &M, pmap: &PmapState<M>, mut free: impl FnMut(Frame))
    where
        M: Memory,
    {
        let empty = pmap.take_empty();
        if let (Some(first), Chunks::ByChunk(domains)) = (empty, self) {
            domains.leave(machine, first);
        }
        let mut next = empty;
        while let Some(frame) = next {
            next = Chunk::next(machine, frame);
            free(frame);
        }
    }

    unsafe fn address(&self, machine: &M, pv: Pv) -> usize
    where
        M: Memory,
    {
        // SAFETY: the caller keeps the trait's contract: a lock that protects the taken entry is
        // held.
        unsafe { Chunk::address(machine, pv) }
    }

    unsafe fn set_address(&self, machine: &M, pv: Pv, address: usize)
    where
        M: Memory,
    {
        // SAFETY: the caller keeps the trait's contract: a lock that protects the taken entry is
        // held.
        unsafe { Chunk::set_address(machine, pv, address) }
    }

    unsafe fn owner(&self, machine: &M, pv: Pv) -> *const ()
    where
        M: Memory,
    {
        // SAFETY: the entry is taken, so its chunk exists.
        unsafe { Chunk::owner(machine, pv.frame) }
    }

    fn next_victim(&self, machine: &M) -> Option<Victim>
    where
        M: Memory,
    {
        match self {
            Chunks::ByChunk(domains) => domains.rotate(machine),
            Chunks::ByPmap(pmaps) => pmaps.rotate().map(|tag| Victim { tag, chunk: None }),
        }
    }

    fn mappings_of(&self, machine: &M, pmap: &PmapState<M>, victim: Victim, see: impl FnMut(usize))
    where
        M: Memory,
    {
        pmap.see(machine, victim.chunk, see);
    }
}
