//! The tables in which entries stand, and each table's header.

use super::list::Links;
use super::{Family, Owner, Pv};
use crate::lock::FamilyLock;
use core::mem::offset_of;
use core::ptr::NonNull;
use machine::{Frame, Machine, Memory, PAGE_SIZE, SharedCell, pte};

/// Entries in a table.
const ENTRIES: usize = 256;
/// Tables of a slot.
const TABLES: usize = pte::ENTRIES / ENTRIES;

/// The frame of a table, or none. 4 bytes.
#[derive(Clone, Copy)]
pub(crate) struct Table(u32);

impl Table {
    pub(crate) const NONE: Self = Table(u32::MAX);

    pub(crate) const fn of(frame: Frame) -> Self {
        Table(frame.0)
    }

    #[inline]
    pub(crate) const fn get(self) -> Option<Frame> {
        match self.0 {
            u32::MAX => None,
            frame => Some(Frame(frame)),
        }
    }
}

/// A frame full of entries.
#[repr(C)]
pub(super) struct PvTable<M: Machine + Memory> {
    header: M::Cell<Header>,
    pub(super) entries: [M::Cell<Links>; ENTRIES],
    /// Of a slot's first table; else unused.
    family: FamilyLock<M, Family>,
}

/// Where in a frame the links of the entry with index 0 are, in bytes.
pub const fn links_at<M: Machine + Memory>() -> usize {
    offset_of!(PvTable<M>, entries)
}

/// The header of a table. Written before the table has an entry, and never again.
struct Header {
    /// Where the page of the first entry is mapped.
    first: usize,
    /// The leaf table, in which the mappings are.
    leaf: Frame,
    /// The first table that the slot was given, which goes with the others.
    main: Frame,
}

impl<M: Machine + Memory> PvTable<M> {
    pub(super) fn at(memory: &M, frame: Frame) -> NonNull<Self> {
        memory.direct_map(frame).cast()
    }

    /// The family that has the table in `frame`.
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

impl Pv {
    /// Where the entry's mapping is.
    ///
    /// # Safety
    /// The caller holds the PV lock of the page that lists the entry.
    pub(crate) unsafe fn address<M: Machine + Memory>(self, memory: &M) -> usize {
        // SAFETY: the caller holds the lock of the list, so the table is there.
        let first = unsafe { (*self.header(memory)).first };
        first + usize::from(self.index) * PAGE_SIZE
    }

    /// The leaf table in which the mapping is.
    ///
    /// # Safety
    /// As for [`Pv::address`].
    pub(crate) unsafe fn leaf<M: Machine + Memory>(self, memory: &M) -> Frame {
        // SAFETY: the caller holds the lock of the list, so the table is there.
        unsafe { (*self.header(memory)).leaf }
    }

    /// The family that has the mapping.
    ///
    /// # Safety
    /// As for [`Pv::address`], as long as the reference is used.
    pub(crate) unsafe fn family<M: Machine + Memory>(self, memory: &M) -> &FamilyLock<M, Family> {
        // SAFETY: the caller holds the lock of the list, so the table is there, and the slot's first one with it.
        unsafe { PvTable::family(memory, self.frame) }
    }

    /// The table's header.
    ///
    /// # Safety
    /// The table is there.
    unsafe fn header<M: Machine + Memory>(self, memory: &M) -> *const Header {
        // SAFETY: the table is there, and its header is never written while it is.
        unsafe { (*PvTable::at(memory, self.frame).as_ptr()).header.read() }
    }
}

/// A slot's PV tables. Every method needs the slot's lock.
#[derive(Clone, Copy)]
pub(crate) struct PvTables([Table; TABLES]);

impl PvTables {
    pub(crate) const NONE: Self = PvTables([Table::NONE; TABLES]);

    /// Bytes of addresses that a table is for.
    pub(crate) const SPAN: usize = ENTRIES * PAGE_SIZE;

    /// The entry of the page at `address`, if its table is there.
    #[inline]
    pub(crate) fn entry(&self, address: usize) -> Option<Pv> {
        let page = pte::index(address, 0);
        let frame = self.0[page / ENTRIES].get()?;
        let index = (page % ENTRIES) as u16;
        Some(Pv { frame, index })
    }

    /// The addresses in the slot at `start` whose MiB have a table.
    pub(crate) fn spans(&self, start: usize) -> impl Iterator<Item = usize> + use<> {
        let tables = self.0;
        let at = (0..TABLES).filter(move |&index| tables[index].get().is_some());
        at.map(move |index| start + index * Self::SPAN)
    }

    /// The family that has the tables; `None` if there is no table.
    ///
    /// # Safety
    /// The slot's lock is held as long as the reference is used.
    pub(crate) unsafe fn family<'m, M: Machine + Memory>(
        &self,
        memory: &'m M,
    ) -> Option<&'m FamilyLock<M, Family>> {
        let any = self.0.iter().find_map(|table| table.get())?;
        // SAFETY: the caller holds the slot's lock, so the table is there.
        Some(unsafe { PvTable::family(memory, any) })
    }

    /// Makes `frame` the table of the MiB of `address`, which has none, in a slot of `owner`'s with
    /// this leaf table.
    ///
    /// # Safety
    /// The frame is the caller's, and becomes the table's.
    pub(crate) unsafe fn add<M: Machine + Memory>(
        &mut self,
        memory: &M,
        frame: Frame,
        address: usize,
        owner: Owner,
        leaf: Frame,
    ) {
        const {
            assert!(size_of::<Links>() == 12);
            assert!(size_of::<PvTable<M>>() <= M::ROOM, "a table is a frame");
            assert!(offset_of!(PvTable<M>, header) == 0);
        }
        let first = address & !(Self::SPAN - 1);
        // Of two tables the other one is the first.
        let other = self.0.iter().find_map(|table| table.get());
        let main = other.unwrap_or(frame);
        let header = Header { first, leaf, main };
        // SAFETY: the frame is the caller's alone, page-aligned and large enough; entries are written
        // when they join a list.
        unsafe {
            let table = PvTable::at(memory, frame).as_ptr();
            (&raw mut (*table).header).write(<M::Cell<Header>>::new(header));
            (&raw mut (*table).family).write(FamilyLock::<M, _>::new(Family::of(owner)));
            // A checker's cells are more than their content.
            if size_of::<M::Cell<Links>>() != size_of::<Links>() {
                let entries = (&raw mut (*table).entries).cast::<M::Cell<Links>>();
                (0..ENTRIES)
                    .for_each(|index| entries.add(index).write(SharedCell::new(Links::NONE)));
            }
        }
        self.0[pte::index(address, 0) / ENTRIES] = Table::of(frame);
    }

    /// Takes the tables away, whose frames are the caller's then. No entry is on a list.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Frame> + use<> {
        let tables = core::mem::replace(self, Self::NONE);
        tables.0.into_iter().filter_map(Table::get)
    }
}
