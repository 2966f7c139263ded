//! A slot: the part of an address space that one lock covers.

use super::extent::{Attributes, Mapped};
use super::extents::Extents;
use super::span;
use super::state::{ATTACHED, Likely, ROOM, Size, State};
use crate::error::Error;
use crate::flags::Flags;
use crate::lock::SlotLock;
use crate::object::Attached;
use crate::pv::{PvTables, Table};
use crate::system::System;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem::ManuallyDrop;
use core::ops::BitOr;
use core::ptr;
use machine::{Atomic, AtomicInt, Atomics, Cpus, Ordering, SharedCell, VaRange, pte};
use sync::RawLock;
use sync::watch::note_spins;

/// Slots in a node.
pub(super) const FAN_OUT: usize = 1 << FAN_OUT_SHIFT;
/// log2 of [`FAN_OUT`].
pub(super) const FAN_OUT_SHIFT: u32 = 6;
/// A flag in the count of walks that share a slot: a task waits for them, so others join under the
/// lock only.
const CLOSED: u16 = 1 << 15;
/// Slots that are looked at together: most are empty.
const TOGETHER: usize = 8;

/// 2 MiB, or 64 times as much with each level: one cache line, which holds all that an
/// operation writes to change the mappings there.
///
/// A slot is *empty*, *whole* (mapped from end to end with equal attributes), in *parts*
/// (level 0 only), or *divided*: then its node has all mappings, for good.
#[repr(C, align(64))]
pub(crate) struct Slot<S: System> {
    /// The first of the node's slots; null until subdivided, then fixed. Stored with
    /// release under `lock`; a walk that finds it goes there and leaves this line alone.
    child: <S::Machine as Atomics>::AtomicPtr,
    /// A [`State`], a [`Size`], [`ATTACHED`] and [`ROOM`] as a byte. Written under `lock`; to and
    /// from [`Size::Superpage`] also under the PV locks of all of its pages.
    state: <S::Machine as Atomics>::AtomicU8,
    pub(super) lock: SlotLock<S::Machine>,
    /// The number of walks that share the slot ([`super::coupled`]), and [`CLOSED`]. The first one
    /// joins under `lock`.
    walks: <S::Machine as Atomics>::AtomicU16,
    /// Entries of each [`Kind`], in [`COUNT`] bits each; 0 above level 0. Written under `lock`, or
    /// under the family's lock while the size is [`Size::Shared`]; read by any task.
    counts: <S::Machine as Atomics>::AtomicU32,
    /// The rest of the data that `lock` protects.
    inside: <S::Machine as Atomics>::Cell<ManuallyDrop<Inside<S>>>,
}

/// The kind of an entry of a leaf table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A page that is only this mapping's, or that a fork has shared.
    Private,
    /// A page of an object.
    Object,
    /// A slot of the swap space.
    Swapped,
}

/// Bits of a count of entries.
const COUNT: u32 = 10;
const _: () = assert!(pte::ENTRIES < 1 << COUNT);

/// The data of a slot other than its state, under its lock. The tables and the extents are level
/// 0's.
pub(crate) struct Inside<S: System> {
    /// The hardware's table.
    pub(crate) leaf: Table,
    /// With `attachment` the attributes of a slot that is [`State::Whole`]; otherwise
    /// nothing. (They are separate fields, since together they would take another 8 bytes.)
    flags: Flags,
    attachment: Option<Attached<S>>,
    /// The mappings, if the state is [`State::Parts`]; otherwise empty, with the memory that it
    /// had.
    pub(super) extents: Extents<S>,
    /// The PV entries of the pages.
    pub(crate) pv: PvTables,
}

impl<S: System> Inside<S> {
    /// The mapping of a slot at `range` that is [`State::Whole`].
    pub(super) fn whole(&self, range: VaRange) -> Mapped<'_, S> {
        Mapped {
            range,
            flags: self.flags,
            attachment: self.attachment.as_ref(),
        }
    }

    /// Sets the attributes of the whole slot, or none.
    #[inline(always)] // a call here shows in tests/costs.rs
    pub(super) fn set_whole(&mut self, attributes: Option<Attributes<S>>) {
        let attributes = attributes.unwrap_or(Attributes::private(Flags::NONE));
        self.flags = attributes.flags;
        self.attachment = attributes.attachment;
    }
}

