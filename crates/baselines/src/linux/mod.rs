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
//!   used. Linux has a count in the page instead; [`Spinning`] stands in for that.
//! - Moving a mapping is an unmap and a map: Linux keeps the chain, and the pages' indices.
//! - Changes by `madvise`, and ranges that a child does not inherit, split no VMA here.
//! - A page of zeroes has an anon_vma when it is first read; Linux has one page for all of these.
//! - Without heap the kernel aborts.
//! - `mmap_sem` of 2011 has the protocol of 6.12's `mmap_lock` (`rwsem`); its tasks slept at once,
//!   in the order in which they came.
//! - 5.15 and 6.12: `munmap` frees the chains of VMAs before it goes on as a reader of `mmap_lock`,
//!   where Linux does that at its end; VMAs of one anon_vma are in a list, not in an interval tree;
//!   the counters of resident pages, which Linux keeps for each CPU and adds up by the batch, are
//!   missing, as is `vm_committed_as` (4.15 has it): its batch is a quarter of a CPU's share of
//!   memory (`mm_compute_batch`), so it is a CPU's own as the VM's account is. Look-ups run in
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
pub use rwsem::{MmapLock, MmapWrite, WriteSem};
pub use spinning::Spinning;

use alloc::sync::Arc;
use alloc::vec::Vec;
use anon_vma::{AnonVmaRef, AnonVmas, Stock};
use change::{Alone, Change};
use core::ptr::{NonNull, from_ref, null_mut};
use file::FileRef;
use list::Pinned;
use machine::{
    Access, Atomic, CpuRange, Frame, Machine, Ordering, PAGE_SHIFT, SharedCell, VaRange,
};
use map::Map;
use sync::epoch::Domain;
use sync::spin::Ticket;
use sync::watch::Watched;
use sync::{RawLock, lock_class};
use vm::policy::{Mapping, Regions};
use vm::{Error, Prot};
use vma::{Kind, Vma};

lock_class!(
    /// A space's page table lock, as far as a VMA gets its anon_vma under it.
    pub PageTable = "page table", rank 33
);

/// The differences that follow from the type of the locks.
pub trait Version: Send + Sync + 'static {
    /// The lock of an anon_vma's root, and of a file's mappings.
    type Lock<M: Machine>: RawLock<M>;
    /// True if the task that frees an anon_vma waits until its root is unlocked, since another may
    /// try for that lock without a reference.
    const FREE_WAITS: bool;
}

/// Up to 2.6.39.
pub enum SpinLocks {}

/// From 3.0 on.
pub enum Mutexes {}

/// From 3.19 on.
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
    /// A fault finds and locks its VMA without the map's lock.
    pub vma_locks: bool,
}

impl Fixes {
    /// All of them: 6.12.
    pub const ALL: Fixes = Fixes {
        vma_locks: true,
        ..Fixes::new(true, true)
    };

    /// The two of 3.0, on or off.
    pub const fn new(batching: bool, readahead: bool) -> Self {
        Fixes {
            batching,
            readahead,
            vma_locks: false,
        }
    }
}

/// A space's VMAs. Its map is locked by [`vm::policy::MapLocking`], which must exclude: not
/// [`vm::policy::PerSlot`].
#[repr(align(64))]
pub struct Linux<M: Machine, V: Version> {
    /// Under the map's lock.
    map: M::Cell<Map<M, V>>,
    /// See [`Change`]. Under the map's lock.
    counts: M::AtomicUsize,
    table_lock: Watched<M, Ticket<M>, PageTable>,
    /// None where each fault has the map's lock.
    alone: Option<Pinned<Alone<M>>>,
}

/// The state that all spaces share.
pub struct Common<M: Machine, V: Version> {
    anon: AnonVmas<M, V>,
    fixes: Fixes,
    /// Of faults without the map's lock.
    domain: Option<Domain<M>>,
}

/// A page's `mapping` and `index`. Written by its first mapping.
pub struct PageState<M: Machine> {
    anon_vma: M::AtomicPtr,
    index: M::AtomicU64,
}

