//! PV entries: which mappings a page has.
//!
//! An entry is 12 bytes and stands at a place known by arithmetic: each slot has up to two
//! *PV tables*, one frame for each MiB, with an entry for each page. So an entry need not say
//! where its mapping is nor whose; that is its place in the table, and the table's header.
//! Whether an entry is in use is what the leaf table says at the same index. A page's entries
//! form a list, linked both ways, under the page's PV lock; nobody searches it.
//!
//! # Protocol
//! - A table is made under its slot's lock before the first mapping of its MiB ([`Pmap::prepare`])
//!   and freed under that lock, or with the pmap, when the slot has no page mapped.
//! - An entry's links are protected by the PV lock of the page that lists it.
//! - A header is read only under the lock of a slot that has the table, or under the PV lock of a
//!   page that lists an entry of it: then there is a mapping, so table and leaf table stay.
//!   Whoever frees a table has taken its last entry off a list, under that list's lock, after
//!   such a reader.
//! - Whose the tables are, one slot's or several, says the *family* of the slot's first table,
//!   under its lock ([`super::shared`]).
//!
//! Links are names ([`Pv`]), not pointers: a frame's number and an index.
//!
//! [`Pmap::prepare`]: super::Pmap::prepare

use super::shared::{Family, Owner};
use super::tables::Table;
use crate::lock::FamilyLock;
use core::mem::offset_of;
use core::ptr::NonNull;
use machine::{Frame, Machine, Memory, PAGE_SIZE, SharedCell, pte};

/// Entries in a table.
const ENTRIES: usize = 256;
/// Tables of a slot.
const TABLES: usize = pte::ENTRIES / ENTRIES;

/// The name of a PV entry: the frame that it is in, and its place there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Pv {
    /// The table, or the chunk.
    pub frame: Frame,
    /// The entry's place.
    pub index: u16,
}

impl Pv {
    /// Where the mapping is, whose entry this is.
    ///
    /// # Safety
    /// The caller holds the PV lock of the page that lists the entry.
    pub(crate) unsafe fn address<M: Machine + Memory>(self, memory: &M) -> usize {
        // SAFETY: as above, so the table is there.
        let first = unsafe { (*self.header(memory)).first };
        first + usize::from(self.index) * PAGE_SIZE
    }

    /// The leaf table in which the mapping is.
    ///
    /// # Safety
    /// As for [`Pv::address`].
    pub(crate) unsafe fn leaf<M: Machine + Memory>(self, memory: &M) -> Frame {
        // SAFETY: as above, so the table is there.
        unsafe { (*self.header(memory)).leaf }
    }

    /// Whose mapping it is.
    ///
    /// # Safety
    /// As for [`Pv::address`], as long as the reference is used.
    pub(crate) unsafe fn family<M: Machine + Memory>(self, memory: &M) -> &FamilyLock<M, Family> {
        // SAFETY: as above, so the table is there, and the slot's first one with it.
        unsafe { PvTable::family(memory, self.frame) }
    }

    /// The next on the page's list.
    ///
    /// # Safety
    /// As for [`Pv::address`].
    pub(crate) unsafe fn next<M: Machine + Memory>(self, memory: &M) -> Option<Pv> {
        // SAFETY: as above, so the table is there, and nobody else writes the links.
        unsafe { (*self.cell(memory).as_ref().read()).link(NEXT).get() }
    }

    /// What the table knows.
    ///
    /// # Safety
    /// The table is there.
    unsafe fn header<M: Machine + Memory>(self, memory: &M) -> *const Header {
        // SAFETY: the table is there, and its header is never written while it is.
        unsafe { (*PvTable::at(memory, self.frame).as_ptr()).header.read() }
    }

    /// The entry's links, to be written.
    ///
    /// # Safety
    /// The caller holds the PV lock of the page that lists the entry, or is about to.
    unsafe fn links<M: Machine + Memory>(self, memory: &M) -> *mut Links {
        // SAFETY: the table is there.
        unsafe { self.cell(memory).as_ref().write() }
    }

