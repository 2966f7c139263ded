//! The lock-order checker.
//!
//! A task that waits for a lock of class `b` while holding one of class `a` shows that `a` comes
//! before `b`. All orders seen so far form a graph of classes. A cycle in it is a deadlock that
//! needs only bad luck, so the checker reports it when it first appears, with the call sites of
//! each step, even if no task is stuck (like FreeBSD's WITNESS and Linux's lockdep).
//!
//! It also reports: two locks of one class, unless the class or the call allows it; a lock waited
//! for by its own holder; a violation of a declared rank; a lock released by a task that does not
//! hold it; more held locks than it can track; an acquisition, by a task that holds a pin, of a
//! lock that may put its waiter to sleep, even if the lock is free; and a class of locks for which
//! a pinned task waits without sleeping while a task without a pin holds one, so that it may be
//! preempted on that very CPU (both on machines that count pins: [`machine::Cpus::pins`]).
//!
//! `try_lock` does not wait, so it shows no order; but a lock waited for while one acquired by
//! `try_lock` is held comes after that one. Readers count as writers: a writer that waits between
//! two readers makes them deadlock as writers would.
//!
//! An acquisition whose pairs are known costs a site look-up and, for each held lock, one load from
//! a matrix that is hardly ever written.

mod graph;
mod held;
mod violation;

pub use graph::{Edge, Path, edges};
pub use violation::{Violation, set_handler};

use super::class::{Preempted, class};
use super::site::Site;
use super::{Acquired, Attempt, ClassState, Nesting, Observer};
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;
use graph::Verdict;
use held::{Entry, Popped, Stack};
use machine::Machine;

/// True if anything is checked. Relaxed: it changes while no task holds a lock.
static ON: AtomicBool = AtomicBool::new(true);

/// Switches the checker off, or on again, for the whole process; it is on at first. While it is
/// off, it costs a load and a branch per call. Call it while no task holds a lock.
pub fn switch(on: bool) {
    ON.store(on, Relaxed);
}

#[inline]
fn is_on() -> bool {
    ON.load(Relaxed)
}

/// Checks the order in which tasks acquire locks.
#[derive(Clone, Copy, Debug)]
pub enum Order {}

/// The number of locks that the calling task holds. Locks of a [`Nesting::ByAddress`] class that
/// were acquired one after the other count as one.
pub fn held<M: Machine>() -> usize {
    Stack::<M>::new().depth()
}

/// The pair of a held lock and a wanted one.
fn edge(held: Entry, attempt: &Attempt) -> Edge {
    Edge {
        from: held.site.class(),
        held_at: held.site.location(),
        to: Some(attempt.class),
        taken_at: Some(attempt.site),
    }
}

impl<M: Machine> Observer<M> for Order {
    type Ticket = ();

    #[inline]
    fn asks_contention() -> bool {
        false
    }

    #[inline]
    fn before(attempt: &Attempt) {
        if is_on() {
            check::<M>(attempt);
        }
    }

    #[inline]
    fn acquired(attempt: &Attempt, _: Acquired) {
        if is_on() {
            push::<M>(attempt);
        }
    }

    #[inline]
    fn refused(_: &Attempt) {}

    #[inline]
    fn releasing(class: &'static ClassState, lock: usize, (): &mut ()) {
        if is_on() {
            pop::<M>(class, lock);
        }
    }

    #[inline]
    fn released(_: &'static ClassState, (): ()) {}

    #[inline]
    fn handed_over(class: &'static ClassState, lock: usize) {
        if is_on() {
            pop::<M>(class, lock);
        }
    }

    #[inline]
    fn taken_over(attempt: &Attempt) {
        if is_on() {
            push::<M>(attempt);
        }
    }
}

// These three are not inlined: each lock and each place that acquires it has a copy of the caller.
#[inline(never)]
fn check<M: Machine>(attempt: &Attempt) {
    if M::pins() > 0 {
        let (class, site) = (attempt.class, attempt.site);
        if attempt.may_sleep {
            violation::report(&Violation::Pinned { class, site })
        } else {
            report_preempted(class, class.waits_pinned(site))
        }
    }
    let stack = Stack::<M>::new();
    let wanted = attempt.class.id();
    if stack.depth() == 0 || wanted == 0 {
        return;
    }
    stack.for_each(|held| {
        if held.class == wanted {
            check_nesting(attempt, held);
        } else if graph::is_known(held.class, wanted) {
            // An order that was recorded before was checked then.
        } else if let Some(from) = class(held.class) {
            check_pair(from, held, attempt);
        }
    });
}

/// Reports the two call sites at which the class is waited for and held.
#[inline]
fn report_preempted(class: &'static ClassState, places: Option<Preempted>) {
    if let Some([waited_at, held_at]) = places {
        violation::report(&Violation::Preempted {
            class,
            waited_at,
            held_at,
        });
    }
}

#[inline(never)]
fn push<M: Machine>(attempt: &Attempt) {
    let site = Site::of(attempt.class, attempt.site);
    let run = attempt.class.nesting() == Nesting::ByAddress && !attempt.nested;
    let class = attempt.class.id();
    if M::pins() == 0 {
        report_preempted(attempt.class, attempt.class.holds_unpinned(attempt.site));
    }
    if !Stack::<M>::new().push(class, site, attempt.lock, run) {
        violation::report(&Violation::TooDeep {
            class: attempt.class,
            site: attempt.site,
        });
    }
}

#[inline(never)]
fn pop<M: Machine>(class: &'static ClassState, lock: usize) {
    match Stack::<M>::new().pop(class.id(), lock) {
        Popped::Missing => violation::report(&Violation::NotHeld { class, lock }),
        // The pin under which the lock was acquired was dropped before the lock.
        Popped::Held(site) if M::pins() == 0 => {
            let places = site.location().and_then(|site| class.holds_unpinned(site));
            report_preempted(class, places);
        }
        Popped::Held(_) | Popped::Lost => {}
    }
}

/// Checks two locks of one class.
fn check_nesting(attempt: &Attempt, held: Entry) {
    let now = || edge(held, attempt);
    if held.lock == attempt.lock {
        violation::report(&Violation::Recursion { now: now() });
    } else if !attempt.nested {
        match attempt.class.nesting() {
            Nesting::Never => violation::report(&Violation::Nested { now: now() }),
            Nesting::ByAddress if held.lock > attempt.lock => {
                violation::report(&Violation::Descending { now: now() });
            }
            Nesting::ByAddress | Nesting::Allowed => {}
        }
    }
}

/// Records and checks a new pair of different classes.
#[cold]
fn check_pair(from: &'static ClassState, held: Entry, attempt: &Attempt) {
    let to = attempt.class;
    let site = Site::of(to, attempt.site);
    let ranks_kept = match (from.rank(), to.rank()) {
        (Some(held), Some(wanted)) => held < wanted,
        _ => true,
    };
    match graph::say(from.id(), held.site, to.id(), site, ranks_kept) {
        Verdict::Fine => {}
        Verdict::Rank => violation::report(&Violation::Rank {
            now: edge(held, attempt),
        }),
        Verdict::Cycle(before) => violation::report(&Violation::Cycle {
            now: edge(held, attempt),
            before: &before,
        }),
    }
}