/// The result of a fault: where a new page belongs.
pub struct Faulted<'a, M: Machine, V: Version> {
    anon_vma: Option<AnonVmaRef<M, V>>,
    index: u64,
    /// The VMA's lock, if the fault does without the map's.
    _held: Option<VmaHeld<'a, M>>,
}

/// A change of regions, which keeps faults out of those that it concerns.
#[must_use = "the regions are unlocked when this is dropped"]
pub struct Changing<'a, M: Machine>(Option<&'a LockSeq<M>>);

impl<M: Machine> Drop for Changing<'_, M> {
    fn drop(&mut self) {
        if let Some(seq) = self.0 {
            seq.unlock_all();
        }
    }
}

impl<M: Machine, V: Version> Linux<M, V> {
    /// The VMAs' ranges, rights, and whether they map a file, in order. No operation changes them
    /// meanwhile.
    pub fn vmas(&self) -> Vec<(VaRange, Prot, bool)> {
        let each = |vma: &Vma<M, V>| (vma.range(), vma.prot(), vma.kind.file.is_some());
        self.map().iter().map(each).collect()
    }

    /// Begins a change.
    fn begin<'a>(&'a self, common: &'a Common<M, V>) -> Change<'a, M, V> {
        Change {
            anon: &common.anon,
            counts: &self.counts,
            alone: self.alone.as_deref().zip(common.domain.as_ref()),
        }
    }

    /// Unlocks the VMAs when it is dropped.
    fn changing(&self) -> Changing<'_, M> {
        Changing(self.alone.as_ref().map(|alone| &alone.seq))
    }

    fn map(&self) -> &Map<M, V> {
        // SAFETY: the caller holds the map's lock, as `Regions` requires.
        unsafe { &*self.map.read() }
    }

    #[allow(clippy::mut_from_ref)]
    fn map_mut(&self) -> &mut Map<M, V> {
        // SAFETY: the caller holds the map's lock for writing, as `Regions` requires, and calls
        // this once per operation.
        unsafe { &mut *self.map.write() }
    }
}

impl<M: Machine, V: Version> Common<M, V> {
    /// How many VMAs the reverse map visits for a page, and how many of them may map it.
    pub fn look(&self, page: &PageState<M>) -> (usize, usize) {
        let place = page.anon_vma.load(Ordering::Relaxed).cast();
        let index = page.index.load(Ordering::Relaxed);
        NonNull::new(place).map_or((0, 0), |place| self.anon.walk(place, index))
    }
}

impl<M: Machine, V: Version> Regions<M> for Linux<M, V> {
    type Config = Fixes;
    type Common = Common<M, V>;
    type Page = PageState<M>;
    type Object = Arc<AddressSpace<M, V>>;
    type Fault<'a> = Faulted<'a, M, V>;
    type Changing<'a> = Changing<'a, M>;

    fn common(fixes: &Fixes, cpus: CpuRange, _frames: usize) -> Result<Common<M, V>, Error> {
        let (stock, batches) = (Stock::new(cpus)?, fixes.batching);
        Ok(Common {
            anon: AnonVmas { stock, batches },
            fixes: *fixes,
            domain: fixes.vma_locks.then(|| Domain::try_new(cpus)).transpose()?,
        })
    }

    fn new(common: &Common<M, V>) -> Self {
        Linux {
            map: M::Cell::new(Map::new()),
            counts: M::AtomicUsize::new(0),
            table_lock: RawLock::new(),
            alone: common.fixes.vma_locks.then(Alone::new),
        }
    }

    fn new_page() -> PageState<M> {
        PageState {
            anon_vma: M::AtomicPtr::new(null_mut()),
            index: M::AtomicU64::new(0),
        }
    }

    fn new_object(_: &Common<M, V>) -> Arc<AddressSpace<M, V>> {
        Arc::new(AddressSpace::new())
    }

