//! The tables of entries, and each table's header.

use super::family::{Family, FamilyRef};
use super::kin::Seats;
use super::list::Links;
use super::{Owner, Pv};
use crate::lock::FamilyLock;
use core::mem::offset_of;
use core::ptr::NonNull;
use machine::{Frame, Machine, Memory, PAGE_SIZE, SharedCell, pte};

/// Entries in a table.
pub(super) const ENTRIES: usize = 256;
/// Tables of a slot.
const TABLES: usize = pte::ENTRIES / ENTRIES;

/// The frame of a table, or none. 4 bytes.
#[derive(Clone, Copy)]
pub(crate) struct Table(u32);

impl Table {
    pub(crate) const NONE: Self = Table(u32::MAX);

    pub(crate) const fn of(frame: Frame) -> Self {
        debug_assert!(
            frame.0 != u32::MAX,
            "the number says that there is no table"
        );
        Table(frame.0)
    }

    pub(super) const fn to_bits(self) -> u32 {
        self.0
    }

    pub(super) const fn from_bits(bits: u32) -> Self {
        Table(bits)
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
    /// Used in a slot's first table only.
    family: FamilyLock<M, Family>,
    seats: Seats<M>,
    /// The slot's kin, if it has any. Used in a slot's first table only. Protected by the slot's
    /// lock, and read by walks that share the slot.
    kin: M::Cell<Option<Kin>>,
}

/// The offset in a frame of the links of the entry with index 0, in bytes.
pub const fn links_at<M: Machine + Memory>() -> usize {
    offset_of!(PvTable<M>, entries)
}

/// The header of a table. Written before the table has an entry, and never again.
struct Header {
    /// The address of the first entry's page.
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

    /// The first table of the slot that has the table in `frame`.
    ///
    /// # Safety
    /// The table is there.
    unsafe fn main(memory: &M, frame: Frame) -> *mut Self {
        // SAFETY: the table is there, and its header is never written while it is.
        let main = unsafe { (*(*Self::at(memory, frame).as_ptr()).header.read()).main };
        Self::at(memory, main).as_ptr()
    }

    /// The family that has the table in `frame`.
    ///
    /// # Safety
    /// The table is there as long as the reference is used.
    unsafe fn family(memory: &M, frame: Frame) -> FamilyRef<'_, M> {
        // SAFETY: the table is there, and with it the slot's first one.
        unsafe {
            let main = Self::main(memory, frame);
            let (lock, seats) = (&(*main).family, &(*main).seats);
            FamilyRef { lock, seats }
        }
    }
}

impl Pv {
    /// The address that the entry's mapping maps.
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
    /// The caller holds the PV lock of the page that lists the entry.
    pub(crate) unsafe fn leaf<M: Machine + Memory>(self, memory: &M) -> Frame {
        // SAFETY: the caller holds the lock of the list, so the table is there.
        unsafe { (*self.header(memory)).leaf }
    }

