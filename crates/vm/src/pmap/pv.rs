//! PV entries: which mappings a page has.
//!
//! An entry is 24 bytes and names one mapping. Entries live in chunks, one frame
//! each, 168 to a chunk; a chunk belongs to one slot of one pmap, so its entries need not
//! say whose they are, and allocating one takes no lock but the slot's own. A page's
//! entries form a list under the page's PV lock.

use core::marker::PhantomData;
use core::mem::offset_of;
use core::ptr::{self, NonNull};
use machine::{Frame, Machine, PAGE_SIZE, SharedCell};

/// Entries in a chunk.
const ENTRIES: usize = 168;
const MAP_WORDS: usize = ENTRIES.div_ceil(64);

/// One mapping of a page: protected by the page's PV lock while on its list, by the
/// slot's lock while free.
pub(crate) struct PvEntry<M: Machine> {
    address: usize,
    next: Link<M>,
    previous: Link<M>,
}

type Link<M> = Option<Pv<M>>;

/// A handle of an entry; valid while the entry is allocated.
pub(crate) struct Pv<M: Machine>(NonNull<M::Cell<PvEntry<M>>>);

impl<M: Machine> Clone for Pv<M> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<M: Machine> Copy for Pv<M> {}

// SAFETY: a plain pointer; the locks above say who may follow it.
unsafe impl<M: Machine> Send for Pv<M> {}

impl<M: Machine> Pv<M> {
    /// # Safety
    /// The caller holds the lock that protects the entry.
    unsafe fn entry(self) -> *mut PvEntry<M> {
        // SAFETY: the entry is allocated, so its chunk is there.
        unsafe { self.0.as_ref().write() }
    }

    /// Where the mapping is.
    ///
    /// # Safety
    /// The caller holds the PV lock of the page that lists the entry.
    pub(crate) unsafe fn address(self) -> usize {
        // SAFETY: as above.
        unsafe { (*self.0.as_ref().read()).address }
    }

    /// The next on the page's list.
    ///
    /// # Safety
    /// As for [`Pv::address`].
    pub(crate) unsafe fn next(self) -> Option<Pv<M>> {
        // SAFETY: as above.
        unsafe { (*self.0.as_ref().read()).next }
    }

    /// Whose mapping it is.
    ///
    /// # Safety
    /// The entry stays allocated during the call (its page's PV lock is held).
    pub(crate) unsafe fn owner(self) -> Owner {
        // SAFETY: `owner` never changes while an entry is allocated.
        unsafe { (*self.chunk().as_ref().header.read()).owner() }
    }

    fn chunk(self) -> NonNull<Chunk<M>> {
        let start = self.0.addr().get() & !(PAGE_SIZE - 1);
        let offset = self.0.addr().get() - start;
        // SAFETY: chunks begin at a page boundary, so this stays within the chunk.
        unsafe { self.0.cast::<u8>().sub(offset).cast() }
    }
}

impl<M: Machine> PartialEq for Pv<M> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

/// Whose a chunk is.
#[derive(Clone, Copy)]
pub(crate) struct Owner {
    /// The pmap, in whose `Arc` the slot lives.
    pub(crate) pmap: *const (),
    /// The slot, of level 0. It stays where it is while the pmap lives.
    pub(crate) slot: *const (),
    /// The slot's leaf table, in which the mappings are.
    pub(crate) leaf: Frame,
}

/// The head of a page's list. Every method needs the page's PV lock.
pub(crate) struct PvHead<M: Machine>(Link<M>);

impl<M: Machine> PvHead<M> {
    pub(crate) const EMPTY: Self = PvHead(None);

    pub(crate) fn first(&self) -> Option<Pv<M>> {
        self.0
    }

    /// Puts `pv` in front.
    ///
    /// # Safety
    /// The PV lock is held; `pv` is allocated and on no list.
    pub(crate) unsafe fn insert(&mut self, pv: Pv<M>) {
        // SAFETY: the entry is the caller's, its successor is under the same PV lock.
        unsafe {
            (*pv.entry()).next = self.0;
            (*pv.entry()).previous = None;
            if let Some(next) = self.0 {
                (*next.entry()).previous = Some(pv);
            }
        }
        self.0 = Some(pv);
    }

