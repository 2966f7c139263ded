//! Map entries: the regions of a space, each with its object (FreeBSD 14, sys/vm/vm_map.c).
//!
//! Neighbours that are alike are one entry: a new anonymous region extends the one before it, and
//! its object (`vm_map_insert`, `vm_object_coalesce`); parts that a `mprotect` had separated are
//! joined again (`vm_map_try_merge_entries`). So threads with adjacent regions contend for one
//! object's lock.
//!
//! An entry gets its object with its first fault, or when it is split, and after a fork a shadow
//! with its first write; both under the map's lock for writing, to which a fault upgrades its own
//! (`vm_map_lookup`).
//!
//! # Protocol
//! The tree of entries is under the map's lock ([`VmMap`]); until a new space is
//! complete, it belongs to the task that makes the space. An object under a region stays as long as
//! the map is locked.
//!
//! The differences: `vm` finds regions in its own tree, so the tree here is only looked up, and its
//! nodes cost nothing; the pages of a region are freed before its object is told, where FreeBSD
//! frees them with the object, when the map is unlocked (`vm_map_process_deferred`); an upgrade of
//! the map's lock is a release and an acquisition; an object's page is assumed to be in memory, so
//! a fault that waits for a pager keeps the map's lock, which FreeBSD releases, and looks at the
//! map's timestamp then (`vm_fault_relookup`); a fault maps its own page, where FreeBSD also maps
//! up to eight neighbours that are in memory (`vm_fault_prefault`); pages that `madvise` frees stay
//! in their object; an entry that maps part of an object is copied without a new object for that
//! part (`vm_object_split`).

use super::object::{AnonObject, Backing, Faulting, FileObject};
use crate::map_locks::{self, PmapHeld, SxKinds};
use alloc::collections::BTreeMap;
use machine::{Access, Machine, PAGE_SIZE, SharedCell, VaRange};
use vm::system::{Change, Extent, Gate, Mapping, Op, Part};
use vm::{Error, Prot};

/// The entries of a space, on a line of their own.
#[repr(align(64))]
pub struct VmEntries<M: Machine>(M::Cell<BTreeMap<usize, Entry<M>>>);

/// An entry; its key is the region's start.
struct Entry<M: Machine> {
    end: usize,
    prot: Prot,
    shared: bool,
    /// A write needs a shadow first.
    needs_copy: bool,
    object: Backing<M>,
    /// The object's page at the region's start.
    first: u64,
}

/// The objects that a fault uses, if there is a region.
#[must_use = "the objects are released when this is dropped"]
pub struct EntryFault<'a, M: Machine> {
    _objects: Option<Faulting<'a, M>>,
}

impl<M: Machine> Default for EntryFault<'_, M> {
    fn default() -> Self {
        EntryFault { _objects: None }
    }
}

fn pages(start: usize, end: usize) -> u64 {
    ((end - start) / PAGE_SIZE) as u64
}

impl<M: Machine> Entry<M> {
    /// Returns true if `next` continues this entry, which begins at `start`.
    fn continues(&self, start: usize, next: &Entry<M>) -> bool {
        let follows = matches!(self.object, Backing::None)
            || self.first + pages(start, self.end) == next.first;
        self.prot == next.prot
            && self.shared == next.shared
            && self.needs_copy == next.needs_copy
            && self.object.is_same(&next.object)
            && follows
    }
}

impl<M: Machine> VmEntries<M> {
    /// The length of the chain of objects at `address`. No operation changes it meanwhile.
    pub fn depth(&self, address: usize) -> usize {
        self.at(address)
            .map_or(0, |(_, entry)| entry.object.depth())
    }

    /// The entries, of a map that is locked.
    fn entries(&self) -> &BTreeMap<usize, Entry<M>> {
        // SAFETY: the map is locked, which excludes writers.
        unsafe { &*self.0.read() }
    }

    /// The entries, of a map that is locked for writing.
    #[allow(clippy::mut_from_ref)]
    fn entries_mut(&self) -> &mut BTreeMap<usize, Entry<M>> {
        // SAFETY: the map is locked for writing, which excludes all others.
        unsafe { &mut *self.0.write() }
    }

    fn at(&self, address: usize) -> Option<(usize, &Entry<M>)> {
        let (&start, entry) = self.entries().range(..=address).next_back()?;
        (address < entry.end).then_some((start, entry))
    }

