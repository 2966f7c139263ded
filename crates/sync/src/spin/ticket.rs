//! The ticket lock, and the pace of its waiters.
//!
//! ```text
//! lock:    ticket = next++;  wait until serving == ticket
//! unlock:  serving = serving + 1
//! ```
//!
//! FIFO. Every waiter watches `serving`, so each release takes the cache line from all of them and
//! they fetch it again one after another: a hand-over costs time proportional to the number of
//! waiters. That is the collapse that case study 004 shows on 4 and 8 sockets. A ticket lock tells
//! each waiter how far it is from being served; a [`Pace`] can use that to make them look less
//! often.

use crate::ecosystem::impl_lock_apis;
use crate::effort::note_spins;
use crate::raw::RawLock;
use core::marker::PhantomData;
use machine::{Atomic, AtomicInt, ConstInit, Machine, Ordering};

/// How a waiter spends the time between two looks at the lock. A value lives for one wait. No
/// implementation can break mutual exclusion.
pub trait Pace<M: Machine>: Default + 'static {
    /// The lock's name.
    const NAME: &'static str;

    /// Waits a while; the lock has to be released `distance` (at least 1) times before it is this
    /// waiter's.
    fn pause(&mut self, distance: u32);
}

/// A ticket lock: 8 bytes, two 32-bit counters (`next`, `serving`).
///
/// Linux's ticket lock has 8- or 16-bit halves of one word. With separate words the release is a
/// plain store in any memory model, `2^32 - 1` tasks may wait, and only a stall that lasts for
/// exactly a multiple of `2^32` acquisitions could fool `try_lock`.
#[repr(C)]
pub struct TicketLock<M: Machine, P> {
    /// The next ticket to be handed out.
    next: M::AtomicU32,
    /// The ticket that holds the lock; written by the holder.
    serving: M::AtomicU32,
    pace: PhantomData<fn() -> P>,
}

/// The plain ticket lock, whose waiters read the lock all the time.
pub type Ticket<M> = TicketLock<M, Eager>;

/// The pace of a waiter that looks again after one relaxation.
#[derive(Debug, Default)]
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

/// Pauses per place in the queue: an estimate of a short critical section and its hand-over, about
/// 200 ns on a current x86-64.
const PAUSES_PER_PLACE: u32 = 5;

/// Backoff proportional to the distance (Mellor-Crummey and Scott, 1991, §2.2): a ticket lock (8
/// bytes) whose waiters delay by their distance times an estimate of the holding
/// time. FIFO.
///
/// It needs fewer looks than [`super::Conbo`] if the estimate is right; if critical sections are
/// shorter, each hand-over waits for a delayed waiter, even between two CPUs.
pub type Proportional<M> = TicketLock<M, ProportionalPace>;

/// The pace of [`Proportional`]: delays by the distance.
#[derive(Debug, Default)]
pub struct ProportionalPace {
    round: u32,
}

impl<M: Machine> Pace<M> for ProportionalPace {
    const NAME: &'static str = "proportional";

    #[inline]
    fn pause(&mut self, distance: u32) {
        M::delay(distance.saturating_mul(PAUSES_PER_PLACE));
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

// SAFETY: each ticket is handed out once, and only the owner of the served one moves on to the
// next.
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
        // Acquire: pairs with the release in `unlock`; if no task has the served ticket, the lock
        // is free.
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

impl_lock_apis!([M: Machine<AtomicU32: ConstInit>, P: Pace<M>] TicketLock<M, P> = TicketLock {
    next: ConstInit::ZERO,
    serving: ConstInit::ZERO,
    pace: PhantomData,
});