    /// Takes `pv` off.
    ///
    /// # Safety
    /// The PV lock is held; `pv` is on this list.
    pub(crate) unsafe fn remove(&mut self, pv: Pv<M>) {
        // SAFETY: the entry and its neighbours are on the list under the PV lock.
        unsafe {
            let (next, previous) = ((*pv.entry()).next, (*pv.entry()).previous);
            match previous {
                Some(previous) => (*previous.entry()).next = next,
                None => self.0 = next,
            }
            if let Some(next) = next {
                (*next.entry()).previous = previous;
            }
        }
    }

    /// The mapping of `slot` at `address`. O(mappings of the page).
    ///
    /// # Safety
    /// The PV lock is held.
    pub(crate) unsafe fn find(&self, slot: *const (), address: usize) -> Option<Pv<M>> {
        let mut at = self.0;
        while let Some(pv) = at {
            // SAFETY: entries on the list are valid under the PV lock.
            unsafe {
                if pv.address() == address && pv.owner().slot == slot {
                    return Some(pv);
                }
                at = (*pv.entry()).next;
            }
        }
        None
    }
}

/// A frame full of entries.
#[repr(C)]
struct Chunk<M: Machine> {
    header: M::Cell<Header<M>>,
    entries: [M::Cell<PvEntry<M>>; ENTRIES],
}

/// What a chunk knows. Whose it is never changes, the rest is under the slot's lock.
struct Header<M: Machine> {
    pmap: *const (),
    slot: *const (),
    /// Neighbours among the slot's chunks that have room.
    next: *mut Chunk<M>,
    previous: *mut Chunk<M>,
    /// A bit for each free entry.
    free: [u64; MAP_WORDS],
    leaf: Frame,
    frame: Frame,
}

impl<M: Machine> Header<M> {
    fn owner(&self) -> Owner {
        Owner {
            pmap: self.pmap,
            slot: self.slot,
            leaf: self.leaf,
        }
    }
}

// SAFETY: plain pointers; see the fields' protection.
unsafe impl<M: Machine> Send for Header<M> {}

const NONE_FREE: [u64; MAP_WORDS] = [0; MAP_WORDS];
const ALL_FREE: [u64; MAP_WORDS] = {
    let mut bits = [u64::MAX; MAP_WORDS];
    bits[MAP_WORDS - 1] >>= MAP_WORDS * 64 - ENTRIES;
    bits
};

/// The chunks of a slot that have room. Every method needs the slot's lock.
pub(crate) struct Chunks<M: Machine> {
    first: *mut Chunk<M>,
    machine: PhantomData<M>,
}

// SAFETY: chunks are the slot's, and it is under its lock.
unsafe impl<M: Machine> Send for Chunks<M> {}

impl<M: Machine> Chunks<M> {
    pub(crate) const EMPTY: Self = Chunks {
        first: ptr::null_mut(),
        machine: PhantomData,
    };

    /// Whether an entry can be had without a new chunk.
    pub(super) fn has_room(&self) -> bool {
        !self.first.is_null()
    }

    /// Entries that can be had without a new chunk. O(chunks with room).
    pub(super) fn room(&self) -> usize {
        let (mut room, mut at) = (0, self.first);
        while !at.is_null() {
            // SAFETY: a chunk on the list is valid and, under the slot's lock, ours.
            let header = unsafe { &*header(at) };
            room += header
                .free
                .iter()
                .map(|bits| bits.count_ones() as usize)
                .sum::<usize>();
            at = header.next;
        }
        room
    }

    /// Takes a chunk off that nothing is in. O(chunks with room).
    ///
    /// # Safety
    /// The slot's lock is held.
    pub(super) unsafe fn take_empty(&mut self) -> Option<Frame> {
        let mut at = self.first;
        while !at.is_null() {
            // SAFETY: a chunk on the list is valid and, under the slot's lock, ours.
            unsafe {
                if (*header(at)).free == ALL_FREE {
                    self.unlink(at);
                    return Some((*header(at)).frame);
                }
                at = (*header(at)).next;
            }
        }
        None
    }