    /// Splits the entry at `address`, if one lies across it. Both parts have one object.
    #[track_caller]
    fn clip(&self, address: usize) {
        let entries = self.entries_mut();
        let Some((&start, entry)) = entries.range_mut(..address).next_back() else {
            return;
        };
        if entry.end <= address {
            return;
        }
        if let Backing::None = entry.object {
            let object = AnonObject::new(pages(start, entry.end), Backing::None, 0);
            entry.object = Backing::Anon(object);
            entry.first = 0;
        }
        entry.object.refer();
        let second = Entry {
            end: entry.end,
            prot: entry.prot,
            shared: entry.shared,
            needs_copy: entry.needs_copy,
            object: entry.object.clone(),
            first: entry.first + pages(start, address),
        };
        entry.end = address;
        entries.insert(address, second);
    }

    /// Joins the entries that meet at `address`, if they are alike.
    #[track_caller]
    fn merge(&self, address: usize) {
        let entries = self.entries_mut();
        let Some(next) = entries.get(&address) else {
            return;
        };
        let alike = entries
            .range(..address)
            .next_back()
            .is_some_and(|(&start, entry)| entry.end == address && entry.continues(start, next));
        if !alike {
            return;
        }
        let gone = entries.remove(&address).expect("just found");
        if let Some((_, entry)) = entries.range_mut(..address).next_back() {
            entry.end = gone.end;
        }
        gone.object.leave();
    }

    /// Extends the entry before a new anonymous region by that region, if possible. Returns true if
    /// it did.
    #[track_caller]
    fn coalesce(&self, range: VaRange, prot: Prot) -> bool {
        let before = self.entries_mut().range_mut(..range.start).next_back();
        let Some((&start, entry)) = before else {
            return false;
        };
        let is_alike = entry.end == range.start
            && entry.prot == prot
            && !entry.shared
            && !entry.needs_copy
            && match &entry.object {
                Backing::None => true,
                Backing::Anon(object) => {
                    let end = entry.first + pages(start, entry.end);
                    object.extend(end, range.pages() as u64)
                }
                Backing::File(_) => false,
            };
        if is_alike {
            entry.end = range.end;
        }
        is_alike
    }
}

impl<M: Machine> VmEntries<M> {
    /// An empty set of entries.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        VmEntries(SharedCell::new(BTreeMap::new()))
    }

    /// Enters a mapping of `range`, where nothing was mapped. Called under the map's lock for
    /// writing, like all changes of entries.
    #[track_caller]
    pub fn map(&self, range: VaRange, mapping: Mapping<'_, FileObject<M>>) {
        if mapping.object.is_none() && !mapping.shared && self.coalesce(range, mapping.prot) {
            return;
        }
        let (object, first) = match mapping.object {
            Some((object, first)) => (Backing::File(object.clone()), first),
            None => (Backing::None, 0),
        };
        object.refer();
        let entry = Entry {
            end: range.end,
            prot: mapping.prot,
            shared: mapping.shared,
            needs_copy: !mapping.shared && matches!(object, Backing::File(_)),
            object,
            first,
        };
        self.entries_mut().insert(range.start, entry);
        self.merge(range.start);
        self.merge(range.end);
    }

    /// Removes the entries of `range`.
    #[track_caller]
    pub fn unmap(&self, range: VaRange) {
        self.clip(range.start);
        self.clip(range.end);
        let entries = self.entries_mut();
        while let Some((&start, _)) = entries.range(range.start..range.end).next() {
            let entry = entries.remove(&start).expect("just found");
            if let Backing::Anon(object) = &entry.object {
                object.remove(entry.first..entry.first + pages(start, entry.end));
            }
            entry.object.leave();
        }
    }

    /// Gives all of `range` these rights.
    #[track_caller]
    pub fn protect(&self, range: VaRange, prot: Prot) {
        self.clip(range.start);
        self.clip(range.end);
        let mut joints = alloc::vec![range.end];
        for (&start, entry) in self.entries_mut().range_mut(range.start..range.end) {
            entry.prot = prot;
            joints.push(start);
        }
        joints.into_iter().for_each(|joint| self.merge(joint));
    }

    /// Copies the entries to `child`, which has none.
    #[track_caller]
    pub fn fork(&self, child: &Self) {
        let children = child.entries_mut();
        for (&start, entry) in self.entries_mut() {
            match &entry.object {
                Backing::Anon(object) => {
                    object.copy();
                    entry.needs_copy = true;
                }
                other => other.refer(),
            }
            let copy = Entry {
                end: entry.end,
                prot: entry.prot,
                shared: entry.shared,
                needs_copy: entry.needs_copy,
                object: entry.object.clone(),
                first: entry.first,
            };
            children.insert(start, copy);
        }
    }

    /// Returns true if a fault must call [`VmEntries::copy`] before it begins. Called under the
    /// map's lock for reading.
    pub fn wants_copy(&self, address: usize, access: Access) -> bool {
        self.at(address).is_some_and(|(_, entry)| {
            let lacks = matches!(entry.object, Backing::None) && entry.prot.is_accessible();
            lacks || access == Access::Write && entry.needs_copy && entry.prot.writes()
        })
    }

    /// Gives the region at `address` a shadow if it still shares its pages with a copy of the
    /// space.
    #[track_caller]
    pub fn copy(&self, address: usize) {
        let entries = self.entries_mut();
        let Some((&start, entry)) = entries.range_mut(..=address).next_back() else {
            return;
        };
        let size = pages(start, entry.end);
        match &entry.object {
            Backing::None => {}
            Backing::Anon(object) if !entry.needs_copy || object.is_only() => {
                entry.needs_copy = false;
                return;
            }
            _ if !entry.needs_copy => return,
            _ => {}
        }
        // The region's reference now belongs to the shadow.
        let behind = core::mem::replace(&mut entry.object, Backing::None);
        entry.object = Backing::Anon(AnonObject::new(size, behind, entry.first));
        entry.first = 0;
        entry.needs_copy = false;
    }

    /// Locks, or counts references to, the objects that a fault uses. Called under the map's lock
    /// for reading.
    #[track_caller]
    pub fn fault(&self, address: usize, access: Access) -> EntryFault<'_, M> {
        let allows = |prot: Prot| match access {
            Access::Read => prot.is_accessible(),
            Access::Write => prot.writes(),
            Access::Execute => prot.executes(),
        };
        let region = self.at(address).filter(|(_, entry)| allows(entry.prot));
        let objects = region.and_then(|(start, entry)| {
            let index = entry.first + pages(start, address & !(PAGE_SIZE - 1));
            match &entry.object {
                Backing::None => None,
                Backing::Anon(object) => Some(object.fault(index, access == Access::Write)),
                Backing::File(object) => Some(object.fault()),
            }
        });
        EntryFault { _objects: objects }
    }
}

