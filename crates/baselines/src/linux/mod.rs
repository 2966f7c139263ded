//! Linux of 2011: VMAs, and anon_vma chains for the reverse map (the "before" of case study 004).
//!
//! One implementation with the differences between 2.6.39 and 3.0 as parameters:
//!
//! | | 2.6.39 | with the read-ahead fix | 3.0-rc2 | 3.0 |
//! |---|---|---|---|---|
//! | locks of anon_vma roots and of files' mappings | ticket spin lock | ticket spin lock | mutex | mutex |
//! | a fault on a file writes `mmap_miss` of the open file | yes | no | no | no |
//! | the root's lock along a chain | once a node | once a node | once a node | once |
//! | freeing an anon_vma waits for the root's lock if it is held | no | no | yes | yes |
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

mod anon_vma;
mod file;
mod list;
mod map;
mod mutex;
mod spinning;
mod vma;

pub use anon_vma::AnonVmaRoot;
pub use file::{AddressSpace, IMmap};
pub use mutex::LinuxMutex;
pub use spinning::Spinning;

use alloc::sync::Arc;
use alloc::vec::Vec;
use anon_vma::{AnonVmaRef, AnonVmas, Stock};
use core::ptr::{NonNull, null_mut};
use file::FileRef;
use machine::{
    Access, Atomic, CpuRange, Frame, Machine, Ordering, PAGE_SHIFT, SharedCell, VaRange,
};
use map::Map;
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
    /// Whether the task that frees an anon_vma waits until its root is unlocked, since another may
    /// try for that lock without a reference.
    const FREE_WAITS: bool;
}

/// Up to 2.6.39.
pub enum SpinLocks {}

/// From 3.0 on.
pub enum Mutexes {}

impl Version for SpinLocks {
    type Lock<M: Machine> = Ticket<M>;
    const FREE_WAITS: bool = false;
}

impl Version for Mutexes {
    type Lock<M: Machine> = LinuxMutex<M>;
    const FREE_WAITS: bool = true;
}

/// The other differences between the versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fixes {
    /// A root's lock is kept along a chain.
    pub batching: bool,
    /// A fault that finds a file's page in memory does not write the open file.
    pub readahead: bool,
}

impl Fixes {
    /// These two fixes, on or off.
    pub const fn new(batching: bool, readahead: bool) -> Self {
        Fixes {
            batching,
            readahead,
        }
    }
}

/// A space's VMAs. Its map is locked by [`vm::policy::MapLocking`], which must exclude: not
/// [`vm::policy::PerSlot`].
pub struct Linux<M: Machine, V: Version> {
    /// Under the map's lock.
    map: M::Cell<Map<M, V>>,
    table_lock: Watched<M, Ticket<M>, PageTable>,
}

/// The state that all spaces share.
pub struct Common<M: Machine, V: Version> {
    anon: AnonVmas<M, V>,
    fixes: Fixes,
}

/// A page's `mapping` and `index`. Written by its first mapping.
pub struct PageState<M: Machine> {
    anon_vma: M::AtomicPtr,
    index: M::AtomicU64,
}

/// The result of a fault: where a new page belongs.
pub struct Faulted<M: Machine, V: Version> {
    anon_vma: Option<AnonVmaRef<M, V>>,
    index: u64,
}

impl<M: Machine, V: Version> Linux<M, V> {
    /// The VMAs' ranges, rights, and whether they map a file, in order. No operation changes them
    /// meanwhile.
    pub fn vmas(&self) -> Vec<(VaRange, Prot, bool)> {
        let each = |vma: &Vma<M, V>| (vma.range(), vma.prot(), vma.kind.file.is_some());
        self.map().iter().map(each).collect()
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
    type Fault<'a> = Faulted<M, V>;

    fn common(fixes: &Fixes, cpus: CpuRange, _frames: usize) -> Result<Common<M, V>, Error> {
        let (stock, batches) = (Stock::new(cpus)?, fixes.batching);
        Ok(Common {
            anon: AnonVmas { stock, batches },
            fixes: *fixes,
        })
    }

    fn new(_: &Common<M, V>) -> Self {
        Linux {
            map: M::Cell::new(Map::new()),
            table_lock: RawLock::new(),
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
        let new = Vma::new(range, mapping.prot, kind, first);
        self.map_mut().insert(&common.anon, new);
    }

    fn unmap(&self, common: &Common<M, V>, range: VaRange) {
        self.map_mut().remove(&common.anon, range);
    }

    fn protect(&self, common: &Common<M, V>, range: VaRange, prot: Prot) {
        self.map_mut().protect(&common.anon, range, prot);
    }

    fn fork(&self, common: &Common<M, V>, child: &Self) {
        *child.map_mut() = self.map().fork(&common.anon);
    }

    fn fault<'a>(
        &'a self,
        common: &'a Common<M, V>,
        address: usize,
        access: Access,
    ) -> Faulted<M, V> {
        let map = self.map();
        let Some(vma) = map.find(address) else {
            return Faulted {
                anon_vma: None,
                index: 0,
            };
        };
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
        }
    }

    fn took(&self, fault: &Faulted<M, V>, _frame: Frame, page: &PageState<M>) {
        let anon_vma = fault.anon_vma.map_or(null_mut(), NonNull::as_ptr);
        page.anon_vma.store(anon_vma.cast(), Ordering::Relaxed);
        page.index.store(fault.index, Ordering::Relaxed);
    }

    fn walk(common: &Common<M, V>, _frame: Frame, page: &PageState<M>) {
        common.look(page);
    }
}
