//! A frame full of PV entries.

use core::mem::offset_of;
use machine::{Asid, Frame, Machine, Memory, PAGE_SIZE, SharedCell};
use vm::pv::{Links, Pv, links_at};

/// Entries in a chunk.
pub(super) const ENTRIES: usize = 168;
const WORDS: usize = ENTRIES.div_ceil(64);

/// Indices that the VM's links count for each entry: its links and its address.
const INDICES: u16 = 2;

/// A frame's number, or none.
pub(super) type Name = Option<Frame>;

/// A chunk: 4088 bytes.
#[repr(C)]
pub(super) struct Chunk<M: Machine> {
    header: M::Cell<Header>,
    entries: [Entry<M>; ENTRIES],
    own: M::Cell<Own>,
    by_age: M::Cell<Neighbours>,
}

/// The owner of a chunk (`pc_pmap`). Written before any of its entries is taken, and never again.
struct Header {
    owner: usize,
    tag: Asid,
    /// The domain whose list holds the chunk.
    domain: u16,
}

/// A PV entry: 24 bytes.
#[repr(C)]
struct Entry<M: Machine> {
    /// Protected by the PV lock of the page that lists the entry.
    links: M::Cell<Links>,
    /// Protected by the PV lock of the page that lists the entry, and by the pmap's lock when the
    /// entry is taken.
    address: M::Cell<Address>,
}

/// 12 bytes, like the links.
#[repr(C, packed(4))]
struct Address(usize, u32);

/// The part that the lock of a pmap's chunks protects.
pub(super) struct Own {
    /// A bit for each free entry (`pc_map`).
    free: [u64; WORDS],
    /// Neighbours in the pmap's list (`pc_list`); in an empty chunk, the next empty one.
    pub(super) list: Neighbours,
}

/// Neighbours in a list of chunks: 8 bytes, frames' numbers or [`Neighbours::NOBODY`].
#[derive(Clone, Copy)]
pub(super) struct Neighbours {
    next: u32,
    previous: u32,
}

impl Neighbours {
    const NOBODY: u32 = u32::MAX;

    pub(super) fn of(next: Name, previous: Name) -> Self {
        let number = |name: Name| name.map_or(Self::NOBODY, |frame| frame.0);
        Neighbours {
            next: number(next),
            previous: number(previous),
        }
    }

    const fn name(number: u32) -> Name {
        match number {
            Self::NOBODY => None,
            frame => Some(Frame(frame)),
        }
    }

    pub(super) const fn next(self) -> Name {
        Self::name(self.next)
    }

    pub(super) const fn previous(self) -> Name {
        Self::name(self.previous)
    }

    pub(super) fn set_next(&mut self, next: Name) {
        *self = Self::of(next, self.previous());
    }

    pub(super) fn set_previous(&mut self, previous: Name) {
        *self = Self::of(self.next(), previous);
    }
}

const ALL_FREE: [u64; WORDS] = {
    let mut bits = [u64::MAX; WORDS];
    bits[WORDS - 1] >>= WORDS * 64 - ENTRIES;
    bits
};

impl Own {
    pub(super) fn has_room(&self) -> bool {
        self.free != [0; WORDS]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.free == ALL_FREE
    }

    /// Takes a free entry. The chunk has one.
    pub(super) fn take(&mut self) -> usize {
        let word = self.free.iter().position(|&bits| bits != 0);
        let word = word.expect("a chunk with room");
        let bit = self.free[word].trailing_zeros() as usize;
        self.free[word] &= self.free[word] - 1;
        word * 64 + bit
    }

    pub(super) fn give(&mut self, entry: usize) {
        debug_assert!(
            self.free[entry / 64] & 1 << (entry % 64) == 0,
            "an entry is freed twice"
        );
        self.free[entry / 64] |= 1 << (entry % 64);
    }

    /// The taken entries.
    pub(super) fn taken(&self) -> impl Iterator<Item = usize> + use<> {
        let free = self.free;
        (0..ENTRIES).filter(move |entry| free[entry / 64] & 1 << (entry % 64) == 0)
    }
}

impl<M: Machine + Memory> Chunk<M> {
    fn at(machine: &M, frame: Frame) -> *mut Self {
        machine.direct_map(frame).cast().as_ptr()
    }

    /// Turns `frame`, which belongs to the caller alone, into a chunk whose entries are all free.
    pub(super) fn make(machine: &M, frame: Frame, owner: *const (), tag: Asid) {
        const {
            // A checker's cells are larger.
            let plain = size_of::<M::Cell<Links>>() == size_of::<Links>();
            assert!(!plain || size_of::<Self>() <= PAGE_SIZE && size_of::<Entry<M>>() == 24);
        }
        // Evaluated at compile time.
        assert!(size_of::<Self>() <= PAGE_SIZE, "a chunk is a frame");
        assert!(offset_of!(Self, entries) == links_at::<M>());
        assert!(size_of::<Entry<M>>() == usize::from(INDICES) * size_of::<M::Cell<Links>>());
        let owner = owner.expose_provenance();
        let list = Neighbours::of(None, None);
        let own = Own {
            free: ALL_FREE,
            list,
        };
        let chunk = Self::at(machine, frame);
        // SAFETY: the frame belongs to the caller alone, is page-aligned and large enough; entries
        // are written when they are taken.
        unsafe {
            (&raw mut (*chunk).header).write(SharedCell::new(Header {
                owner,
                tag,
                domain: 0,
            }));
            (&raw mut (*chunk).own).write(SharedCell::new(own));
            (&raw mut (*chunk).by_age).write(SharedCell::new(list));
        }
    }

