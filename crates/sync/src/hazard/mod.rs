//! Hazard pointers: reclamation that no reader can hold up.
//!
//! A reader of [`crate::epoch`] that stays in its section keeps everything that is retired
//! meanwhile. Here a reader names each object that it looks at, in a slot of its CPU, and keeps
//! only those. As long as nobody stays, both cost the same: naming needs no fence on a machine
//! that can make all CPUs execute one ([`machine::Atomics::heavy_fence`]).
//!
//! # Protocol
//! Each CPU has [`SLOTS`] slots, and a list of the objects that it has retired.
//!
//! - **protect**: read the source; store the address that was found in a slot, with release; a
//!   *light fence*; read the source again, with acquire. If it still has the same address, the
//!   object may be used; if not, begin again with the other address.
//! - **let go**: store null in the slot, with release.
//! - **retire**, after the object was unlinked from its one source: append it to the CPU's list.
//! - **scan**, when the list is long: a *heavy fence*; read all slots, with acquire; drop each
//!   object of the list that no slot names.
//!
//! # Why it holds
//! Let `L` be the light fence with which a reader has protected an object, and `H` the heavy fence
//! of a scan that finds the object in its list. Light and heavy fences are in one order, which all
//! CPUs agree on.
//!
//! 1. If `H` comes before `L`, the reader's second read sees what was written before `H`: the
//!    object was unlinked, and an object that has been unlinked is not linked again. The address
//!    differs, and the reader does not use the object. (The same address may have been given to a
//!    new object. Then the slot names that one.)
//! 2. If `L` comes before `H`, the scan sees the slot with the address, or with what was stored
//!    there later. In the first case it keeps the object.
//! 3. In the second case the reader has let go. Each store to a slot is a release, and the scan
//!    acquires what it sees, be it null or the address of a *later* object: everything the reader
//!    did with the object happens before its drop.
//!
//! The order of the fences matters only if the slot is stored before the light fence and the source
//! read after it; the drop of an object only if it was unlinked before the heavy fence.
//!
//! An object has one source at a time, or the second read would prove nothing: an object reached
//! through a node that was itself unlinked may be retired while the node still leads to it.
//! [`Shared`] owns its object and sees to that. Structures whose nodes pass objects on mark the
//! pointers of an unlinked node (as Michael's list does), and use [`Slot`].
//!
//! # Memory
//! A CPU scans when its list has `b = max(256, 2 * SLOTS * cpus)` objects ([`Domain::batch`]). A
//! scan keeps at most as many as there are slots, so it drops at least half. A CPU never has more
//! than `b`, not counting what the drops themselves retire. All CPUs together hold at most `cpus *
//! b` objects, whatever readers do: 512 with 2 CPUs, 2,048 with 8. Those that readers hold are at
//! most `SLOTS * cpus`. Nothing waits.
//!
//! # Cost
//! Entering and leaving write nothing. Protecting writes one cache line of the CPU's own and reads
//! the source twice. A scan interrupts all CPUs, reads one or two lines per CPU, and sorts what the
//! slots name; a batch shares it.
//!
//! There is nothing to wait for: a task that must know when all readers have left needs epochs.

mod retire;
mod section;
mod shared;

pub use crate::deferred::Deferred;
pub use section::{Section, Slot};
pub use shared::{Protected, Shared};

use crate::percpu::PerCpu;
use alloc::collections::TryReserveError;
use core::ptr::null_mut;
use core::sync::atomic::AtomicU64;
use machine::{Atomic, CpuRange, Machine, Ordering, SharedCell};
use retire::Bin;

/// The number of slots of a CPU: the most objects that its task may protect at a time.
pub const SLOTS: usize = 8;

/// The least length of a list that is scanned.
const LEAST: usize = 256;

/// Slots, and the objects that wait until no slot names them.
///
/// 256 bytes per CPU, and 64 for each pair of CPUs: each has room for the addresses in all slots. A
/// slot of one domain protects nothing that is retired in another.
///
/// Dropping a domain drops what is still retired: the domain is no longer borrowed, so no slot is
/// in use.
pub struct Domain<M: Machine> {
    /// Tells the domain from all others, for [`Shared`].
    id: u64,
    records: PerCpu<Record<M>, M>,
    /// They are on other cache lines than the records, because retiring writes them.
    bins: PerCpu<Bin<M>, M>,
}

/// One CPU's slots.
struct Record<M: Machine> {
    /// The objects that the CPU's task looks at. Written by the owner; read by scans.
    slots: [M::AtomicPtr; SLOTS],
    /// A bit for each slot in use. Only the owner accesses it, pinned.
    taken: M::Cell<u32>,
}

impl<M: Machine> Record<M> {
    fn new() -> Self {
        Record {
            slots: core::array::from_fn(|_| M::AtomicPtr::new(null_mut())),
            taken: M::Cell::new(0),
        }
    }
}

impl<M: Machine> Domain<M> {
    /// A domain for the CPUs of a machine.
    pub fn new(cpus: CpuRange) -> Self {
        let slots = SLOTS * cpus.len();
        Self::of(
            PerCpu::new(cpus, |_| Record::new()),
            PerCpu::new(cpus, |_| Bin::new(alloc::vec![0; slots].into())),
        )
    }

    /// A domain for the CPUs of a machine; an error if memory is short.
    pub fn try_new(cpus: CpuRange) -> Result<Self, TryReserveError> {
        let mut rooms = alloc::vec::Vec::new();
        rooms.try_reserve_exact(cpus.len())?;
        for _ in 0..cpus.len() {
            let mut room = alloc::vec::Vec::new();
            room.try_reserve_exact(SLOTS * cpus.len())?;
            room.resize(SLOTS * cpus.len(), 0);
            rooms.push(room.into_boxed_slice());
        }
        let mut rooms = rooms.into_iter();
        let records = PerCpu::try_new(cpus, |_| Record::new())?;
        let bins = PerCpu::try_new(cpus, |_| Bin::new(rooms.next().unwrap_or_default()))?;
        Ok(Self::of(records, bins))
    }

    /// A domain with these new records and bins.
    fn of(records: PerCpu<Record<M>, M>, bins: PerCpu<Bin<M>, M>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        records.label("hazard::Record");
        bins.label("hazard::Bin");
        Domain {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            records,
            bins,
        }
    }

    /// The most objects that one CPU holds: at as many it scans.
    pub fn batch(&self) -> usize {
        LEAST.max(2 * SLOTS * self.records.cpus().len())
    }
}
