//! Causes that hold tasks up, and how a simulated machine does without them.

use super::attribution::{Attribution, Share};
use sim::Sim;
use sim::profile::MachineProfile;
use std::fmt;
use std::str::FromStr;
use sync::watch::profile::{Refund, Step, refund};

/// Something that costs tasks time, and that a simulated machine can do without.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The locks of a class. They still exclude, but their waits and transfers take no time.
    Lock(String),
    /// The cache lines of an object, which are then at hand wherever they are used.
    Line(String),
    /// Flushes of other CPUs' translations, which then take no time.
    Flushes,
    /// Zeroing and copying pages, and the bandwidth of memory.
    Memory,
    /// Going to sleep, and waking.
    Sleeping,
}

/// The part of the tasks' time from which on something is a cause.
const LEAST: f64 = 0.02;

/// The time of a flush that is free, in nanoseconds: the shortest that is not 0.
const FREE: f64 = 0.001;
/// A rate at which zeroing waits for nothing, in GB/s.
const UNLIMITED: f64 = 1e9;

impl Cause {
    /// What costs the tasks of a watched run at least a fiftieth of their time, with that part, the
    /// most first.
    pub fn of(seen: &Attribution) -> Vec<(Cause, f64)> {
        let locks = seen.locks.iter();
        let locks = locks.map(|lock| (Cause::Lock(lock.what.clone()), lock.wait));
        // A task that spins on a line waits for what is in it: a lock, or else for the line itself.
        let is_for_lines = seen.locks.iter().all(|lock| lock.wait == 0.0);
        let line = |line: &Share| {
            let spin = if is_for_lines { line.spin } else { 0.0 };
            (Cause::Line(line.what.clone()), line.wait + line.hold + spin)
        };
        let lines = seen.objects.iter().map(line);
        let waits: f64 = seen.locks.iter().map(|lock| lock.wait).sum();
        let asleep_for_locks = (waits - seen.spinning).max(0.0);
        let others = [
            (Cause::Flushes, seen.interrupts),
            (Cause::Memory, seen.memory),
            (Cause::Sleeping, seen.blocked - asleep_for_locks),
        ];
        let mut causes: Vec<_> = locks.chain(lines).chain(others).collect();
        causes.retain(|(_, part)| *part >= LEAST);
        causes.sort_by(|a, b| b.1.total_cmp(&a.1));
        causes
    }

    /// Changes `profile`, if it is the machine's costs that the cause consists of.
    fn take_from(&self, profile: &mut MachineProfile) {
        match self {
            Cause::Lock(_) | Cause::Line(_) => {}
            Cause::Flushes => profile.ipi.broadcast = FREE,
            Cause::Memory => {
                let memory = &mut profile.memory;
                (memory.zero_page, memory.copy_page) = (0, 0);
                memory.zero_socket_gbps = UNLIMITED;
            }
            Cause::Sleeping => {
                let kernel = &mut profile.kernel;
                (kernel.block, kernel.wake, kernel.idle_exit) = (0, 0, 0);
            }
        }
    }
}

/// The machine of `profile` without `causes`, as far as its costs are concerned.
pub(super) fn profile(profile: &MachineProfile, causes: &[Cause]) -> MachineProfile {
    let mut profile = profile.clone();
    causes
        .iter()
        .for_each(|cause| cause.take_from(&mut profile));
    profile
}

/// Lets `machine`, whose tasks have not begun, do without the locks and the lines of `causes`.
pub(super) fn take_away(machine: &Sim, causes: &[Cause]) {
    let locks = causes.iter().filter_map(|cause| match cause {
        Cause::Lock(class) => Some(class.clone()),
        _ => None,
    });
    let lines = causes.iter().filter_map(|cause| match cause {
        Cause::Line(name) => Some(name.clone()),
        _ => None,
    });
    let locks: Vec<_> = locks.collect();
    if !locks.is_empty() {
        let refunds = Refund {
            step,
            enter: sim::enter,
            leave: sim::leave,
        };
        refund(machine.own_anchor(), locks.into(), refunds);
    }
    machine.keep_at_hand(lines.collect());
}

/// Gives back the time that a lock costs. What a task that holds none has not caught up with when
/// it asks for the next, it has lost: otherwise it would do many operations at once, with all their
/// lines at hand.
fn step(step: Step) {
    match step {
        Step::Acquiring => {
            sim::forfeit();
            sim::begin_refund(false);
        }
        Step::Acquired => {
            sim::end_refund();
            sim::free_stores(true);
        }
        Step::Tried => sim::free_stores(true),
        Step::Releasing => sim::begin_refund(true),
        Step::Released => {
            sim::end_refund();
            sim::free_stores(false);
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Lock(class) => write!(f, "lock {class}"),
            Cause::Line(name) => write!(f, "line {name}"),
            Cause::Flushes => f.write_str("flushes"),
            Cause::Memory => f.write_str("memory"),
            Cause::Sleeping => f.write_str("sleeping"),
        }
    }
}

impl FromStr for Cause {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.split_once(' ')) {
            ("flushes", _) => Ok(Cause::Flushes),
            ("memory", _) => Ok(Cause::Memory),
            ("sleeping", _) => Ok(Cause::Sleeping),
            (_, Some(("lock", class))) => Ok(Cause::Lock(class.to_owned())),
            (_, Some(("line", name))) => Ok(Cause::Line(name.to_owned())),
            _ => Err("expected \"lock NAME\", \"line NAME\", flushes, memory or sleeping".into()),
        }
    }
}
