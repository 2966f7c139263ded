//! Linux of 2011, of 2018, of 2021 and of 2024: VMAs, and anon_vma chains for the reverse map (the
//! "before" of case study 004).
//!
//! One implementation with the differences between 2.6.39, 3.0, 4.15, 5.15 and 6.12 as parameters:
//!
//! | | 2.6.39 | with the read-ahead fix | 3.0-rc2 | 3.0 | 4.15 | 5.15 | 6.12 |
//! |---|---|---|---|---|---|---|---|
//! | locks of anon_vma roots and of files' mappings | ticket spin lock | ticket spin lock | mutex | mutex | rwsem | rwsem | rwsem |
//! | a fault on a file writes `mmap_miss` of the open file | yes | no | no | no | no | no | no |
//! | the root's lock along a chain | once a node | once a node | once a node | once | once | once | once |
//! | freeing an anon_vma waits for the root's lock if it is held | no | no | yes | yes | yes | yes | yes |
//! | `munmap`, and `brk` that shrinks, take pages away as readers of the map's lock | no | no | no | no | no | yes | yes |
//! | a fault has the lock of | the map | the map | the map | the map | the map | the map | the VMA (`alone`), which it finds in a tree without a lock (`maple`) |
//!
//! Commits: 2b575eb64 ("mm: convert anon_vma->lock to a mutex"), 3d48ae45e ("mm: Convert
//! i_mmap_lock to a mutex"), 88c22088b ("mm: optimize page_lock_anon_vma() fast-path"), 207d04baa
//! ("readahead: reduce unnecessary mmap_miss increases"), bb4aa3967, eee2acbae and
//! dd34739c0 (one lock for a whole chain, and allocating under it).
//!
//! # Differences from Linux
//! - Pages keep the VM's PV entries too: the result of a walk of an anon_vma list is counted, not
//!   used. Linux has a count in the page instead, for which [`Spinning`] is the substitute.
//! - Moving a mapping is an unmap and a map: Linux keeps the chain, and the pages' indices.
//! - Changes by `madvise`, and ranges that a child does not inherit, split no VMA here.
//! - The first read of a page of zeroes gives its VMA an anon_vma; Linux maps one page for all of
//!   these.
//! - Without heap the kernel aborts.
//! - `mmap_sem` of 2011 has the protocol of 6.12's `mmap_lock` (`rwsem`); in 2011 waiting tasks
//!   slept at once, in the order of their arrival.
//! - 5.15 and 6.12: `munmap` frees the chains of VMAs before it downgrades `mmap_lock`, where Linux
//!   does that at its end; VMAs of one anon_vma are in a list, not in an interval tree; the
//!   counters of resident pages, which Linux keeps for each CPU and adds up by the batch, are
//!   missing, as is `vm_committed_as` (4.15 has it): its batch is a quarter of a CPU's share of
//!   memory (`mm_compute_batch`), so CPUs hardly share it, like the VM's account. Look-ups run in
//!   sections of epochs, which cost more than those of RCU.

mod alone;
mod anon_vma;
mod change;
mod committed;
mod file;
mod list;
mod lru;
mod map;
mod maple;
mod mutex;
mod rwsem;
mod spinning;
mod vma;

pub use alone::{LockSeq, VmaHeld, VmaLock};
pub use anon_vma::AnonVmaRoot;
pub use committed::{CommittedAs, CommittedLock};
pub use file::{AddressSpace, IMmap};
pub use lru::{Batches, LruLock, Lruvecs};
pub use mutex::LinuxMutex;
pub use rwsem::{MmapHeld, MmapLock, MmapWrite, WriteSem};
pub use spinning::Spinning;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use anon_vma::{AnonVmaRef, AnonVmas, Stock};
use change::{Alone, Change};
use core::ptr::{NonNull, from_ref, null_mut};
use file::FileRef;
use list::Pinned;
use machine::{Access, Atomic, Frame, Machine, Ordering, PAGE_SHIFT, SharedCell, VaRange};
use map::Map;
use sync::epoch::Domain;
use sync::spin::Ticket;
use sync::watch::Watched;
use sync::{RawLock, lock_class};
use vm::system::{self, Extent, Gate, Mapping, Op, Part};
use vm::{Error, Prot};
use vma::{Kind, Vma};