impl<S: System> Slot<S> {
    /// An empty slot.
    #[inline]
    pub(super) fn new() -> Self {
        const {
            // A checker's atomics are larger than the plain ones.
            assert!(size_of::<<S::Machine as Atomics>::AtomicU8>() != 1 || size_of::<Self>() == 64);
        }
        Slot {
            child: <S::Machine as Atomics>::AtomicPtr::new(ptr::null_mut()),
            state: <S::Machine as Atomics>::AtomicU8::new(State::Empty as u8),
            lock: RawLock::new(),
            walks: <S::Machine as Atomics>::AtomicU16::new(0),
            counts: <S::Machine as Atomics>::AtomicU32::new(0),
            inside: <S::Machine as Atomics>::Cell::new(ManuallyDrop::new(Inside {
                leaf: Table::NONE,
                flags: Flags::NONE,
                attachment: None,
                extents: Extents::new(),
                pv: PvTables::NONE,
            })),
        }
    }

    /// The node below, if the slot is subdivided.
    #[inline]
    pub(super) fn child(&self) -> Option<&[Slot<S>; FAN_OUT]> {
        // Acquire: pairs with the release in `subdivide`.
        let node = self.child.load(Ordering::Acquire);
        // SAFETY: a node has `FAN_OUT` slots, is whole when it is published, and stays until this
        // slot is dropped.
        unsafe { node.cast::<[Slot<S>; FAN_OUT]>().as_ref() }
    }

    /// The part that is mapped. Exact under the lock; otherwise a hint.
    #[inline]
    pub(super) fn state(&self) -> State {
        // Acquire: the reader's next loads are not older.
        State::from_byte(self.state.load(Ordering::Acquire))
    }

    /// The number of `slots`, from the first on, in which nothing was mapped a moment ago.
    #[inline]
    pub(super) fn count_empty(slots: &[Self]) -> usize {
        let mut rest = slots;
        while Self::skip_empty::<TOGETHER>(&mut rest) {}
        // Then by halves.
        const { assert!(TOGETHER == 8) };
        Self::skip_empty::<4>(&mut rest);
        Self::skip_empty::<2>(&mut rest);
        Self::skip_empty::<1>(&mut rest);
        slots.len() - rest.len()
    }

    /// Drops the first `N` of `slots` if there are at least `N`, and nothing is mapped in any of
    /// them. Returns true if it did.
    #[inline]
    fn skip_empty<const N: usize>(slots: &mut &[Self]) -> bool {
        let Some((first, rest)) = slots.split_first_chunk::<N>() else {
            return false;
        };
        // Acquire: as in `state`.
        let bytes = first
            .each_ref()
            .map(|slot| slot.state.load(Ordering::Acquire));
        let are_empty = bytes.into_iter().fold(0, BitOr::bitor) & State::MASK == State::Empty as u8;
        if are_empty {
            *slots = rest;
        }
        are_empty
    }

    /// Under the lock.
    #[inline]
    pub(super) fn set_state(&self, state: State) {
        self.set_byte(State::MASK, state as u8);
    }

    /// Notes that something here is attached. Under the lock.
    #[inline]
    pub(super) fn set_attached(&self) {
        self.set_byte(ATTACHED, ATTACHED);
    }

    /// Notes that its extents have room. Under the lock.
    #[inline]
    pub(super) fn set_room(&self) {
        if self.state.load(Ordering::Relaxed) & ROOM == 0 {
            self.set_byte(ROOM, ROOM);
        }
    }

    /// Notes that all of it is mapped with these attributes, or that nothing is. Under the lock.
    #[inline]
    pub(super) fn set_uniform(&self, attributes: Option<&Attributes<S>>) {
        self.set_byte(State::MASK | ATTACHED, uniform(attributes));
    }

