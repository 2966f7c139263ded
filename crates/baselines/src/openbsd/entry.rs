//! Map entries: the regions of a space, with the amap above and the object below (OpenBSD 7.0,
//! sys/uvm/uvm_map.c and uvm_fault.c).
//!
//! A fault locks the amap of its region for writing, even if it does not change it. If the page is
//! not in the amap, it also locks the object, for writing too. It holds them until the page is
//! mapped. A fork copies the entries, lets each refer to the same amap, and notes in both that it
//! *needs a copy*; the first fault that writes there, or anywhere in a region without an object,
//! makes the copy under the map's lock for writing.
//!
//! The differences: `vm` finds regions in its own tree, so the tree here is only looked up, and its
//! nodes cost nothing; neighbours are never joined; a fault maps its own page, where OpenBSD also
//! maps up to seven neighbours that are in memory; a child has its parent's page table entries,
//! where OpenBSD lets it fault for them; and an object is locked until the fault's end, where
//! OpenBSD releases it as soon as its page is copied.
//!
//! # Protocol
//! The tree of entries is under the map's lock ([`VmMap`]); until a new space is
//! complete, it belongs to the task that makes the space.

use super::SleepRw;
use super::amap::{Amap, AmapList, Locked};
use crate::map_locks::{self, OpenbsdKinds, PmapHeld};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::ops::Range;
use machine::{Access, Machine, PAGE_SIZE, SharedCell, VaRange};
use sync::rwlock::{RawRw, RawWriteGuard};
use sync::watch::Watched;
use sync::{Padded, lock_class};
use vm::system::{Change, Extent, Gate, Mapping, Op, Part};
use vm::{Error, Prot};

lock_class!(
    /// `vmobjlock` of an object. A fault that looks for a page in the object holds it.
    pub ObjectLock = "uobj", rank 17
);

type ObjectRw<M> = Watched<M, SleepRw<M>, ObjectLock>;

/// The lock of an object.
pub struct Uobj<M: Machine>(Arc<Padded<ObjectRw<M>>>);

impl<M: Machine> Clone for Uobj<M> {
    fn clone(&self) -> Self {
        Uobj(self.0.clone())
    }
}

/// Regions of this many pages get an amap for each part of [`CHUNK`] that is written
/// (`UVM_AMAP_LARGE`).
const LARGE: usize = 256;
/// Slots of a part (`UVM_AMAP_CHUNK`).
const CHUNK: usize = 16;

/// The entries of a space.
pub struct MapEntries<M: Machine>(M::Cell<BTreeMap<usize, Entry<M>>>);

/// An entry; its key is the region's start.
struct Entry<M: Machine> {
    end: usize,
    writable: bool,
    shared: bool,
    /// True if the amap has to be copied, or created, before it is written.
    needs_copy: bool,
    object: Option<Uobj<M>>,
    amap: Option<Aref<M>>,
}

/// An amap, and the slot at which the region begins.
struct Aref<M: Machine> {
    amap: Arc<Amap<M>>,
    first: usize,
}

impl<M: Machine> Clone for Aref<M> {
    fn clone(&self) -> Self {
        Aref {
            amap: self.amap.clone(),
            first: self.first,
        }
    }
}

impl<M: Machine> Aref<M> {
    fn slots(&self, region: &VaRange) -> Range<usize> {
        self.first..self.first + region.pages()
    }
}

/// The locks that a fault holds: that of the object below, then that of the amap above, if it has
/// them.
#[must_use = "the locks are released when this is dropped"]
pub struct FaultLocks<'a, M: Machine> {
    object: Option<RawWriteGuard<'a, M, ObjectRw<M>>>,
    amap: Option<(Locked<'a, M>, usize)>,
}

impl<M: Machine> Default for FaultLocks<'_, M> {
    fn default() -> Self {
        FaultLocks {
            object: None,
            amap: None,
        }
    }
}

impl<M: Machine> FaultLocks<'_, M> {
    /// Records that the fault has mapped an anonymous page.
    pub fn took(&self) {
        if let Some((amap, slot)) = &self.amap {
            amap.add(*slot);
        }
    }
}

impl<M: Machine> MapEntries<M> {
    /// The entries, of a map that is locked.
    fn entries(&self) -> &BTreeMap<usize, Entry<M>> {
        // SAFETY: the map is locked, which excludes writers.
        unsafe { &*self.0.read() }
    }