lock_class!(
    /// A space's page table lock, under which a VMA gets its anon_vma.
    pub PageTable = "page table", rank 33
);

/// The differences that follow from the type of the locks.
pub trait Version: Send + Sync + 'static {
    /// The lock of an anon_vma's root, and of a file's mappings.
    type Lock<M: Machine>: RawLock<M>;
    /// True if the task that frees an anon_vma waits until its root is unlocked, since another task
    /// may try to lock it without a reference.
    const FREE_WAITS: bool;
}

/// Spin locks, up to 2.6.39.
pub enum SpinLocks {}

/// Mutexes, from 3.0 on.
pub enum Mutexes {}

/// Rwsems, from 3.19 on.
pub enum Rwsems {}

impl Version for SpinLocks {
    type Lock<M: Machine> = Ticket<M>;
    const FREE_WAITS: bool = false;
}

impl Version for Mutexes {
    type Lock<M: Machine> = LinuxMutex<M>;
    const FREE_WAITS: bool = true;
}

impl Version for Rwsems {
    type Lock<M: Machine> = WriteSem<M>;
    const FREE_WAITS: bool = true;
}

/// The other differences between the versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fixes {
    /// A root's lock is kept along a chain.
    pub batching: bool,
    /// A fault that finds a file's page in memory does not write the open file.
    pub readahead: bool,
    /// `munmap`, and `brk` that shrinks the heap, downgrade the map's lock to reading when the VMAs
    /// are out of the map (`mmap_write_downgrade`, from 4.20 on).
    pub downgrades: bool,
    /// A fault finds and locks its VMA without the map's lock.
    pub vma_locks: bool,
}

impl Fixes {
    /// The differences of 5.15.
    pub const V5_15: Fixes = Fixes {
        downgrades: true,
        ..Fixes::new(true, true)
    };

    /// All differences: 6.12.
    pub const ALL: Fixes = Fixes {
        vma_locks: true,
        ..Fixes::V5_15
    };

    /// The two differences of 3.0, on or off.
    pub const fn new(batching: bool, readahead: bool) -> Self {
        Fixes {
            batching,
            readahead,
            downgrades: false,
            vma_locks: false,
        }
    }
}

/// The gate: `mmap_lock`, VMAs, and what all spaces share.
pub struct Linux<M: Machine, V: Version> {
    anon: AnonVmas<M, V>,
    fixes: Fixes,
    /// The epoch domain of faults without the map's lock.
    domain: Option<Domain<M>>,
}

/// A space (`mm_struct`).
pub struct Mm<M: Machine, V: Version> {
    mmap_lock: MmapLock<M>,
    vmas: Box<Vmas<M, V>>,
}

/// A space's VMAs, guarded by `mmap_lock`.
#[repr(align(64))]
struct Vmas<M: Machine, V: Version> {
    map: M::Cell<Map<M, V>>,
    /// The words of `mm_struct` that a [`Change`] writes.
    counts: M::AtomicUsize,
    table_lock: Watched<M, Ticket<M>, PageTable>,
    /// `None` if each fault takes the map's lock.
    alone: Option<Pinned<Alone<M>>>,
}

/// A page's `mapping` and `index`. Written by its first mapping.
pub struct PageState<M: Machine> {
    anon_vma: M::AtomicPtr,
    index: M::AtomicU64,
}

/// Held by an operation on an [`Mm`].
#[must_use = "the locks are released when this is dropped"]
pub struct MmHeld<'a, M: Machine, V: Version> {
    faulted: Option<Faulted<'a, M, V>>,
    /// Keeps faults out of the VMAs that the operation concerns.
    changing: Option<Changing<'a, M>>,
    map: MmapHeld<'a, M>,
}

