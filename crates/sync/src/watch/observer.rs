//! What an observer is told.

use super::ClassState;
use core::marker::PhantomData;
use core::panic::Location;
use machine::Machine;

/// Whether others may hold the lock at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nobody else may.
    Exclusive,
    /// Other readers may.
    Shared,
}

/// Somebody wants a lock.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// The lock's class.
    pub class: &'static ClassState,
    /// The lock's address.
    pub lock: usize,
    /// How it is wanted.
    pub kind: Kind,
    /// Whether another lock of the class may be held, by explicit permission.
    pub nested: bool,
    /// Who wants it.
    pub site: &'static Location<'static>,
}

/// How a lock was got.
#[derive(Clone, Copy, Debug)]
pub enum Acquired {
    /// By `try_lock`.
    Tried,
    /// It was free.
    Free,
    /// It was taken, and this waited for it.
    Waited(Wait),
    /// Nobody asked ([`Observer::asks_contention`]).
    Unknown,
}

/// A wait for a lock.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// When it began ([`machine::Clock::now`]).
    pub from: u64,
    /// When the lock was got.
    pub to: u64,
    /// Rounds of spinning, as far as the lock tells ([`super::note_spins`]).
    pub spins: u64,
    /// Sleeps, as far as the lock tells ([`super::note_sleep`]).
    pub sleeps: u64,
}

/// Watches acquisitions and releases, in the task that does them.
///
/// Nothing here may use a watched lock.
pub trait Observer<M: Machine>: 'static {
    /// Carried from an acquisition to its release. Where a lock's interface can not
    /// carry it (one whose release takes nothing), the release gets the default.
    type Ticket: Default;

    /// Whether it must be known if a lock was free. A blocking acquisition then
    /// tries first, and is timed if that fails.
    fn asks_contention() -> bool;

    /// A blocking acquisition is about to start.
    fn before(attempt: &Attempt);

    /// The lock has been acquired.
    fn acquired(attempt: &Attempt, how: Acquired) -> Self::Ticket;

    /// `try_lock` has failed.
    fn refused(attempt: &Attempt);

    /// The lock is about to be released.
    fn releasing(class: &'static ClassState, lock: usize, ticket: &mut Self::Ticket);

    /// The lock has been released.
    fn released(ticket: Self::Ticket);
}

/// Nobody watches: the wrapper compiles to the lock.
#[derive(Clone, Copy, Debug)]
pub enum Off {}

impl<M: Machine> Observer<M> for Off {
    type Ticket = ();

    #[inline(always)]
    fn asks_contention() -> bool {
        false
    }
    #[inline(always)]
    fn before(_: &Attempt) {}
    #[inline(always)]
    fn acquired(_: &Attempt, _: Acquired) {}
    #[inline(always)]
    fn refused(_: &Attempt) {}
    #[inline(always)]
    fn releasing(_: &'static ClassState, _: usize, (): &mut ()) {}
    #[inline(always)]
    fn released((): ()) {}
}

/// `A` watches, and `B` too.
pub struct Both<A, B>(PhantomData<fn() -> (A, B)>);

impl<M: Machine, A: Observer<M>, B: Observer<M>> Observer<M> for Both<A, B> {
    type Ticket = (A::Ticket, B::Ticket);

    #[inline]
    fn asks_contention() -> bool {
        A::asks_contention() || B::asks_contention()
    }
    #[inline]
    fn before(attempt: &Attempt) {
        A::before(attempt);
        B::before(attempt);
    }
    #[inline]
    fn acquired(attempt: &Attempt, how: Acquired) -> Self::Ticket {
        (A::acquired(attempt, how), B::acquired(attempt, how))
    }
    #[inline]
    fn refused(attempt: &Attempt) {
        A::refused(attempt);
        B::refused(attempt);
    }
    #[inline]
    fn releasing(class: &'static ClassState, lock: usize, ticket: &mut Self::Ticket) {
        B::releasing(class, lock, &mut ticket.1);
        A::releasing(class, lock, &mut ticket.0);
    }
    #[inline]
    fn released(ticket: Self::Ticket) {
        B::released(ticket.1);
        A::released(ticket.0);
    }
}