    /// The entries, of a map that is locked for writing.
    #[allow(clippy::mut_from_ref)]
    fn change(&self) -> &mut BTreeMap<usize, Entry<M>> {
        // SAFETY: the map is locked for writing, which excludes all others.
        unsafe { &mut *self.0.write() }
    }

    /// The region that contains `address`, with its entry.
    fn at(&self, address: usize) -> Option<(VaRange, &Entry<M>)> {
        let (&start, entry) = self.entries().range(..=address).next_back()?;
        let region = VaRange {
            start,
            end: entry.end,
        };
        (address < entry.end).then_some((region, entry))
    }

    /// Splits the region at `address`, if one lies across it.
    #[track_caller]
    fn clip(&self, address: usize) {
        let entries = self.change();
        let Some((&start, entry)) = entries.range_mut(..address).next_back() else {
            return;
        };
        if entry.end <= address {
            return;
        }
        let pages = (address - start) / PAGE_SIZE;
        let amap = entry.amap.as_ref().map(|aref| {
            aref.amap.lock().split();
            Aref {
                amap: aref.amap.clone(),
                first: aref.first + pages,
            }
        });
        let second = Entry {
            end: entry.end,
            writable: entry.writable,
            shared: entry.shared,
            needs_copy: entry.needs_copy,
            object: entry.object.clone(),
            amap,
        };
        entry.end = address;
        entries.insert(address, second);
    }
}

impl<M: Machine> MapEntries<M> {
    /// An empty set of entries.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        MapEntries(SharedCell::new(BTreeMap::new()))
    }

    /// Enters a mapping of `range`, where nothing was mapped. Called under the map's lock for
    /// writing, like all changes of entries.
    pub fn map(&self, range: VaRange, mapping: Mapping<'_, Uobj<M>>) {
        let entry = Entry {
            end: range.end,
            writable: mapping.prot.writes(),
            shared: mapping.shared,
            needs_copy: !mapping.shared,
            object: mapping.object.map(|(object, _)| object.clone()),
            amap: None,
        };
        self.change().insert(range.start, entry);
    }

    /// Removes the entries of `range`.
    #[track_caller]
    pub fn unmap(&self, list: &AmapList<M>, range: VaRange) {
        self.clip(range.start);
        self.clip(range.end);
        let entries = self.change();
        while let Some((&start, _)) = entries.range(range.start..range.end).next() {
            let entry = entries.remove(&start).expect("just found");
            let end = entry.end;
            if let Some(aref) = entry.amap {
                let slots = aref.slots(&VaRange { start, end });
                aref.amap.lock().leave(&slots, list);
            }
        }
    }

    /// Gives all of `range` these rights.
    #[track_caller]
    pub fn protect(&self, range: VaRange, prot: Prot) {
        self.clip(range.start);
        self.clip(range.end);
        let regions = self.change().range_mut(range.start..range.end);
        regions.for_each(|(_, entry)| entry.writable = prot.writes());
    }

    /// Copies the entries to `child`, which has none.
    #[track_caller]
    pub fn fork(&self, child: &Self) {
        let children = child.change();
        for (&start, entry) in self.change() {
            let region = VaRange {
                start,
                end: entry.end,
            };
            if let Some(aref) = &entry.amap {
                aref.amap.lock().refer(&aref.slots(&region));
                if !entry.needs_copy {
                    // The parent loses the right to write, under the amap's lock.
                    drop(aref.amap.lock());
                }
            }
            entry.needs_copy = !entry.shared;
            let copy = Entry {
                end: entry.end,
                writable: entry.writable,
                shared: entry.shared,
                needs_copy: entry.needs_copy,
                object: entry.object.clone(),
                amap: entry.amap.clone(),
            };
            children.insert(start, copy);
        }
    }

    /// Returns true if a fault must call [`MapEntries::copy`] before it begins. Called under the
    /// map's lock for reading.
    pub fn wants_copy(&self, address: usize, access: Access) -> bool {
        let writes = access == Access::Write;
        self.at(address).is_some_and(|(_, entry)| {
            entry.needs_copy && (entry.writable || !writes) && (writes || entry.object.is_none())
        })
    }

    /// Gives the region at `address` an amap of its own, if it still needs one.
    #[track_caller]
    pub fn copy(&self, list: &AmapList<M>, address: usize) {
        let Some((region, entry)) = self.at(address) else {
            return;
        };
        if entry.amap.is_none() && region.pages() >= LARGE {
            let chunk = address & !(CHUNK * PAGE_SIZE - 1);
            self.clip(chunk.max(region.start));
            self.clip((chunk + CHUNK * PAGE_SIZE).min(region.end));
        }
        let Some((&start, entry)) = self.change().range_mut(..=address).next_back() else {
            return;
        };
        let region = VaRange {
            start,
            end: entry.end,
        };
        let own = match &entry.amap {
            None => Some(Amap::new(region.pages(), list)),
            Some(aref) if aref.amap.is_only() => None,
            Some(aref) => aref.amap.lock().copy(&aref.slots(&region), list),
        };
        if let Some(amap) = own {
            entry.amap = Some(Aref { amap, first: 0 });
        }
        entry.needs_copy = false;
    }

    /// Locks the amap and the object that a fault uses. Called under the map's lock for reading.
    #[track_caller]
    pub fn fault(&self, address: usize) -> FaultLocks<'_, M> {
        let mut locks = FaultLocks::default();
        let Some((region, entry)) = self.at(address) else {
            return locks;
        };
        let mut shadowed = false;
        if let Some(aref) = &entry.amap {
            let slot = aref.first + (address - region.start) / PAGE_SIZE;
            let amap = aref.amap.lock();
            shadowed = amap.has(slot);
            locks.amap = Some((amap, slot));
        }
        if let Some(object) = entry.object.as_ref().filter(|_| !shadowed) {
            locks.object = Some(RawWriteGuard::new(&object.0));
        }
        locks
    }
}