impl<M: Machine, V: Version> Default for MmHeld<'_, M, V> {
    fn default() -> Self {
        MmHeld {
            faulted: None,
            changing: None,
            map: MmapHeld::Nothing,
        }
    }
}

/// The result of a fault: where a new page belongs.
struct Faulted<'a, M: Machine, V: Version> {
    anon_vma: Option<AnonVmaRef<M, V>>,
    index: u64,
    /// The VMA's lock, if the fault has not taken the map's.
    _held: Option<VmaHeld<'a, M>>,
}

/// A change of regions, which keeps faults out of those that it concerns.
#[must_use = "the regions are unlocked when this is dropped"]
struct Changing<'a, M: Machine>(Option<&'a LockSeq<M>>);

impl<M: Machine> Drop for Changing<'_, M> {
    fn drop(&mut self) {
        if let Some(seq) = self.0 {
            seq.unlock_all();
        }
    }
}

impl<M: Machine, V: Version> Mm<M, V> {
    /// The VMAs' ranges and rights, and true for those that map a file, in order. No operation
    /// changes them meanwhile.
    pub fn vmas(&self) -> Vec<(VaRange, Prot, bool)> {
        let each = |vma: &Vma<M, V>| (vma.range(), vma.prot(), vma.kind.file.is_some());
        self.vmas.map().iter().map(each).collect()
    }
}

impl<M: Machine, V: Version> Vmas<M, V> {
    /// A guard that unlocks the VMAs when it is dropped.
    fn changing(&self) -> Changing<'_, M> {
        Changing(self.alone.as_ref().map(|alone| &alone.seq))
    }

    fn map(&self) -> &Map<M, V> {
        // SAFETY: the caller holds `mmap_lock`, which excludes writers.
        unsafe { &*self.map.read() }
    }

    #[allow(clippy::mut_from_ref)]
    fn map_mut(&self) -> &mut Map<M, V> {
        // SAFETY: the caller holds `mmap_lock` for writing, and calls this once per operation.
        unsafe { &mut *self.map.write() }
    }
}

impl<M: Machine, V: Version> Linux<M, V> {
    /// The number of VMAs that the reverse map visits for a page, and of those that may map it.
    pub fn look(&self, page: &PageState<M>) -> (usize, usize) {
        let place = page.anon_vma.load(Ordering::Relaxed).cast();
        let index = page.index.load(Ordering::Relaxed);
        NonNull::new(place).map_or((0, 0), |place| self.anon.walk(place, index))
    }

    /// Begins a change of the VMAs.
    fn change<'a>(&'a self, vmas: &'a Vmas<M, V>) -> Change<'a, M, V> {
        Change {
            anon: &self.anon,
            counts: &vmas.counts,
            alone: vmas.alone.as_deref().zip(self.domain.as_ref()),
        }
    }

    fn map(
        &self,
        vmas: &Vmas<M, V>,
        range: VaRange,
        mapping: Mapping<'_, Arc<AddressSpace<M, V>>>,
    ) {
        let (of, first) = match mapping.object {
            Some((object, first)) => (Some(FileRef::open(object.clone())), first),
            None => (None, (range.start >> PAGE_SHIFT) as u64),
        };
        let kind = Kind {
            shared: mapping.shared,
            file: of,
        };
        let new = Vma::new(range, mapping.prot, kind, first, vmas.alone.is_some());
        let _changing = vmas.changing();
        vmas.map_mut().insert(&self.change(vmas), new);
    }