    /// What a first touch will probably find here, as of a moment ago.
    #[inline]
    pub(crate) fn likely(&self) -> Likely {
        // Relaxed: a guess.
        let byte = self.state.load(Ordering::Relaxed);
        if byte & ATTACHED != 0 {
            Likely::Object
        } else if Size::from_byte(byte) == Size::Pages && self.count(Kind::Swapped) == 0 {
            Likely::Zeroes
        } else {
            Likely::Other
        }
    }

    /// How its pages are mapped. Exact under the lock; under the PV lock of a page that is mapped
    /// here it is exact in being [`Size::Superpage`] or not.
    #[inline]
    pub(crate) fn size(&self) -> Size {
        // Relaxed: exact only under locks, which order it.
        Size::from_byte(self.state.load(Ordering::Relaxed))
    }

    /// Under the lock.
    pub(super) fn set_size(&self, size: Size) {
        machine::invariant!(
            S::Machine: self.size().may_become(size),
            "{:?} pages become {size:?}", self.size()
        );
        self.set_byte(Size::MASK, size as u8);
    }

    #[inline]
    fn set_byte(&self, mask: u8, bits: u8) {
        machine::invariant!(S::Machine: self.is_held_alone(), "a slot changes under its lock");
        self.store_byte(mask, bits);
    }

    #[inline(always)] // a call here shows in tests/costs.rs
    fn store_byte(&self, mask: u8, bits: u8) {
        debug_assert!(bits & !mask == 0, "bits that are not to be set");
        let rest = self.state.load(Ordering::Relaxed) & !mask;
        self.state.store(rest | bits, Ordering::Release);
    }

    /// Lets a walk share the slot until [`Slot::leave`], and returns true, unless too many do.
    /// Under the lock, which the walk may then release.
    pub(super) fn join(&self) -> bool {
        machine::invariant!(S::Machine: self.is_locked(), "the first walk comes under the lock");
        let has_room = self.walks.load(Ordering::Relaxed) < CLOSED - 1;
        if has_room {
            // Release: pairs with the acquire in `join_others`. The lock orders it before the next
            // holder's look.
            self.walks.fetch_add(1, Ordering::Release);
        }
        has_room
    }

    /// Joins the walks that share the slot, without the lock. Returns false if there are none, or
    /// if a task waits for them.
    pub(super) fn join_others(&self) -> bool {
        let mut now = self.walks.load(Ordering::Relaxed);
        while (1..CLOSED - 1).contains(&now) {
            // Acquire: pairs with the release in `join`, of the first of these walks.
            let joined = (self.walks).compare_exchange_weak(
                now,
                now + 1,
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            match joined {
                Ok(_) => return true,
                Err(other) => now = other,
            }
        }
        false
    }

    /// Ends what [`Slot::join`] has begun.
    pub(super) fn leave(&self) {
        // Release: pairs with the acquire in `is_shared`.
        let before = self.walks.fetch_sub(1, Ordering::Release);
        debug_assert!(before & !CLOSED > 0, "a walk leaves that has not come");
    }

    /// Returns true if walks share the slot. Under the lock, so that no more come.
    #[inline]
    pub(super) fn is_shared(&self) -> bool {
        // Acquire: pairs with the release in `leave`, so that the holder's changes come after all
        // that the walks read.
        self.walks.load(Ordering::Acquire) != 0
    }

    /// Waits until no walk shares the slot. Under the lock.
    #[inline]
    pub(super) fn wait_for_walks(&self) {
        if self.is_shared() {
            self.wait_while_shared();
        }
    }

    #[cold]
    #[inline(never)]
    fn wait_while_shared(&self) {
        machine::invariant!(S::Machine: self.is_locked(), "walks are closed under the lock");
        // Relaxed: the loads below read it together with the walks.
        self.walks.fetch_or(CLOSED, Ordering::Relaxed);
        let mut round = 0;
        // Acquire: as in `is_shared`.
        while self.walks.load(Ordering::Acquire) != CLOSED {
            S::Machine::relax(round);
            round += 1;
        }
        // Relaxed: walks come under the lock only.
        self.walks.store(0, Ordering::Relaxed);
        note_spins::<S::Machine>(round);
    }

    /// Returns true if its data may be read: the lock is held, or a walk shares the slot. For
    /// assertions of a task that relies on either.
    pub(super) fn is_held(&self) -> bool {
        self.is_locked() || self.walks.load(Ordering::Relaxed) & !CLOSED > 0
    }

    /// Returns true if its data may be changed: the lock is held, and no walk shares the slot. For
    /// assertions of the lock's holder.
    pub(super) fn is_held_alone(&self) -> bool {
        self.is_locked() && !self.is_shared()
    }

    /// Returns true if the lock was held a moment ago.
    pub(crate) fn is_locked(&self) -> bool {
        self.lock.is_locked()
    }

    /// The number of entries of a kind as of a moment ago.
    #[inline]
    pub(crate) fn count(&self, kind: Kind) -> usize {
        Self::count_in(self.counts.load(Ordering::Relaxed), kind)
    }

    /// The number of pages present as of a moment ago.
    #[inline]
    pub(crate) fn resident(&self) -> usize {
        let counts = self.counts.load(Ordering::Relaxed);
        Self::count_in(counts, Kind::Private) + Self::count_in(counts, Kind::Object)
    }

    /// The number of entries of all kinds as of a moment ago.
    #[inline]
    pub(crate) fn entries(&self) -> usize {
        Self::count_all(self.counts.load(Ordering::Relaxed))
    }

    /// The count of all entries in `counts`.
    #[inline]
    fn count_all(counts: u32) -> usize {
        let kinds = [Kind::Private, Kind::Object, Kind::Swapped];
        kinds.map(|kind| Self::count_in(counts, kind)).iter().sum()
    }

    /// The count of entries of `kind` in `counts`.
    #[inline]
    fn count_in(counts: u32, kind: Kind) -> usize {
        (counts >> (COUNT * kind as u32)) as usize & ((1 << COUNT) - 1)
    }

    /// Returns true if nothing was mapped a moment ago.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.state() == State::Empty
    }