    /// The family that has the mapping.
    ///
    /// # Safety
    /// The caller holds the PV lock of the page that lists the entry, as long as the reference is
    /// used.
    pub(crate) unsafe fn family<M: Machine + Memory>(self, memory: &M) -> FamilyRef<'_, M> {
        // SAFETY: the caller holds the lock of the list, so the table is there, and the slot's
        // first one with it.
        unsafe { PvTable::family(memory, self.frame) }
    }

    /// The number of leaf tables that map the page of this entry of kin.
    ///
    /// # Safety
    /// The caller holds the PV lock of the page that lists the entry.
    pub(crate) unsafe fn count<M: Machine + Memory>(self, memory: &M) -> u8 {
        // SAFETY: the caller holds the lock of the list, so the table is there.
        unsafe {
            (*PvTable::at(memory, self.frame).as_ptr())
                .seats
                .count(self.index)
        }
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

/// A slot's membership in a family of kin.
#[derive(Clone, Copy)]
pub(crate) struct Kin {
    /// The PV tables that they have in common.
    pub(crate) tables: PvTables,
    /// The slot's seat in their family.
    pub(crate) seat: u8,
}

impl Kin {
    /// The kin's PV entry of the page at `address`, which some member maps.
    #[inline]
    pub(crate) fn entry(&self, address: usize) -> Pv {
        let entry = self.tables.entry(address);
        entry.expect("kin have an entry for each page that is theirs")
    }

    /// Returns true if there was room for members a moment ago.
    ///
    /// # Safety
    /// A member's slot is held.
    pub(crate) unsafe fn have_room<M: Machine + Memory>(&self, memory: &M) -> bool {
        // SAFETY: a member is held.
        unsafe { self.seats(memory) }.have_room()
    }

    /// Returns true if the member is the only one.
    ///
    /// # Safety
    /// The member's slot is locked.
    pub(crate) unsafe fn is_alone<M: Machine + Memory>(&self, memory: &M) -> bool {
        // SAFETY: the member is held.
        unsafe { self.seats(memory) }.is_alone(self.seat)
    }

    /// Makes a slot with this leaf table a member, if there is room.
    ///
    /// # Safety
    /// A member's slot is held, and the owner's.
    pub(crate) unsafe fn join<M: Machine + Memory>(
        &self,
        memory: &M,
        owner: Owner,
        leaf: Frame,
    ) -> Option<Self> {
        // SAFETY: a member is held.
        let seat = unsafe { self.seats(memory) }.join(owner, leaf)?;
        Some(Kin { seat, ..*self })
    }

    /// Ends the membership; waits for a walk under way. Returns true if it was the last.
    ///
    /// # Safety
    /// The member's slot is locked.
    pub(crate) unsafe fn leave<M: Machine + Memory>(&self, memory: &M) -> bool {
        // SAFETY: the member is held, and leaves once.
        unsafe { self.seats(memory) }.leave(self.seat)
    }

    /// The number of leaf tables that map the page at `address`.
    ///
    /// # Safety
    /// A member's slot is held.
    pub(crate) unsafe fn count<M: Machine + Memory>(&self, memory: &M, address: usize) -> u8 {
        // SAFETY: a member is held.
        unsafe { self.entry(address).count(memory) }
    }

    /// Counts one leaf table more for each page of `pages`.
    ///
    /// # Safety
    /// The caller holds the slot of a member that has the pages, or is to be the first.
    pub(crate) unsafe fn add<M: Machine + Memory>(&self, memory: &M, pages: &Pages) {
        for (first, bits) in pages.groups() {
            // SAFETY: a member is held.
            unsafe { self.counts(memory, first) }.add((first % ENTRIES) as u16, bits);
        }
    }

    /// Counts one leaf table less for each page of `pages`; returns those that are in none any
    /// more.
    ///
    /// # Safety
    /// The slot of a member that has had the pages is locked.
    pub(crate) unsafe fn take<M: Machine + Memory>(&self, memory: &M, pages: &Pages) -> Pages {
        let mut last = Pages::NONE;
        for (first, bits) in pages.groups() {
            // SAFETY: a member is held.
            let counts = unsafe { self.counts(memory, first) };
            last.0[first / 8] = counts.take((first % ENTRIES) as u16, bits);
        }
        last
    }

    /// The counts of the table that has page `index` of the slot.
    ///
    /// # Safety
    /// A member's slot is held.
    unsafe fn counts<'m, M: Machine + Memory>(&self, memory: &'m M, index: usize) -> &'m Seats<M> {
        let table = self.tables.0[index / ENTRIES].get();
        let table = table.expect("kin have a table for each page that is theirs");
        // SAFETY: a member is held, and members keep the tables.
        unsafe { &(*PvTable::at(memory, table).as_ptr()).seats }
    }

    /// # Safety
    /// A member's slot is held.
    unsafe fn seats<'m, M: Machine + Memory>(&self, memory: &'m M) -> &'m Seats<M> {
        let any = self.tables.any().expect("kin have a table");
        // SAFETY: a member is held, and members keep the tables.
        unsafe { &(*PvTable::main(memory, any)).seats }
    }
}

/// Some pages of a slot, by index.
pub(crate) struct Pages([u8; pte::ENTRIES / 8]);

impl Pages {
    pub(crate) const NONE: Self = Pages([0; _]);

    /// Adds the page at `address`.
    pub(crate) fn add(&mut self, address: usize) {
        let index = pte::index(address, 0);
        self.0[index / 8] |= 1 << (index % 8);
    }

    pub(crate) fn has(&self, address: usize) -> bool {
        let index = pte::index(address, 0);
        self.0[index / 8] & 1 << (index % 8) != 0
    }

    pub(crate) fn is_none(&self) -> bool {
        self.0.iter().all(|&bits| bits == 0)
    }

    /// Their addresses, in the slot at `start`.
    pub(crate) fn addresses(&self, start: usize) -> impl Iterator<Item = usize> {
        let all = (0..pte::ENTRIES).map(move |index| start + index * PAGE_SIZE);
        all.filter(|&address| self.has(address))
    }

