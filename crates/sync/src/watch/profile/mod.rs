//! The lock profile: how often, how long and where locks are waited for.
//!
//! Each acquisition adds one to a counter of the acquiring CPU's own. Only an
//! acquisition that finds the lock taken reads the clock: twice for its wait and
//! once more at its release, so hold times are those that somebody's waiting shows
//! to matter, and an uncontended lock is not slowed down by timing it.
//!
//! Between [`stop`] and [`start`] an operation costs one load of a flag that nobody
//! writes; a queue lock then takes its one path, not a `try_lock` before it.

mod report;
mod table;

pub use report::{Row, report};
pub use table::reset;

use super::site::Site;
use super::{Acquired, Attempt, ClassState, Observer};
use alloc::collections::TryReserveError;
use core::sync::atomic::{AtomicBool, Ordering};
use machine::{Cpus, Machine, Pinned};
use table::Event;

/// Counts and times, between [`start`] and [`stop`].
#[derive(Clone, Copy, Debug)]
pub enum Profile {}

/// Whether profiles are taken.
static RUNNING: AtomicBool = AtomicBool::new(false);

/// Starts profiling on CPUs 0 to `cpus` - 1. Further CPUs share the counters of
/// these.
///
/// The first start allocates 72 KiB a CPU, for ever.
///
/// # Errors
/// If that fails; profiling has not been started then.
pub fn start(cpus: usize) -> Result<(), TryReserveError> {
    table::make_room(cpus)?;
    RUNNING.store(true, Ordering::Relaxed);
    Ok(())
}

/// Stops profiling. An acquisition that is under way may still be counted.
pub fn stop() {
    RUNNING.store(false, Ordering::Relaxed);
}

/// Whether profiling has been started.
#[inline]
pub fn is_running() -> bool {
    RUNNING.load(Ordering::Relaxed)
}

/// From a contended acquisition to its release: where it was, and since when the
/// lock has been held.
#[derive(Default)]
pub struct Ticket(Option<Holding>);

struct Holding {
    site: Site,
    /// When the lock was got; from [`Observer::releasing`] on, how long it was held.
    time: u64,
}

fn count<M: Machine>(site: Site, event: Event) {
    let pin = <M as Cpus>::pin();
    table::add(pin.cpu().index(), site, event);
}

impl<M: Machine> Observer<M> for Profile {
    type Ticket = Ticket;

    #[inline]
    fn asks_contention() -> bool {
        is_running()
    }

    #[inline]
    fn before(_: &Attempt) {}

    #[inline]
    fn acquired(attempt: &Attempt, how: Acquired) -> Ticket {
        // Unknown: stopped, or only just started; such an acquisition is not counted.
        if matches!(how, Acquired::Unknown) || !is_running() {
            return Ticket(None);
        }
        let site = Site::of(attempt.class, attempt.site);
        match how {
            Acquired::Unknown | Acquired::Tried | Acquired::Free => {
                count::<M>(site, Event::Free);
                Ticket(None)
            }
            Acquired::Waited(wait) => {
                let time = wait.to;
                count::<M>(site, Event::Waited(wait));
                Ticket(Some(Holding { site, time }))
            }
        }
    }

    #[inline]
    fn refused(attempt: &Attempt) {
        if is_running() {
            count::<M>(Site::of(attempt.class, attempt.site), Event::Refused);
        }
    }

    #[inline]
    fn releasing(_: &'static ClassState, _: usize, ticket: &mut Ticket) {
        if let Some(holding) = &mut ticket.0 {
            holding.time = M::now().saturating_sub(holding.time);
        }
    }

    #[inline]
    fn released(ticket: Ticket) {
        if let Some(holding) = ticket.0 {
            count::<M>(holding.site, Event::Held(holding.time));
        }
    }
}