    fn map(&self, common: &Common<M, V>, range: VaRange, mapping: Mapping<Self::Object>) {
        let (of, first) = match mapping.object {
            Some((object, first)) => (Some(FileRef::open(object)), first),
            None => (None, (range.start >> PAGE_SHIFT) as u64),
        };
        let kind = Kind {
            shared: mapping.shared,
            file: of,
        };
        let new = Vma::new(range, mapping.prot, kind, first, self.alone.is_some());
        let _changing = self.changing();
        self.map_mut().insert(&self.begin(common), new);
    }

    fn change<'a>(&'a self, common: &'a Common<M, V>, range: VaRange) -> Changing<'a, M> {
        let change = self.begin(common);
        if self.alone.is_some() {
            // Split now, so that what changes later, perhaps with slots locked, waits for no VMA's
            // lock.
            let map = self.map_mut();
            map.split_off(&change, range);
            map.within(range).for_each(|vma| change.lock(vma));
        }
        self.changing()
    }

    fn unmap(&self, common: &Common<M, V>, range: VaRange) {
        let _changing = self.changing();
        self.map_mut().remove(&self.begin(common), range);
    }

    fn protect(&self, common: &Common<M, V>, range: VaRange, prot: Prot) {
        let _changing = self.changing();
        self.map_mut().protect(&self.begin(common), range, prot);
    }

    fn fork(&self, common: &Common<M, V>, child: &Self) {
        let _changing = self.changing();
        let map = child.map_mut();
        *map = self.map().fork(&self.begin(common));
        if let Some(alone) = &child.alone {
            let place = |vma: &Vma<M, V>| (vma.range(), from_ref(vma).cast_mut().cast());
            alone.tree.fill(map.iter().map(place));
        }
    }

    fn fault<'a>(
        &'a self,
        common: &'a Common<M, V>,
        address: usize,
        access: Access,
    ) -> Faulted<'a, M, V> {
        let map = self.map();
        let Some(vma) = map.find(address) else {
            return Faulted {
                anon_vma: None,
                index: 0,
                _held: None,
            };
        };
        let in_tree =
            |alone: &Alone<M>| alone.tree.find(address) == Some(NonNull::from(vma).cast());
        debug_assert!(self.alone.as_deref().is_none_or(in_tree), "{address:#x}");
        let copies = access == Access::Write && !vma.kind.shared;
        if let Some(file) = &vma.kind.file
            && !copies
            && !common.fixes.readahead
        {
            file.note_hit();
        }
        if vma.anon_vma().is_none() && (copies || vma.kind.file.is_none()) {
            let shared = map.neighbour(vma).and_then(Vma::anon_vma);
            common.anon.prepare(vma, shared, &self.table_lock);
        }
        Faulted {
            anon_vma: vma.anon_vma(),
            index: vma.index_of(address),
            _held: None,
        }
    }

    #[track_caller]
    fn fault_alone<'a>(
        &'a self,
        common: &'a Common<M, V>,
        address: usize,
        access: Access,
    ) -> Option<Faulted<'a, M, V>> {
        let (alone, domain) = self.alone.as_ref().zip(common.domain.as_ref())?;
        let _section = domain.enter();
        let place = alone.tree.find(address)?.cast::<Vma<M, V>>();
        // SAFETY: the section keeps what the tree had.
        let vma = unsafe { place.as_ref() };
        let held = vma.lock()?.read(&alone.seq, domain)?;
        // It is locked, so it stays as it is: does it still have the address, and the anon_vma of
        // new pages?
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

    fn took(&self, fault: &Faulted<'_, M, V>, _frame: Frame, page: &PageState<M>) {
        let anon_vma = fault.anon_vma.map_or(null_mut(), NonNull::as_ptr);
        page.anon_vma.store(anon_vma.cast(), Ordering::Relaxed);
        page.index.store(fault.index, Ordering::Relaxed);
    }

    fn walk(common: &Common<M, V>, _frame: Frame, page: &PageState<M>) {
        common.look(page);
    }
}