    /// For each group of eight pages that has some of these: the index of the group's first page,
    /// and a bit for each of these.
    fn groups(&self) -> impl Iterator<Item = (usize, u8)> {
        let groups = self.0.iter().enumerate().filter(|&(_, &bits)| bits != 0);
        groups.map(|(nth, &bits)| (8 * nth, bits))
    }
}

/// A slot's PV tables. Every method needs the slot's lock.
#[derive(Clone, Copy)]
pub(crate) struct PvTables([Table; TABLES]);

impl PvTables {
    pub(crate) const NONE: Self = PvTables([Table::NONE; TABLES]);

    /// The bytes of address space that a table covers.
    pub(crate) const SPAN: usize = ENTRIES * PAGE_SIZE;

    /// The entry of the page at `address`, if its table is there.
    #[inline]
    pub(crate) fn entry(&self, address: usize) -> Option<Pv> {
        let page = pte::index(address, 0);
        let frame = self.0[page / ENTRIES].get()?;
        let index = (page % ENTRIES) as u16;
        Some(Pv { frame, index })
    }

    /// Returns true if there are none.
    pub(crate) fn is_none(&self) -> bool {
        self.any().is_none()
    }

    /// One of them, if there is one.
    #[inline]
    fn any(&self) -> Option<Frame> {
        self.0.iter().find_map(|table| table.get())
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
    ) -> Option<FamilyRef<'m, M>> {
        let any = self.any()?;
        // SAFETY: the caller holds the slot's lock, so the table is there.
        Some(unsafe { PvTable::family(memory, any) })
    }

    /// The slot's kin, if it has any.
    ///
    /// # Safety
    /// The slot's lock is held, or a walk shares the slot.
    #[inline]
    pub(crate) unsafe fn kin<M: Machine + Memory>(&self, memory: &M) -> Option<Kin> {
        let any = self.any()?;
        // SAFETY: the table is there, and with it the slot's first one; nothing writes it
        // meanwhile, as the caller says.
        unsafe { *(*PvTable::main(memory, any)).kin.read() }
    }

    /// Sets the slot's kin.
    ///
    /// # Safety
    /// The slot's lock is held, and the slot has a table.
    pub(crate) unsafe fn set_kin<M: Machine + Memory>(&self, memory: &M, kin: Option<Kin>) {
        let any = self.any().expect("the slot has a table");
        debug_assert!(
            kin.is_none_or(|kin| kin.tables.0.iter().all(|table| {
                let of_kin = table.get();
                of_kin.is_none() || self.0.iter().all(|own| own.get() != of_kin)
            })),
            "the kin's tables are the slot's own"
        );
        // SAFETY: the table is there, and with it the slot's first one; the slot's lock is held.
        unsafe { *(*PvTable::main(memory, any)).kin.write() = kin };
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
        debug_assert!(
            self.entry(address).is_none(),
            "the MiB of {address:#x} has a table"
        );
        debug_assert!(frame != leaf, "a table is both a leaf and of PV entries");
        let first = address & !(Self::SPAN - 1);
        // If the slot has another table, that is the first.
        let other = self.any();
        let main = other.unwrap_or(frame);
        let header = Header { first, leaf, main };
        // SAFETY: the frame is the caller's alone, page-aligned and large enough; entries are
        // written when they join a list.
        unsafe {
            let table = PvTable::at(memory, frame).as_ptr();
            (&raw mut (*table).header).write(<M::Cell<Header>>::new(header));
            (&raw mut (*table).family).write(FamilyLock::<M, _>::new(Family::ONE));
            (&raw mut (*table).seats).write(Seats::of(owner));
            (&raw mut (*table).kin).write(<M::Cell<Option<Kin>>>::new(None));
            // A checker's cells are more than their content.
            if size_of::<M::Cell<Links>>() != size_of::<Links>() {
                let entries = (&raw mut (*table).entries).cast::<M::Cell<Links>>();
                (0..ENTRIES)
                    .for_each(|index| entries.add(index).write(SharedCell::new(Links::NONE)));
            }
        }
        self.0[pte::index(address, 0) / ENTRIES] = Table::of(frame);
    }

    /// Takes the tables out of the slot; their frames are then the caller's. No entry is on a list.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Frame> + use<> {
        let tables = core::mem::replace(self, Self::NONE);
        tables.0.into_iter().filter_map(Table::get)
    }
}
