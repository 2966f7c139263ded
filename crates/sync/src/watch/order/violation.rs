//! Violations of lock order, and how they are reported.

use super::{Edge, Path};
use crate::watch::ClassState;
use core::fmt;
use core::mem::transmute;
use core::panic::Location;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

/// A violation of a rule of lock order.
#[derive(Clone, Copy, Debug)]
pub enum Violation<'a> {
    /// The opposite order was seen before. Reported once for each pair of classes.
    Cycle {
        /// The step that the task is about to take.
        now: Edge,
        /// The earlier steps, from `now.to` to `now.from`.
        before: &'a Path,
    },
    /// The held lock's rank is not below that of the wanted one. Reported once for each pair of
    /// classes.
    Rank {
        /// The step that the task is about to take.
        now: Edge,
    },
    /// The task waits for a lock that it holds.
    Recursion {
        /// The step that the task is about to take.
        now: Edge,
    },
    /// The task holds a lock of the same class, which does not nest.
    Nested {
        /// The step that the task is about to take.
        now: Edge,
    },
    /// The task holds a lock of the same class, which nests by address, at a higher address.
    Descending {
        /// The step that the task is about to take.
        now: Edge,
    },
    /// A lock is released by a task that does not hold it.
    NotHeld {
        /// The lock's class.
        class: &'static ClassState,
        /// The lock's address.
        lock: usize,
    },
    /// The task waits for a lock that may put it to sleep while it is pinned to its CPU.
    Pinned {
        /// The lock's class.
        class: &'static ClassState,
        /// Where it is acquired.
        site: &'static Location<'static>,
    },
    /// A pinned task waits for a lock of a class without sleeping, and another task holds one
    /// without a pin: it may be preempted on a CPU where the first then waits for it forever.
    /// Reported once for each class.
    Preempted {
        /// The class.
        class: &'static ClassState,
        /// Where a pinned task waits.
        waited_at: &'static Location<'static>,
        /// Where a lock that is held without a pin was acquired.
        held_at: &'static Location<'static>,
    },
    /// The task holds more locks than the checker can track; this one and further ones are not
    /// checked.
    TooDeep {
        /// The lock's class.
        class: &'static ClassState,
        /// Where it was acquired.
        site: &'static Location<'static>,
    },
}

/// The handler, a `fn(&Violation)`; null means to panic.
static HANDLER: AtomicPtr<()> = AtomicPtr::new(null_mut());

/// Makes `handler` receive violations, in the task that commits them; [`None`] restores the
/// default, which is to panic.
///
/// The report comes before the task waits or releases, so a panic leaves the lock as it was; only
/// [`Violation::TooDeep`] is reported after the lock was acquired. When the handler returns, the
/// task goes on, even into a deadlock.
pub fn set_handler(handler: Option<fn(&Violation<'_>)>) {
    let handler = handler.map_or(null_mut(), |f| f as *mut ());
    HANDLER.store(handler, Ordering::Relaxed);
}

#[cold]
#[inline(never)]
pub(super) fn report(violation: &Violation<'_>) {
    let handler = HANDLER.load(Ordering::Relaxed);
    if handler.is_null() {
        panic!("{violation}");
    }
    // SAFETY: `set_handler` stores functions of this type only.
    let handler = unsafe { transmute::<*mut (), fn(&Violation<'_>)>(handler) };
    handler(violation);
}

struct Name(Option<&'static ClassState>);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(class) => write!(f, "\"{}\"", class.name()),
            None => f.write_str("a lock of an unnumbered class"),
        }
    }
}

struct At(Option<&'static Location<'static>>);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(at) => write!(f, "at {at}"),
            None => f.write_str("somewhere"),
        }
    }
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (Name(self.from), Name(self.to));
        let (held, taken) = (At(self.held_at), At(self.taken_at));
        write!(
            f,
            "{from}, taken {held}, is held; {to} is waited for {taken}"
        )
    }
}

impl fmt::Display for Violation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Cycle { now, before } => {
                write!(f, "lock order reversed:\n  now: {now}")?;
                for edge in before.edges() {
                    write!(f, "\n  before: {edge}")?;
                }
                Ok(())
            }
            Violation::Rank { now } => {
                let rank = |class: Option<&ClassState>| class.and_then(|c| c.rank()).unwrap_or(0);
                let (from, to) = (rank(now.from), rank(now.to));
                write!(
                    f,
                    "declared lock order broken (rank {from}, then {to}): {now}"
                )
            }
            Violation::Recursion { now } => write!(f, "waits for its own lock: {now}"),
            Violation::Nested { now } => {
                write!(f, "two locks of a class that does not nest: {now}")
            }
            Violation::Descending { now } => {
                write!(
                    f,
                    "locks of one class not taken by ascending address: {now}"
                )
            }
            Violation::NotHeld { class, lock } => {
                let name = class.name();
                write!(
                    f,
                    "\"{name}\" lock {lock:#x} released, but the task does not hold it"
                )
            }
            Violation::Pinned { class, site } => {
                let name = class.name();
                write!(
                    f,
                    "a pinned task may sleep: \"{name}\" is waited for at {site}"
                )
            }
            Violation::Preempted {
                class,
                waited_at,
                held_at,
            } => {
                let name = class.name();
                write!(
                    f,
                    "\"{name}\" is held without a pin, taken at {held_at}; a pinned task waits for \
                     it at {waited_at}, for ever if the holder has to run on that CPU"
                )
            }
            Violation::TooDeep { class, site } => {
                let name = class.name();
                write!(
                    f,
                    "too many locks held to check their order: \"{name}\", taken at {site}"
                )
            }
        }
    }
}