/// FreeBSD 14's gate: the map's `sx` and the pmap's mutex, and entries with objects.
pub struct Entries;

/// The locks and entries of a space.
pub type VmMap<M> = map_locks::VmMap<M, SxKinds, VmEntries<M>>;
/// Held by an operation on a [`VmMap`].
pub type VmMapHeld<'a, M> = map_locks::VmMapHeld<'a, M, SxKinds, EntryFault<'a, M>>;

impl<M: Machine> Part<M> for Entries {
    type Config = ();

    fn new(_: &(), _: Extent) -> Result<Self, Error> {
        Ok(Entries)
    }
}

impl<M: Machine> Gate<M> for Entries {
    type Space = VmMap<M>;
    type Page = ();
    type Object = FileObject<M>;
    type Guard<'a> = VmMapHeld<'a, M>;
    type Pmap<'a> = PmapHeld<'a, M, SxKinds>;

    fn new_space(&self) -> VmMap<M> {
        VmMap::new(VmEntries::new())
    }

    fn new_object(&self) -> FileObject<M> {
        FileObject::new()
    }

    fn label_space(space: &VmMap<M>) {
        space.locks.label();
    }

    #[track_caller]
    fn begin<'a>(&'a self, space: &'a VmMap<M>, op: Op) -> VmMapHeld<'a, M> {
        let map = space.lock_map(op, VmEntries::wants_copy, |entries, address| {
            entries.copy(address)
        });
        let fault = match op {
            Op::Fault { address, access } => space.entries.fault(address, access),
            Op::Look | Op::Change => EntryFault::default(),
        };
        VmMapHeld { fault, _map: map }
    }

    #[track_caller]
    fn report<'a>(
        &'a self,
        space: &'a VmMap<M>,
        _: &mut VmMapHeld<'a, M>,
        change: Change<'_, M, Self>,
    ) {
        let entries = &space.entries;
        match change {
            Change::Mapped(range, mapping) => entries.map(range, mapping),
            Change::Unmapped(range) => entries.unmap(range),
            Change::Protected(range, prot) => entries.protect(range, prot),
            Change::Forked(child) => entries.fork(&child.entries),
            // The object got the page when the fault began.
            Change::Expected(_) | Change::Unmapping(_) | Change::Faulted(..) => {}
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