    /// # Safety
    /// The table is there.
    unsafe fn cell<M: Machine + Memory>(self, memory: &M) -> NonNull<M::Cell<Links>> {
        let table = PvTable::at(memory, self.frame).as_ptr();
        // SAFETY: the table is there, with an entry at the index; or a chunk, as
        // `crate::pv` says.
        unsafe {
            let entries = (&raw mut (*table).entries).cast::<M::Cell<Links>>();
            NonNull::new_unchecked(entries.add(usize::from(self.index)))
        }
    }
}

/// A [`Pv`], or none.
#[derive(Clone, Copy)]
struct Link {
    table: Table,
    index: u16,
}

impl Link {
    const NONE: Self = Link {
        table: Table::NONE,
        index: 0,
    };

    const fn of(pv: Pv) -> Self {
        Link {
            table: Table::of(pv.frame),
            index: pv.index,
        }
    }

    fn get(self) -> Option<Pv> {
        let index = self.index;
        self.table.get().map(|frame| Pv { frame, index })
    }
}

/// The head of a page's list. Every method needs the page's PV lock.
pub(crate) struct PvHead(Link);

impl PvHead {
    pub(crate) const EMPTY: Self = PvHead(Link::NONE);

    pub(crate) fn first(&self) -> Option<Pv> {
        self.0.get()
    }

    /// Puts `pv` in front.
    ///
    /// # Safety
    /// The PV lock is held; the table of `pv` is there, and it is on no list.
    pub(crate) unsafe fn insert<M: Machine + Memory>(&mut self, memory: &M, pv: Pv) {
        // SAFETY: the entry is the caller's, its successor is under the same PV lock.
        unsafe {
            *pv.links(memory) = Links::before(self.0);
            if let Some(next) = self.first() {
                (*next.links(memory)).set(PREVIOUS, Link::of(pv));
            }
        }
        self.0 = Link::of(pv);
    }

    /// Takes `pv` off.
    ///
    /// # Safety
    /// The PV lock is held; `pv` is on this list.
    pub(crate) unsafe fn remove<M: Machine + Memory>(&mut self, memory: &M, pv: Pv) {
        // SAFETY: the entry and its neighbours are on the list, under the PV lock.
        unsafe {
            let links = pv.cell(memory).as_ref().read();
            let (next, previous) = ((*links).link(NEXT), (*links).link(PREVIOUS));
            match previous.get() {
                Some(previous) => (*previous.links(memory)).set(NEXT, next),
                None => self.0 = next,
            }
            if let Some(next) = next.get() {
                (*next.links(memory)).set(PREVIOUS, previous);
            }
        }
    }
}

/// An entry: its neighbours on the page's list, as links whose parts stand so that they take
/// 12 bytes. Protected by the page's PV lock.
pub struct Links {
    tables: [Table; 2],
    indices: [u16; 2],
}

const NEXT: usize = 0;
const PREVIOUS: usize = 1;

impl Links {
    /// Of an entry that is on no list.
    pub const NONE: Self = Links {
        tables: [Table::NONE; 2],
        indices: [0; 2],
    };

    /// Of an entry in front of `next`.
    const fn before(next: Link) -> Self {
        Links {
            tables: [next.table, Table::NONE],
            indices: [next.index, 0],
        }
    }

    const fn link(&self, which: usize) -> Link {
        Link {
            table: self.tables[which],
            index: self.indices[which],
        }
    }

    fn set(&mut self, which: usize, link: Link) {
        self.tables[which] = link.table;
        self.indices[which] = link.index;
    }
}

/// A frame full of entries.
#[repr(C)]
struct PvTable<M: Machine + Memory> {
    header: M::Cell<Header>,
    entries: [M::Cell<Links>; ENTRIES],
    /// Of a slot's first table; else unused.
    family: FamilyLock<M, Family>,
}

/// Where in a frame the links of the entry with index 0 are, in bytes.
pub const fn links_at<M: Machine + Memory>() -> usize {
    offset_of!(PvTable<M>, entries)
}

/// What a table knows. Written before the table has an entry, and never again.
struct Header {
    /// Where the page of the first entry is mapped.
    first: usize,
    /// The leaf table, in which the mappings are.
    leaf: Frame,
    /// The first table that the slot was given, which goes with the others.
    main: Frame,
}

