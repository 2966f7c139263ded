//! Blocks of frames that are to become superpages.
//!
//! A slot reserves a block when its first page comes, and takes from it the frame that
//! belongs to each further page's place, so that the 512 lie side by side in the end. The
//! unused frames are free: they count as free, and when no other frame is, the
//! allocator breaks a reservation up without telling the slot, which finds out when it next needs a
//! frame. (FreeBSD has such reservations, also in the physical memory layer.)
//!
//! # Protocol
//! The lock of a block's reservation protects its owner and its unused frames. A word counts the
//! reservations ever made and the live ones, which have unused frames; it changes under the lock of
//! the block's pool when the block is taken, and when frames go back to the pool. So a search that
//! finds nothing live, then one pool after the other empty, and then the word unchanged, knows that
//! nothing was reserved all the time: no frame was free in the pools or reserved. (The word may for
//! a moment count a reservation whose last frame has just been used.)

use super::block::BLOCK;
use super::{Frames, frames_of};
use crate::error::Error;
use crate::heap::filled;
use crate::lock::ReservationLock;
use alloc::boxed::Box;
use machine::{Atomic, AtomicInt, Frame, Ordering, Platform};
use sync::Padded;

const WORDS: usize = BLOCK / 64;

/// The reservation of each block: 128 bytes, 0.006 % of memory.
pub(super) struct Reservations<M: Platform> {
    blocks: Box<[Padded<ReservationLock<M, Reservation>>]>,
    /// [`Made`], as a word. Changes twice for each reservation.
    made: Padded<M::AtomicU64>,
    /// The block at which the search for a reservation to break up continues.
    hand: Padded<M::AtomicUsize>,
}

/// The numbers of reservations that are live, and that were ever made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Made {
    /// Reservations that have unused frames, or are being made; never too few under the lock of a
    /// block's pool.
    pub(super) live: u32,
    /// Reservations ever made; wraps around.
    ever: u32,
}

/// The owner of a block, and the frames it has not used.
#[derive(Default)]
struct Reservation {
    /// The leaf table of the slot that has reserved the block; none if no frame is unused.
    owner: Option<Frame>,
    /// A bit for each unused frame.
    unused: [u64; WORDS],
}

impl Reservation {
    /// Takes the frame at `index` for `owner`, if `owner` has reserved it and not used it.
    fn take(&mut self, owner: Frame, index: usize) -> bool {
        debug_assert!(
            self.owner.is_some() || self.unused == [0; WORDS],
            "nobody's frames are reserved"
        );
        let bit = 1 << (index % 64);
        let is_own = self.owner == Some(owner) && self.unused[index / 64] & bit != 0;
        if is_own {
            self.unused[index / 64] &= !bit;
        }
        is_own
    }
}

impl<M: Platform> Reservations<M> {
    /// The reservations of the frames below `end`; a block that is not whole is never reserved.
    pub(super) fn new(end: usize) -> Result<Self, Error> {
        const {
            let plain = size_of::<M::AtomicU8>() == 1;
            assert!(!plain || size_of::<Padded<ReservationLock<M, Reservation>>>() == 128);
        }
        let new = || Padded(ReservationLock::<M, _>::new(Reservation::default()));
        Ok(Reservations {
            blocks: filled(end.div_ceil(BLOCK), new)?,
            made: Padded(M::AtomicU64::new(0)),
            hand: Padded(M::AtomicUsize::new(0)),
        })
    }

    pub(super) fn label(&self) {
        let blocks = self.blocks.as_ptr().cast();
        M::label(blocks, size_of_val(&*self.blocks), "Frames.reservations");
        M::label_value(&self.made, "Frames.reservations.made");
        M::label_value(&self.hand, "Frames.reservations.hand");
    }

    /// The numbers of live reservations and of all ever made.
    pub(super) fn made(&self) -> Made {
        // Relaxed, like every access to the word: the locks of the pools order all that matters.
        let word = self.made.load(Ordering::Relaxed);
        Made {
            live: word as u32,
            ever: (word >> u32::BITS) as u32,
        }
    }