    /// Keeps faults out of the VMAs in `range`, which are about to change.
    fn expect<'a>(&self, vmas: &'a Vmas<M, V>, range: VaRange) -> Changing<'a, M> {
        let change = self.change(vmas);
        if vmas.alone.is_some() {
            // Split now, so that a later step, perhaps with slots locked, waits for no VMA's lock.
            let map = vmas.map_mut();
            map.split_off(&change, range);
            map.within(range).for_each(|vma| change.lock(vma));
        }
        vmas.changing()
    }

    fn unmap(&self, vmas: &Vmas<M, V>, range: VaRange) {
        let _changing = vmas.changing();
        vmas.map_mut().remove(&self.change(vmas), range);
    }

    fn protect(&self, vmas: &Vmas<M, V>, range: VaRange, prot: Prot) {
        let _changing = vmas.changing();
        vmas.map_mut().protect(&self.change(vmas), range, prot);
    }

    fn fork(&self, vmas: &Vmas<M, V>, child: &Vmas<M, V>) {
        let _changing = vmas.changing();
        let map = child.map_mut();
        *map = vmas.map().fork(&self.change(vmas));
        if let Some(alone) = &child.alone {
            let place = |vma: &Vma<M, V>| (vma.range(), from_ref(vma).cast_mut().cast());
            alone.tree.fill(map.iter().map(place));
        }
    }

    /// Looks for the VMA of a fault, with the map locked.
    fn fault<'a>(
        &'a self,
        vmas: &'a Vmas<M, V>,
        address: usize,
        access: Access,
    ) -> Option<Faulted<'a, M, V>> {
        let map = vmas.map();
        let vma = map.find(address)?;
        let in_tree =
            |alone: &Alone<M>| alone.tree.find(address) == Some(NonNull::from(vma).cast());
        debug_assert!(vmas.alone.as_deref().is_none_or(in_tree), "{address:#x}");
        let copies = access == Access::Write && !vma.kind.shared;
        if let Some(file) = &vma.kind.file
            && !copies
            && !self.fixes.readahead
        {
            file.note_hit();
        }
        if vma.anon_vma().is_none() && (copies || vma.kind.file.is_none()) {
            let shared = map.neighbour(vma).and_then(Vma::anon_vma);
            self.anon.prepare(vma, shared, &vmas.table_lock);
        }
        Some(Faulted {
            anon_vma: vma.anon_vma(),
            index: vma.index_of(address),
            _held: None,
        })
    }

    /// Finds and locks the VMA of a fault without the map's lock, if that is enough for the fault.
    #[track_caller]
    fn fault_alone<'a>(
        &'a self,
        vmas: &'a Vmas<M, V>,
        address: usize,
        access: Access,
    ) -> Option<Faulted<'a, M, V>> {
        let (alone, domain) = vmas.alone.as_ref().zip(self.domain.as_ref())?;
        let _section = domain.enter();
        let place = alone.tree.find(address)?.cast::<Vma<M, V>>();
        // SAFETY: the section keeps the VMAs that the tree had.
        let vma = unsafe { place.as_ref() };
        let held = vma.lock()?.read(&alone.seq, domain)?;
        // The VMA is locked, so it does not change. Check that it still has the address, and the
        // anon_vma of new pages.
        let VaRange { start, end } = vma.range();
        let copies = access == Access::Write && !vma.kind.shared;
        let lacks = vma.anon_vma().is_none() && (copies || vma.kind.file.is_none());
        let is_right = (start..end).contains(&address) && !lacks;
        is_right.then(|| Faulted {
            anon_vma: vma.anon_vma(),
            index: vma.index_of(address),
            _held: Some(held),
        })
    }
}

impl<M: Machine> Default for PageState<M> {
    fn default() -> Self {
        PageState {
            anon_vma: M::AtomicPtr::new(null_mut()),
            index: M::AtomicU64::new(0),
        }
    }
}

impl<M: Machine, V: Version> Part<M> for Linux<M, V> {
    type Config = Fixes;

    fn new(fixes: &Fixes, extent: Extent) -> Result<Self, Error> {
        let (stock, batches) = (Stock::new(extent.cpus)?, fixes.batching);
        let domain = fixes.vma_locks.then(|| Domain::try_new(extent.cpus));
        Ok(Linux {
            anon: AnonVmas { stock, batches },
            fixes: *fixes,
            domain: domain.transpose()?,
        })
    }
}