impl<M: Machine + Memory> PvTable<M> {
    fn at(memory: &M, frame: Frame) -> NonNull<Self> {
        memory.direct_map(frame).cast()
    }

    /// Whose the table in `frame` is.
    ///
    /// # Safety
    /// The table is there as long as the reference is used.
    unsafe fn family(memory: &M, frame: Frame) -> &FamilyLock<M, Family> {
        // SAFETY: the table is there, and with it the slot's first one.
        unsafe {
            let main = (*(*Self::at(memory, frame).as_ptr()).header.read()).main;
            &(*Self::at(memory, main).as_ptr()).family
        }
    }
}

/// A slot's PV tables. Every method needs the slot's lock.
#[derive(Clone, Copy)]
pub(crate) struct PvTables([Table; TABLES]);

impl PvTables {
    pub(crate) const NONE: Self = PvTables([Table::NONE; TABLES]);

    /// Bytes of addresses that a table is for.
    pub(super) const SPAN: usize = ENTRIES * PAGE_SIZE;

    /// The entry of the page at `address`, if its table is there.
    #[inline]
    pub(crate) fn entry(&self, address: usize) -> Option<Pv> {
        let page = pte::index(address, 0);
        let frame = self.0[page / ENTRIES].get()?;
        let index = (page % ENTRIES) as u16;
        Some(Pv { frame, index })
    }

    /// The addresses in the slot at `start` whose MiB have a table.
    pub(super) fn spans(&self, start: usize) -> impl Iterator<Item = usize> + use<> {
        let tables = self.0;
        let at = (0..TABLES).filter(move |&index| tables[index].get().is_some());
        at.map(move |index| start + index * Self::SPAN)
    }

    /// Whose the tables are; `None` if there is no table.
    ///
    /// # Safety
    /// The slot's lock is held as long as the reference is used.
    pub(super) unsafe fn family<'m, M: Machine + Memory>(
        &self,
        memory: &'m M,
    ) -> Option<&'m FamilyLock<M, Family>> {
        let any = self.0.iter().find_map(|table| table.get())?;
        // SAFETY: as above, so the table is there.
        Some(unsafe { PvTable::family(memory, any) })
    }

    /// Makes `frame` the table of the MiB of `address`, which has none, in a slot of `owner`'s with
    /// this leaf table.
    ///
    /// # Safety
    /// The frame is the caller's, and becomes the table's.
    pub(super) unsafe fn add<M: Machine + Memory>(
        &mut self,
        memory: &M,
        frame: Frame,
        address: usize,
        owner: Owner,
        leaf: Frame,
    ) {
        const {
            // A checker's cells are larger.
            let plain = size_of::<M::Cell<Links>>() == size_of::<Links>();
            assert!(size_of::<Links>() == 12);
            assert!(!plain || size_of::<PvTable<M>>() <= PAGE_SIZE);
            assert!(offset_of!(PvTable<M>, header) == 0);
        }
        // Known when this is compiled.
        assert!(size_of::<PvTable<M>>() <= PAGE_SIZE, "a table is a frame");
        let first = address & !(Self::SPAN - 1);
        // Of two tables the other one is the first.
        let other = self.0.iter().find_map(|table| table.get());
        let main = other.unwrap_or(frame);
        let header = Header { first, leaf, main };
        // SAFETY: the frame is ours alone, page-aligned and large enough; entries are written
        // when they come to a list.
        unsafe {
            let table = PvTable::at(memory, frame).as_ptr();
            (&raw mut (*table).header).write(<M::Cell<Header>>::new(header));
            (&raw mut (*table).family).write(FamilyLock::<M, _>::new(Family::of(owner)));
        }
        self.0[pte::index(address, 0) / ENTRIES] = Table::of(frame);
    }

    /// Takes the tables away, whose frames are the caller's then. No entry is on a list.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Frame> + use<> {
        let tables = core::mem::replace(self, Self::NONE);
        tables.0.into_iter().filter_map(Table::get)
    }
}