    /// Adds `frame`, seen at `memory`, as a chunk of `owner`.
    ///
    /// # Safety
    /// The frame is the caller's, and becomes the chunk's; the slot's lock is held.
    pub(super) unsafe fn add(&mut self, frame: Frame, memory: NonNull<u8>, owner: Owner) {
        const {
            assert!(size_of::<PvEntry<M>>() == 24);
            assert!(size_of::<Chunk<M>>() <= PAGE_SIZE);
            assert!(offset_of!(Chunk<M>, header) == 0);
        }
        let Owner { pmap, slot, leaf } = owner;
        let header = Header {
            pmap,
            slot,
            next: ptr::null_mut(),
            previous: ptr::null_mut(),
            free: ALL_FREE,
            leaf,
            frame,
        };
        let chunk = memory.as_ptr().cast::<Chunk<M>>();
        // SAFETY: the frame is ours alone, page-aligned and large enough; entries are
        // initialised when they are taken.
        unsafe {
            (&raw mut (*chunk).header).write(SharedCell::new(header));
            self.link(chunk);
        }
    }

    /// Takes an entry for a mapping at `address`; there must be room.
    ///
    /// # Safety
    /// The slot's lock is held.
    pub(super) unsafe fn take(&mut self, address: usize) -> Pv<M> {
        debug_assert!(self.has_room());
        let chunk = self.first;
        // SAFETY: a chunk with room is valid and, under the slot's lock, ours.
        unsafe {
            let free = &mut (*header(chunk)).free;
            let word = free.iter().position(|&bits| bits != 0);
            let word = word.expect("a chunk on the list has room");
            let bit = free[word].trailing_zeros() as usize;
            free[word] &= !(1 << bit);
            if *free == NONE_FREE {
                self.unlink(chunk);
            }
            let slot = &raw mut (*chunk).entries[word * 64 + bit];
            slot.write(SharedCell::new(PvEntry {
                address,
                next: None,
                previous: None,
            }));
            Pv(NonNull::new_unchecked(slot))
        }
    }

    /// Gives an entry back; returns the chunk's frame if that was its last.
    ///
    /// # Safety
    /// The slot's lock is held; the entry is one of its, and on no list.
    pub(super) unsafe fn give(&mut self, pv: Pv<M>) -> Option<Frame> {
        let chunk = pv.chunk().as_ptr();
        // SAFETY: the chunk is valid while the entry is allocated, and ours under the lock.
        unsafe {
            let first = (&raw const (*chunk).entries).cast::<M::Cell<PvEntry<M>>>();
            let index = pv.0.as_ptr().cast_const().offset_from(first) as usize;
            let free = &mut (*header(chunk)).free;
            if *free == NONE_FREE {
                self.link(chunk);
            }
            let free = &mut (*header(chunk)).free;
            free[index / 64] |= 1 << (index % 64);
            if *free == ALL_FREE {
                self.unlink(chunk);
                return Some((*header(chunk)).frame);
            }
        }
        None
    }

    /// # Safety
    /// `chunk` is one of this slot that is not on the list.
    unsafe fn link(&mut self, chunk: *mut Chunk<M>) {
        // SAFETY: see above; the neighbours are on the list and thus valid.
        unsafe {
            (*header(chunk)).previous = ptr::null_mut();
            (*header(chunk)).next = self.first;
            if !self.first.is_null() {
                (*header(self.first)).previous = chunk;
            }
        }
        self.first = chunk;
    }

    /// # Safety
    /// `chunk` is on the list.
    unsafe fn unlink(&mut self, chunk: *mut Chunk<M>) {
        // SAFETY: as in `link`.
        unsafe {
            let (next, previous) = ((*header(chunk)).next, (*header(chunk)).previous);
            if previous.is_null() {
                self.first = next;
            } else {
                (*header(previous)).next = next;
            }
            if !next.is_null() {
                (*header(next)).previous = previous;
            }
        }
    }
}

/// # Safety
/// `chunk` is valid and its slot's lock is held.
unsafe fn header<M: Machine>(chunk: *mut Chunk<M>) -> *mut Header<M> {
    // SAFETY: as above.
    unsafe { (*chunk).header.write() }
}