/// The gate: the map's rwlock and the pmap's mutex, entries, and the list of all amaps.
pub struct Uvm<M: Machine> {
    amaps: AmapList<M>,
}

/// The locks and entries of a space.
pub type VmMap<M> = map_locks::VmMap<M, OpenbsdKinds, MapEntries<M>>;
/// Held by an operation on a [`VmMap`].
pub type VmMapHeld<'a, M> = map_locks::VmMapHeld<'a, M, OpenbsdKinds, FaultLocks<'a, M>>;

impl<M: Machine> Part<M> for Uvm<M> {
    type Config = ();

    fn new(_: &(), _: Extent) -> Result<Self, Error> {
        let amaps = AmapList::new();
        Ok(Uvm { amaps })
    }
}

impl<M: Machine> Gate<M> for Uvm<M> {
    type Space = VmMap<M>;
    type Page = ();
    type Object = Uobj<M>;
    type Guard<'a> = VmMapHeld<'a, M>;
    type Pmap<'a> = PmapHeld<'a, M, OpenbsdKinds>;

    fn new_space(&self) -> VmMap<M> {
        VmMap::new(MapEntries::new())
    }

    fn new_object(&self) -> Uobj<M> {
        let lock = Arc::new(Padded(ObjectRw::<M>::new()));
        M::label_value(&*lock, "vmobjlock");
        Uobj(lock)
    }

    fn label_space(space: &VmMap<M>) {
        space.locks.label();
    }

    #[track_caller]
    fn begin<'a>(&'a self, space: &'a VmMap<M>, op: Op) -> VmMapHeld<'a, M> {
        let map = space.lock_map(op, MapEntries::wants_copy, |entries, address| {
            entries.copy(&self.amaps, address)
        });
        let fault = match op {
            Op::Fault { address, .. } => space.entries.fault(address),
            Op::Look | Op::Change => FaultLocks::default(),
        };
        VmMapHeld { fault, _map: map }
    }

    #[track_caller]
    fn report<'a>(
        &'a self,
        space: &'a VmMap<M>,
        held: &mut VmMapHeld<'a, M>,
        change: Change<'_, M, Self>,
    ) {
        let entries = &space.entries;
        match change {
            Change::Mapped(range, mapping) => entries.map(range, mapping),
            Change::Unmapped(range) => entries.unmap(&self.amaps, range),
            Change::Protected(range, prot) => entries.protect(range, prot),
            Change::Forked(child) => entries.fork(&child.entries),
            Change::Faulted(..) => held.fault.took(),
            Change::Expected(_) | Change::Unmapping(_) => {}
        }
    }

    #[inline]
    #[track_caller]
    fn lock_pmap<'a>(&self, space: &'a VmMap<M>) -> Self::Pmap<'a> {
        space.locks.lock_pmap()
    }

    #[inline]
    #[track_caller]
    fn try_lock_pmap<'a>(&self, space: &'a VmMap<M>) -> Option<Self::Pmap<'a>> {
        space.locks.try_lock_pmap()
    }
}