    /// The part that the lock of the pmap's chunks protects.
    ///
    /// # Safety
    /// The frame is a chunk of a pmap whose lock is held, and this is the only reference.
    pub(super) unsafe fn own<'a>(machine: &M, frame: Frame) -> &'a mut Own {
        // SAFETY: the caller holds the pmap's lock and has no other reference.
        unsafe { &mut *(*Self::at(machine, frame)).own.write() }
    }

    /// The part that the lock of the pmap's chunks protects, for reading.
    ///
    /// # Safety
    /// The frame is a chunk of a pmap whose lock is held, and the chunk is not written meanwhile.
    pub(super) unsafe fn look<'a>(machine: &M, frame: Frame) -> &'a Own {
        // SAFETY: the caller holds the pmap's lock, so no writer interferes.
        unsafe { &*(*Self::at(machine, frame)).own.read() }
    }

    /// The neighbours by age.
    ///
    /// # Safety
    /// The frame is a chunk of a list whose lock is held, and this is the only reference.
    pub(super) unsafe fn by_age<'a>(machine: &M, frame: Frame) -> &'a mut Neighbours {
        // SAFETY: the caller holds the list's lock and has no other reference.
        unsafe { &mut *(*Self::at(machine, frame)).by_age.write() }
    }

    /// The next empty chunk after one that belongs to the caller alone.
    pub(super) fn next(machine: &M, frame: Frame) -> Name {
        // SAFETY: the chunk belongs to the caller alone.
        unsafe { Self::look(machine, frame) }.list.next()
    }

    /// The tag of the chunk's pmap.
    ///
    /// # Safety
    /// The frame is a chunk, and stays one.
    pub(super) unsafe fn tag(machine: &M, frame: Frame) -> Asid {
        // SAFETY: the caller knows that the frame stays a chunk; the header is not written while it
        // is one.
        unsafe { (*(*Self::at(machine, frame)).header.read()).tag }
    }

    /// The domain whose list holds the chunk.
    ///
    /// # Safety
    /// The frame is a chunk, and stays one.
    pub(super) unsafe fn domain(machine: &M, frame: Frame) -> usize {
        // SAFETY: the caller knows that the frame stays a chunk; the header is not written while it
        // is one.
        usize::from(unsafe { (*(*Self::at(machine, frame)).header.read()).domain })
    }

    /// Sets the domain whose list will hold the chunk.
    ///
    /// # Safety
    /// The chunk is new, and only the caller knows it.
    pub(super) unsafe fn set_domain(machine: &M, frame: Frame, domain: usize) {
        // SAFETY: only the caller knows the chunk.
        unsafe { (*(*Self::at(machine, frame)).header.write()).domain = domain as u16 };
    }

    /// The pmap that was passed to [`Chunk::make`].
    ///
    /// # Safety
    /// The frame is a chunk, and stays one.
    pub(super) unsafe fn owner(machine: &M, frame: Frame) -> *const () {
        // SAFETY: the caller knows that the frame stays a chunk; the header is not written while it
        // is one.
        let owner = unsafe { (*(*Self::at(machine, frame)).header.read()).owner };
        core::ptr::with_exposed_provenance(owner)
    }

    /// Sets the address of `entry`, which was just taken.
    ///
    /// # Safety
    /// The frame is a chunk of a pmap whose lock is held, and the entry on no list.
    pub(super) unsafe fn begin(machine: &M, frame: Frame, entry: usize, address: usize) -> Pv {
        // SAFETY: the caller has taken the entry and holds the pmap's lock.
        unsafe {
            let entry = &raw mut (*Self::at(machine, frame)).entries[entry];
            (&raw mut (*entry).links).write(SharedCell::new(Links::NONE));
            (&raw mut (*entry).address).write(SharedCell::new(Address(address, 0)));
        }
        let index = Self::index(entry);
        Pv { frame, index }
    }

    /// The index of the entry at a place.
    pub(super) const fn index(entry: usize) -> u16 {
        entry as u16 * INDICES
    }

    /// The place of an entry in its chunk.
    pub(super) const fn place(pv: Pv) -> usize {
        (pv.index / INDICES) as usize
    }

    /// # Safety
    /// The entry is taken, and protected by a lock that is held.
    pub(super) unsafe fn address(machine: &M, pv: Pv) -> usize {
        // SAFETY: the caller holds the lock that protects the taken entry.
        unsafe {
            let entries = &raw const (*Self::at(machine, pv.frame)).entries;
            (*(*entries)[Self::place(pv)].address.read()).0
        }
    }

    /// # Safety
    /// The entry is taken, and protected by a lock that is held.
    pub(super) unsafe fn set_address(machine: &M, pv: Pv, address: usize) {
        // SAFETY: the caller holds the lock that protects the taken entry.
        unsafe {
            let entries = &raw const (*Self::at(machine, pv.frame)).entries;
            (*(*entries)[Self::place(pv)].address.write()).0 = address;
        }
    }
}
