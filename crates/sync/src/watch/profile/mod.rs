//! The lock profile: how often, how long and where tasks wait for locks.
//!
//! Each acquisition adds one to a counter of the acquiring CPU's own. Only an acquisition that
//! finds the lock taken reads the clock: twice for its wait and once more at its release. So only
//! those hold times are measured that follow a wait, and timing does not slow down an uncontended
//! lock.
//!
//! A machine has a profile of its own ([`of`] its anchor). Between [`Tables::stop`] and
//! [`Tables::start`] an operation costs one load of a number that is rarely written, unless another
//! machine of the process is being profiled; a queue lock then takes its normal path, without a
//! `try_lock` before it.
//!
//! A wait is counted when it ends. Where the clock is free, waits under way are known as well, so
//! that a profile of a stretch of a run has each wait's part in it ([`Tables::reset_at`],
//! [`Tables::report_at`]).
//!
//! [`refund`] leaves classes of locks out, and the time they cost.

mod refund;
mod report;
mod table;

pub use refund::{Refund, Step, refund};
pub use report::Row;
pub use table::{Tables, of};

use super::site::Site;
use super::{Acquired, Attempt, ClassState, Kind, Observer, Wait};
use machine::{Cpus, Machine, Pinned};
use table::Event;

/// Counts and times, between [`Tables::start`] and [`Tables::stop`].
#[derive(Clone, Copy, Debug)]
pub enum LockProfile {}

/// Carried from a contended acquisition to its release: the call site, and since when the lock has
/// been held. Two words, so that it stays in registers.
#[derive(Default)]
pub struct Ticket {
    /// `None` if the acquisition did not wait.
    site: Option<Site>,
    /// When the lock was acquired; from [`Observer::releasing`] on, how long it was held.
    time: u64,
}

const _: () = assert!(size_of::<Ticket>() == 16);

impl<M: Machine> Observer<M> for LockProfile {
    type Ticket = Ticket;

    #[inline]
    fn asks_contention() -> bool {
        table::running::<M>().is_some()
    }

    #[inline]
    fn before(_: &Attempt) {}

    #[inline]
    fn acquiring(attempt: &Attempt) {
        if let Some(refund) = refund::of::<M>(attempt.class) {
            (refund.step)(Step::Acquiring);
        }
    }

    #[inline]
    fn waiting(attempt: &Attempt, from: u64) {
        if refund::of::<M>(attempt.class).is_none() {
            let site = Site::of(attempt.class, attempt.site);
            of(M::anchor()).begin_wait(site, from);
        }
    }

    #[inline]
    fn waited(attempt: &Attempt, from: u64) {
        if refund::of::<M>(attempt.class).is_none() {
            let site = Site::of(attempt.class, attempt.site);
            of(M::anchor()).end_wait(site, from);
        }
    }

    #[inline]
    fn acquired(attempt: &Attempt, how: Acquired) -> Ticket {
        if let Some(refund) = refund::of::<M>(attempt.class) {
            (refund.step)(match how {
                Acquired::Tried => Step::Tried,
                _ => Step::Acquired,
            });
            return Ticket::default();
        }
        let how = match refund::of_others::<M>(attempt.class) {
            Some(refund) if attempt.kind == Kind::Exclusive => {
                late::<M>(how, (refund.enter)(attempt.lock))
            }
            _ => how,
        };
        // Unknown: profiling is stopped or has only just started; such an acquisition is not
        // counted.
        if matches!(how, Acquired::Unknown) {
            return Ticket::default();
        }
        let Some(tables) = table::running::<M>() else {
            return Ticket::default();
        };
        let site = Site::of(attempt.class, attempt.site);
        let Acquired::Waited(wait) = how else {
            count::<M>(tables, site, Event::Free);
            return Ticket::default();
        };
        let time = wait.to;
        count::<M>(tables, site, Event::Waited(wait));
        Ticket {
            site: Some(site),
            time,
        }
    }

    #[inline]
    fn refused(attempt: &Attempt) {
        if let Some(tables) = table::running::<M>() {
            count::<M>(
                tables,
                Site::of(attempt.class, attempt.site),
                Event::Refused,
            );
        }
    }

    #[inline]
    fn releasing(class: &'static ClassState, lock: usize, ticket: &mut Ticket) {
        if let Some(refund) = refund::of_others::<M>(class) {
            (refund.leave)(lock);
        }
        if let Some(refund) = refund::of::<M>(class) {
            (refund.step)(Step::Releasing);
        }
        if ticket.site.is_some() {
            ticket.time = M::now().saturating_sub(ticket.time);
        }
    }

    #[inline]
    fn released(class: &'static ClassState, ticket: Ticket) {
        if let Some(refund) = refund::of::<M>(class) {
            (refund.step)(Step::Released);
        }
        if let Some(site) = ticket.site {
            // Counted even if profiling has stopped meanwhile, because the wait has been counted.
            let tables = of(M::anchor());
            count::<M>(tables, site, Event::Held(ticket.time));
        }
    }
}

/// The acquisition of a task that would have waited for this many nanoseconds more.
fn late<M: Machine>(how: Acquired, more: u64) -> Acquired {
    let to = M::now();
    match how {
        Acquired::Unknown => how,
        _ if more == 0 => how,
        Acquired::Waited(wait) => Acquired::Waited(Wait {
            from: wait.from.saturating_sub(more),
            ..wait
        }),
        Acquired::Free | Acquired::Tried => Acquired::Waited(Wait {
            from: to.saturating_sub(more),
            to,
            spins: 0,
            sleeps: 0,
        }),
    }
}

fn count<M: Machine>(tables: &Tables, site: Site, event: Event) {
    let pin = <M as Cpus>::pin();
    tables.add(pin.cpu().index(), site, event);
}