    /// The number of unused frames. O(blocks) if there are reservations.
    pub(super) fn unused(&self) -> usize {
        if self.made().live == 0 {
            return 0;
        }
        let unused = |block: &Padded<ReservationLock<M, Reservation>>| {
            let words = block.lock().unused;
            words
                .iter()
                .map(|bits| bits.count_ones() as usize)
                .sum::<usize>()
        };
        self.blocks.iter().map(unused).sum()
    }

    fn of(&self, first: Frame) -> &ReservationLock<M, Reservation> {
        &self.blocks[first.index() / BLOCK]
    }

    fn begin(&self) {
        self.made.fetch_add(1 << u32::BITS | 1, Ordering::Relaxed);
    }

    fn end(&self) {
        let old = self.made.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(old as u32 > 0, "a reservation ends twice");
    }
}

impl<M: Platform> Frames<M> {
    /// Reserves a block for the slot with the leaf table `owner`, and returns its first frame.
    /// `None` if no block is whole. O(1).
    pub(crate) fn reserve(&self, owner: Frame) -> Option<Frame> {
        if self.failures.is_due() {
            return None;
        }
        let first = self.take_block(|| self.reservations.begin())?;
        let mut reservation = self.reservations.of(first).lock();
        machine::invariant!(M: reservation.owner.is_none(), "a block is reserved twice");
        *reservation = Reservation {
            owner: Some(owner),
            unused: [u64::MAX; WORDS],
        };
        drop(reservation);
        Some(first)
    }

    /// Takes the frame at `index` of the block of `first` if `owner` has it reserved and not
    /// used; its content is unknown. O(1).
    pub(crate) fn take_reserved(
        &self,
        machine: &M,
        owner: Frame,
        first: Frame,
        index: usize,
    ) -> Option<Frame> {
        debug_assert!(
            first.index().is_multiple_of(BLOCK),
            "{first:?} begins no block"
        );
        let mut reservation = self.reservations.of(first).lock();
        if !reservation.take(owner, index) {
            return None;
        }
        if reservation.unused == [0; WORDS] {
            reservation.owner = None;
            self.reservations.end();
        }
        drop(reservation);
        let frame = Frame(first.0 + index as u32);
        machine.allocated(frame);
        Some(frame)
    }

    /// Gives back the unused frames that `owner` has reserved of the block of `first`, if any.
    pub(crate) fn break_up(&self, owner: Frame, first: Frame) {
        let mut reservation = self.reservations.of(first).lock();
        if reservation.owner == Some(owner) {
            self.give_unused(&mut reservation, first);
        }
    }

    /// Breaks one reservation up. If none has unused frames, another task is making or ending one:
    /// waits a little, for the `round`th time. O(blocks).
    pub(super) fn break_up_any(&self, round: u32) {
        let Reservations { blocks, hand, .. } = &self.reservations;
        let from = hand.load(Ordering::Relaxed);
        for step in 0..blocks.len() {
            let block = (from + step) % blocks.len();
            let mut reservation = blocks[block].lock();
            if reservation.owner.is_some() {
                hand.store(block + 1, Ordering::Relaxed);
                let first = Frame((block * BLOCK) as u32);
                return self.give_unused(&mut reservation, first);
            }
        }
        M::relax(round);
    }

    /// Puts the unused frames of a reservation that has some into the pool, and ends it.
    fn give_unused(&self, reservation: &mut Reservation, first: Frame) {
        debug_assert!(
            reservation.owner.is_some() && reservation.unused != [0; WORDS],
            "nothing is reserved that could go back"
        );
        let Reservation { unused, .. } = core::mem::take(reservation);
        let mut pool = self.pools.of(first).lock();
        for (index, frame) in frames_of(first).enumerate() {
            if unused[index / 64] & 1 << (index % 64) != 0 {
                pool.put(frame);
            }
        }
        self.reservations.end();
        drop(pool);
    }
}
