//! Any locks of PV lists, and any place of PV entries.

use crate::freebsd::{Chunks, ListLocks, Order, PmapState, PvListHeld, PvListLocks};
use crate::linux::Spinning;
use machine::{Asid, CpuRange, Frame, Machine, Memory};
use vm::Error;
use vm::lock::PvLock;
use vm::policy::{PvByteHeld, PvBytes, PvChunks, PvLocking, Victim};
use vm::pv::Pv;

/// Which locks PV lists have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PvLocks {
    /// `vm`'s own: a byte in each page, for which tasks sleep.
    #[default]
    Own,
    /// [`PvListLocks`].
    Shared(ListLocks),
    /// [`Spinning`].
    Spinning,
}

/// The locks, chosen when they are made.
pub enum AnyPvLocks<M: Machine> {
    /// See [`PvLocks::Shared`].
    Shared(PvListLocks<M>),
    /// See [`PvLocks::Own`].
    Own(PvBytes),
    /// See [`PvLocks::Spinning`].
    Spinning(Spinning),
}

/// A list, locked by either.
pub enum AnyPvHeld<'a, M: Machine> {
    /// See [`AnyPvLocks::Shared`].
    Shared(PvListHeld<'a, M>),
    /// See [`AnyPvLocks::Own`] and [`AnyPvLocks::Spinning`].
    Own(PvByteHeld<'a, M>),
}

// SAFETY: either keeps the contract, and all calls of one value go to one of them.
unsafe impl<M: Machine> PvLocking<M> for AnyPvLocks<M> {
    type Config = PvLocks;
    type Held<'a> = AnyPvHeld<'a, M>;

    fn new(locks: &PvLocks, cpus: CpuRange, frames: usize) -> Result<Self, Error> {
        Ok(match locks {
            PvLocks::Shared(shared) => AnyPvLocks::Shared(PvListLocks::new(shared, cpus, frames)?),
            PvLocks::Own => AnyPvLocks::Own(PvBytes),
            PvLocks::Spinning => AnyPvLocks::Spinning(Spinning),
        })
    }

    #[inline]
    fn is_per_block(&self) -> bool {
        matches!(self, AnyPvLocks::Shared(_))
    }

    #[inline]
    fn is_silent(&self) -> bool {
        matches!(self, AnyPvLocks::Own(own) if PvLocking::<M>::is_silent(own))
    }

    #[inline]
    fn is_same(&self, one: Frame, other: Frame) -> bool {
        match self {
            AnyPvLocks::Shared(locks) => locks.is_same(one, other),
            AnyPvLocks::Own(_) | AnyPvLocks::Spinning(_) => one == other,
        }
    }

    #[inline]
    #[track_caller]
    fn lock<'a>(&'a self, frame: Frame, own: &'a PvLock<M>) -> AnyPvHeld<'a, M> {
        match self {
            AnyPvLocks::Shared(locks) => AnyPvHeld::Shared(locks.lock(frame, own)),
            AnyPvLocks::Own(locks) => AnyPvHeld::Own(locks.lock(frame, own)),
            AnyPvLocks::Spinning(locks) => AnyPvHeld::Own(locks.lock(frame, own)),
        }
    }

    #[inline]
    #[track_caller]
    fn try_lock<'a>(&'a self, frame: Frame, own: &'a PvLock<M>) -> Option<AnyPvHeld<'a, M>> {
        Some(match self {
            AnyPvLocks::Shared(locks) => AnyPvHeld::Shared(locks.try_lock(frame, own)?),
            AnyPvLocks::Own(locks) => AnyPvHeld::Own(locks.try_lock(frame, own)?),
            AnyPvLocks::Spinning(_) => AnyPvHeld::Own(PvBytes.try_lock(frame, own)?),
        })
    }

    fn label(&self) {
        if let AnyPvLocks::Shared(locks) = self {
            locks.label();
        }
    }
}

/// [`Chunks`], or `vm`'s own tables, chosen when it is made.
pub struct AnyPvChunks<M: Machine>(Option<Chunks<M>>);

impl<M: Machine> AnyPvChunks<M> {
    #[inline]
    fn chunks(&self) -> &Chunks<M> {
        self.0.as_ref().expect("asked for only if there are chunks")
    }
}

/// The state of a pmap.
fn state<M: Machine>(pmap: &Option<PmapState<M>>) -> &PmapState<M> {
    pmap.as_ref().expect("a pmap of the same VM")
}

// SAFETY: every call goes to the one `Chunks`, which keeps the contract.
unsafe impl<M: Machine> PvChunks<M> for AnyPvChunks<M> {
    /// `None` for tables.
    type Config = Option<Order>;
    type Pmap = Option<PmapState<M>>;

    fn new(order: &Option<Order>, cpus: CpuRange, frames: usize) -> Result<Self, Error> {
        let chunks = order.as_ref();
        let chunks = chunks.map(|order| Chunks::new(order, cpus, frames));
        Ok(AnyPvChunks(chunks.transpose()?))
    }

    #[inline]
    fn is_used(&self) -> bool {
        self.0.is_some()
    }

    fn new_pmap(&self, tag: Asid) -> Option<PmapState<M>> {
        self.0.as_ref().map(|chunks| chunks.new_pmap(tag))
    }

    fn has_room(&self, machine: &M, pmap: &Self::Pmap) -> bool
    where
        M: Memory,
    {
        self.chunks().has_room(machine, state(pmap))
    }

    fn add(&self, machine: &M, pmap: &Self::Pmap, frame: Frame, owner: *const (), tag: Asid)
    where
        M: Memory,
    {
        self.chunks().add(machine, state(pmap), frame, owner, tag);
    }

    fn take(&self, machine: &M, pmap: &Self::Pmap, address: usize) -> Pv
    where
        M: Memory,
    {
        self.chunks().take(machine, state(pmap), address)
    }

    unsafe fn give(&self, machine: &M, pmap: &Self::Pmap, pv: Pv)
    where
        M: Memory,
    {
        // SAFETY: the caller keeps the trait's contract, which is that of `Chunks`.
        unsafe { self.chunks().give(machine, state(pmap), pv) };
    }

    fn trim(&self, machine: &M, pmap: &Self::Pmap, free: impl FnMut(Frame))
    where
        M: Memory,
    {
        self.chunks().trim(machine, state(pmap), free);
    }

    unsafe fn address(&self, machine: &M, pv: Pv) -> usize
    where
        M: Memory,
    {
        // SAFETY: the caller keeps the trait's contract, which is that of `Chunks`.
        unsafe { self.chunks().address(machine, pv) }
    }

    unsafe fn set_address(&self, machine: &M, pv: Pv, address: usize)
    where
        M: Memory,
    {
        // SAFETY: the caller keeps the trait's contract, which is that of `Chunks`.
        unsafe { self.chunks().set_address(machine, pv, address) };
    }

    unsafe fn owner(&self, machine: &M, pv: Pv) -> *const ()
    where
        M: Memory,
    {
        // SAFETY: the caller keeps the trait's contract, which is that of `Chunks`.
        unsafe { self.chunks().owner(machine, pv) }
    }

    fn next_victim(&self, machine: &M) -> Option<Victim>
    where
        M: Memory,
    {
        self.chunks().next_victim(machine)
    }

    fn mappings_of(&self, machine: &M, pmap: &Self::Pmap, victim: Victim, see: impl FnMut(usize))
    where
        M: Memory,
    {
        self.chunks().mappings_of(machine, state(pmap), victim, see);
    }

    fn label(&self) {
        if let Some(chunks) = &self.0 {
            chunks.label();
        }
    }
}