impl<M: Machine, V: Version> Gate<M> for Linux<M, V> {
    type Space = Mm<M, V>;
    type Page = PageState<M>;
    type Object = Arc<AddressSpace<M, V>>;
    type Guard<'a> = MmHeld<'a, M, V>;
    type Pmap<'a> = ();

    fn new_space(&self) -> Mm<M, V> {
        Mm {
            mmap_lock: MmapLock::new(),
            vmas: Box::new(Vmas {
                map: M::Cell::new(Map::new()),
                counts: M::AtomicUsize::new(0),
                table_lock: RawLock::new(),
                alone: self.fixes.vma_locks.then(Alone::new),
            }),
        }
    }

    fn new_object(&self) -> Arc<AddressSpace<M, V>> {
        Arc::new(AddressSpace::new())
    }

    fn label_space(space: &Mm<M, V>) {
        space.mmap_lock.label();
    }

    #[track_caller]
    fn begin<'a>(&'a self, mm: &'a Mm<M, V>, op: Op) -> MmHeld<'a, M, V> {
        let (faulted, map) = match op {
            Op::Look => (None, MmapHeld::Read(mm.mmap_lock.read())),
            Op::Change => (None, MmapHeld::Write(mm.mmap_lock.write())),
            Op::Fault { address, access } => match self.fault_alone(&mm.vmas, address, access) {
                Some(faulted) => (Some(faulted), MmapHeld::Nothing),
                None => {
                    let map = MmapHeld::Read(mm.mmap_lock.read());
                    (self.fault(&mm.vmas, address, access), map)
                }
            },
        };
        MmHeld {
            faulted,
            changing: None,
            map,
        }
    }

    /// With [`Fixes::downgrades`], `munmap` and `brk` take the VMAs out of the map before the pages
    /// are freed, and downgrade the map's lock.
    #[track_caller]
    fn report<'a>(
        &'a self,
        mm: &'a Mm<M, V>,
        held: &mut MmHeld<'a, M, V>,
        change: system::Change<'_, M, Self>,
    ) {
        let vmas = &*mm.vmas;
        match change {
            system::Change::Expected(range) => {
                // This comes first: the end of a change unlocks all VMAs.
                held.changing = None;
                held.changing = Some(self.expect(vmas, range));
            }
            system::Change::Unmapping(range) => {
                if let (true, MmapHeld::Write(write)) = (self.fixes.downgrades, &mut held.map) {
                    self.unmap(vmas, range);
                    held.changing = None;
                    write.downgrade();
                }
            }
            system::Change::Unmapped(range) => {
                let is_done = matches!(&held.map, MmapHeld::Write(write) if write.is_downgraded());
                if !is_done {
                    self.unmap(vmas, range);
                    held.changing = None;
                }
            }
            system::Change::Mapped(range, mapping) => self.map(vmas, range, mapping),
            system::Change::Protected(range, prot) => {
                self.protect(vmas, range, prot);
                held.changing = None;
            }
            system::Change::Forked(child) => self.fork(vmas, &child.vmas),
            system::Change::Faulted(_, page) => {
                let (anon_vma, index) = match &held.faulted {
                    Some(faulted) => (faulted.anon_vma, faulted.index),
                    None => (None, 0),
                };
                let anon_vma = anon_vma.map_or(null_mut(), NonNull::as_ptr);
                page.anon_vma.store(anon_vma.cast(), Ordering::Relaxed);
                page.index.store(index, Ordering::Relaxed);
            }
        }
    }

    /// Takes no lock: those of page tables are the slots'.
    #[inline]
    fn lock_pmap(&self, mm: &Mm<M, V>) {
        mm.mmap_lock.walk_tables();
    }

    #[inline]
    fn try_lock_pmap(&self, mm: &Mm<M, V>) -> Option<()> {
        mm.mmap_lock.walk_tables();
        Some(())
    }

    fn walk(&self, _: Frame, page: &PageState<M>) {
        self.look(page);
    }
}