    /// Returns true if all entries were empty and no table was shared a moment ago.
    #[inline]
    pub(crate) fn is_vacant(&self) -> bool {
        self.counts.load(Ordering::Relaxed) == 0 && self.size() != Size::Shared
    }

    /// Sets the numbers of entries of these kinds, and 0 of others. Under the lock; while the table
    /// is shared under that of the family.
    pub(crate) fn set_counts(&self, private: usize, swapped: usize) {
        machine::invariant!(S::Machine: self.is_held_alone(), "entries are counted under the lock");
        debug_assert!(
            private + swapped <= pte::ENTRIES,
            "more entries than a table has"
        );
        let counts = [(Kind::Private, private), (Kind::Swapped, swapped)];
        let counts = counts.map(|(kind, count)| (count as u32) << (COUNT * kind as u32));
        self.counts.store(counts[0] | counts[1], Ordering::Relaxed);
    }

    /// Adds `delta` to the number of entries of `kind`. Under the lock; while the table is shared
    /// under that of the family.
    #[inline]
    pub(crate) fn add(&self, kind: Kind, delta: i32) {
        let change = delta << (COUNT * kind as u32);
        let now = self.counts.load(Ordering::Relaxed);
        let next = now.wrapping_add_signed(change);
        debug_assert!(
            (0..=pte::ENTRIES as i32).contains(&(Self::count_in(now, kind) as i32 + delta)),
            "{delta} {kind:?} entries more than {}",
            Self::count_in(now, kind)
        );
        debug_assert!(
            Self::count_all(next) <= pte::ENTRIES,
            "more entries than a table has"
        );
        self.counts.store(next, Ordering::Relaxed);
    }

    /// The data that the lock protects, for changes under the lock.
    #[inline]
    pub(super) fn inside(&self) -> *mut Inside<S> {
        self.inside.write().cast()
    }

    /// The data that the lock protects, for reading under the lock or by a walk that shares the
    /// slot.
    #[inline]
    pub(super) fn look_inside(&self) -> *const Inside<S> {
        self.inside.read().cast()
    }

