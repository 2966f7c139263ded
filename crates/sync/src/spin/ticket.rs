//! The ticket lock, and how its waiters pace themselves.
//!
//! ```text
//! lock:    ticket = next++;  wait until serving == ticket
//! unlock:  serving = serving + 1
//! ```
//!
//! FIFO. Every waiter watches `serving`, so each release takes the line from all
//! of them and they fetch it back one after another: a hand-over costs time
//! proportional to the number of waiters. That is the collapse seed 004 shows on
//! 4 and 8 sockets. A [`Pace`] may thin the crowd out, using that a ticket lock
//! tells each waiter how far it is from being served.

use crate::RawLock;
use crate::ecosystem::impl_lock_api;
use crate::watch::note_spins;
use core::marker::PhantomData;
use machine::{Atomic, AtomicInt, ConstInit, Machine, Ordering};

/// How a waiter spends the time between two looks at the lock. One value lives
/// for one wait. No implementation can break mutual exclusion.
pub trait Pace<M: Machine>: Default + 'static {
    /// The lock's name.
    const NAME: &'static str;

    /// Waits a while, given that the lock has to be released `distance` (at least
    /// 1) times before it is this waiter's.
    fn pause(&mut self, distance: u32);
}

/// A ticket lock: 8 bytes, two 32-bit counters (`next`, `serving`).
///
/// Linux's has 8- or 16-bit halves of one word. With separate words the release
/// is a plain store in any memory model, `2^32 - 1` tasks may wait, and `try_lock`
/// could be fooled only by a stall that lasts for exactly a multiple of `2^32`
/// acquisitions.
#[repr(C)]
pub struct TicketLock<M: Machine, P> {
    /// The next ticket to be handed out.
    next: M::AtomicU32,
    /// The ticket whose owner holds the lock; written by the holder.
    serving: M::AtomicU32,
    pace: PhantomData<fn() -> P>,
}

/// The plain ticket lock: all waiters look all the time.
pub type Ticket<M> = TicketLock<M, Eager>;

/// Looks again after one relaxation.
#[derive(Default)]
pub struct Eager {
    round: u32,
}

impl<M: Machine> Pace<M> for Eager {
    const NAME: &'static str = "ticket";

    #[inline]
    fn pause(&mut self, _distance: u32) {
        M::relax(self.round);
        self.round = self.round.saturating_add(1);
    }
}

impl<M: Machine, P: Pace<M>> TicketLock<M, P> {
    #[cold]
    fn wait(&self, ticket: u32, mut serving: u32) {
        let mut pace = P::default();
        let mut rounds = 0u32;
        while serving != ticket {
            pace.pause(ticket.wrapping_sub(serving));
            // Acquire: pairs with the release in `unlock`.
            serving = self.serving.load(Ordering::Acquire);
            rounds = rounds.saturating_add(1);
        }
        note_spins::<M>(rounds);
    }
}

// SAFETY: each ticket is handed out once, and only the owner of the one being
// served moves on to the next.
unsafe impl<M: Machine, P: Pace<M>> RawLock<M> for TicketLock<M, P> {
    type Held = ();
    const NAME: &'static str = P::NAME;

    fn new() -> Self {
        TicketLock {
            next: M::AtomicU32::new(0),
            serving: M::AtomicU32::new(0),
            pace: PhantomData,
        }
    }

    #[inline]
    fn lock(&self) {
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        // Acquire: pairs with the release in `unlock`.
        let serving = self.serving.load(Ordering::Acquire);
        if serving != ticket {
            self.wait(ticket, serving);
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        // Acquire: as in `lock`; if nobody has the ticket now served, it is free.
        let serving = self.serving.load(Ordering::Acquire);
        self.next
            .compare_exchange(
                serving,
                serving.wrapping_add(1),
                Ordering::Relaxed,
                Ordering::Relaxed,
            )
            .is_ok()
            .then_some(())
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        let serving = self.serving.load(Ordering::Relaxed);
        // Release: pairs with the acquire loads in `lock`, `wait` and `try_lock`.
        self.serving
            .store(serving.wrapping_add(1), Ordering::Release);
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.serving.load(Ordering::Relaxed) != self.next.load(Ordering::Relaxed)
    }
}

impl_lock_api!([M: Machine<AtomicU32: ConstInit>, P: Pace<M>] TicketLock<M, P> = TicketLock {
    next: ConstInit::ZERO,
    serving: ConstInit::ZERO,
    pace: PhantomData,
});
