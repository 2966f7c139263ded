//! The events that an observer sees.

use super::ClassState;
use core::marker::PhantomData;
use core::panic::Location;
use machine::Machine;

/// The kind of an acquisition: the lock may have one holder at a time, or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One holder.
    Exclusive,
    /// Several readers.
    Shared,
}

/// A task's attempt to acquire a lock.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// The lock's class.
    pub class: &'static ClassState,
    /// The lock's address.
    pub lock: usize,
    /// Exclusive or shared.
    pub kind: Kind,
    /// True if a task that waits for it may sleep ([`crate::RawLock::MAY_SLEEP`]).
    pub may_sleep: bool,
    /// True if another lock of the class may be held, by explicit permission.
    pub nested: bool,
    /// The call site.
    pub site: &'static Location<'static>,
}

/// How a lock was acquired.
#[derive(Clone, Copy, Debug)]
pub enum Acquired {
    /// Acquired by `try_lock`.
    Tried,
    /// Acquired without waiting: it was free.
    Free,
    /// After a wait: it was taken.
    Waited(Wait),
    /// The observer did not ask ([`Observer::asks_contention`]).
    Unknown,
}

/// A wait for a lock.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// When the wait began ([`machine::Clock::now`]).
    pub from: u64,
    /// When the lock was acquired.
    pub to: u64,
    /// Rounds of spinning, as far as the lock reports them ([`super::note_spins`]).
    pub spins: u64,
    /// Sleeps, as far as the lock reports them ([`super::note_sleep`]).
    pub sleeps: u64,
}

/// Watches acquisitions and releases, in the task that does them.
///
/// It must not use a watched lock.
pub trait Observer<M: Machine>: 'static {
    /// Carried from an acquisition to its release. If a lock's interface cannot carry it, because
    /// the release takes no argument, the release gets the default.
    type Ticket: Default;

    /// Returns true if the observer must be told if the lock was free. A blocking acquisition then
    /// first tries, and is timed if that fails; on a machine whose clock is
    /// [free](machine::Clock::FREE) it does not try, and is always timed.
    fn asks_contention() -> bool;

    /// A blocking acquisition is about to start, and its order may be checked.
    fn before(attempt: &Attempt);

    /// A blocking acquisition starts.
    #[inline(always)]
    fn acquiring(attempt: &Attempt) {
        let _ = attempt;
    }

    /// A blocking acquisition that is timed starts `from` now, on a machine whose clock is free.
    #[inline(always)]
    fn waiting(attempt: &Attempt, from: u64) {
        let _ = (attempt, from);
    }

    /// The acquisition that started `from` then has succeeded.
    #[inline(always)]
    fn waited(attempt: &Attempt, from: u64) {
        let _ = (attempt, from);
    }

    /// The lock has been acquired.
    fn acquired(attempt: &Attempt, how: Acquired) -> Self::Ticket;

    /// `try_lock` has failed.
    fn refused(attempt: &Attempt);

    /// The lock is about to be released.
    fn releasing(class: &'static ClassState, lock: usize, ticket: &mut Self::Ticket);

    /// The lock has been released.
    fn released(class: &'static ClassState, ticket: Self::Ticket);

    /// The lock stays held, but no longer by the calling task: it is left to the CPU, which
    /// continues with another context.
    #[inline(always)]
    fn handed_over(class: &'static ClassState, lock: usize) {
        let _ = (class, lock);
    }

    /// The calling task now holds the lock that was left to its CPU.
    #[inline(always)]
    fn taken_over(attempt: &Attempt) {
        let _ = attempt;
    }
}

/// Does not watch: the wrapper compiles to the lock.
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
    fn released(_: &'static ClassState, (): ()) {}
}

/// Lets both `A` and `B` watch.
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
    fn acquiring(attempt: &Attempt) {
        A::acquiring(attempt);
        B::acquiring(attempt);
    }
    #[inline]
    fn waiting(attempt: &Attempt, from: u64) {
        A::waiting(attempt, from);
        B::waiting(attempt, from);
    }
    #[inline]
    fn waited(attempt: &Attempt, from: u64) {
        A::waited(attempt, from);
        B::waited(attempt, from);
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
    fn released(class: &'static ClassState, ticket: Self::Ticket) {
        B::released(class, ticket.1);
        A::released(class, ticket.0);
    }
    #[inline]
    fn handed_over(class: &'static ClassState, lock: usize) {
        B::handed_over(class, lock);
        A::handed_over(class, lock);
    }
    #[inline]
    fn taken_over(attempt: &Attempt) {
        A::taken_over(attempt);
        B::taken_over(attempt);
    }
}