    /// Maps an empty slot that no other task knows from end to end.
    fn begin(&self, attributes: Attributes<S>) {
        machine::invariant!(S::Machine: !self.is_held(), "a new slot is held already");
        self.store_byte(State::MASK | ATTACHED, uniform(Some(&attributes)));
        // SAFETY: no other task knows the slot.
        unsafe { (*self.inside()).set_whole(Some(attributes)) };
    }

    /// Describes the slot's mappings by a node of slots below. Under the lock; above level 0.
    #[cold]
    pub(super) fn subdivide(&self, range: VaRange) -> Result<(), Error> {
        machine::invariant!(S::Machine: self.is_held_alone(), "a slot is divided under its lock");
        machine::invariant!(S::Machine: self.child().is_none(), "a slot gets a second node");
        machine::invariant!(S::Machine: self.is_vacant(), "a slot with entries gets a node");
        debug_assert!(range.len() > span(0), "the smallest slots have no nodes");
        let mut node = Vec::new();
        node.try_reserve_exact(FAN_OUT)?;
        // SAFETY: the lock is held.
        let inside = unsafe { &mut *self.inside() };
        let whole = self.state() == State::Whole;
        let attributes = whole.then(|| inside.whole(range).attributes());
        machine::invariant!(
            S::Machine: matches!(self.state(), State::Empty | State::Whole),
            "only a uniform slot can be divided"
        );
        for slot in &mut node.spare_capacity_mut()[..FAN_OUT] {
            slot.write(Slot::<S>::new());
        }
        // SAFETY: `FAN_OUT` slots were written.
        unsafe { node.set_len(FAN_OUT) };
        if let Some(attributes) = attributes {
            node.iter().for_each(|slot| slot.begin(attributes.clone()));
            inside.set_whole(None);
        }
        let node = Box::leak(node.into_boxed_slice());
        S::Machine::label(node.as_ptr().cast(), size_of_val(node), "Slot");
        self.set_state(State::Divided);
        // Release: a walk that finds the node finds it filled. Pairs with the acquire in `child`.
        self.child
            .store(node.as_mut_ptr().cast(), Ordering::Release);
        Ok(())
    }
}

impl<S: System> Drop for Slot<S> {
    #[inline]
    fn drop(&mut self) {
        // Most slots were never used.
        if self.flags() & KEEPS_MEMORY != 0 {
            self.free();
        }
    }
}

impl<S: System> Slot<S> {
    /// The state's byte. No other user is left.
    #[inline]
    fn flags(&self) -> u8 {
        // Relaxed: so nothing changes it.
        self.state.load(Ordering::Relaxed)
    }

    /// Frees the slot's memory. It is not used again.
    #[cold]
    #[inline(never)]
    fn free(&mut self) {
        let first = self.child.load(Ordering::Relaxed).cast::<Node<S>>();
        if !first.is_null() {
            // SAFETY: a box leaked by `subdivide`, and no other user is left.
            let mut node = unsafe { Box::from_raw(first) };
            let (groups, _) = node.as_chunks_mut::<TOGETHER>();
            for group in groups {
                let flags = group.each_ref().map(|slot| slot.flags());
                if flags.into_iter().fold(0, BitOr::bitor) & KEEPS_MEMORY != 0 {
                    // SAFETY: they are not dropped otherwise.
                    group
                        .iter_mut()
                        .for_each(|slot| unsafe { ManuallyDrop::drop(slot) });
                }
            }
        }
        // SAFETY: no other user is left.
        unsafe { ptr::drop_in_place(self.inside()) };
    }
}

/// The bits of a slot that is mapped with these attributes from end to end, or not at all.
#[inline(always)] // a call here shows in tests/costs.rs
fn uniform<S: System>(attributes: Option<&Attributes<S>>) -> u8 {
    match attributes {
        None => State::Empty as u8,
        Some(Attributes {
            attachment: None, ..
        }) => State::Whole as u8,
        Some(_) => State::Whole as u8 | ATTACHED,
    }
}

/// The slots of a node, to be dropped together.
type Node<S> = [ManuallyDrop<Slot<S>>; FAN_OUT];

/// A slot has memory to be freed only with one of these in its state's byte: an attachment, extents
/// or a node.
const KEEPS_MEMORY: u8 = ATTACHED | ROOM | State::MASK;
