//! Systems under whose locks time passes.
//!
//! Most of a system call's code runs with the map locked: Linux's `mmap`, `munmap` and `brk`
//! acquire `mmap_lock` a few instructions behind the entry, FreeBSD's and OpenBSD's the lock of
//! their `vm_map`. Of that code a simulated machine sees the lines which it shares with other CPUs,
//! and of the rest it knows only how long it takes, if that has been fitted
//! ([`Fitted::Change`](super::Fitted::Change)). So this time passes where the map has been locked
//! for writing.

use crate::ours::pass;
use sim::Sim;
use std::marker::PhantomData;
use vm::policy::MapLocking;
use vm::{Options, System};

/// The system `S`, where a change of a map takes some time more.
pub struct Timed<S>(PhantomData<S>);

impl<S: System<Machine = Sim>> System for Timed<S> {
    type Machine = Sim;
    type Invalidation = S::Invalidation;
    type Swap = S::Swap;
    type Locking = TimedLocking<S::Locking>;
    type Regions = S::Regions;
    type Queues = S::Queues;
    type PvLocks = S::PvLocks;
    type PvChunks = S::PvChunks;
}

/// The same options, and the nanoseconds that a change of a map takes more.
pub fn timed<S: System<Machine = Sim>>(options: Options<S>, change: f64) -> Options<Timed<S>> {
    Options {
        locking: (options.locking, change),
        invalidation: options.invalidation,
        swap: options.swap,
        regions: options.regions,
        queues: options.queues,
        pv_locks: options.pv_locks,
        pv_chunks: options.pv_chunks,
        swap_pages: options.swap_pages,
        swap_space: options.swap_space,
        out_of_memory: options.out_of_memory,
        overcommit: options.overcommit,
        superpages: options.superpages,
        frame_pools: options.frame_pools,
        fork_tables: options.fork_tables,
        object_pages: options.object_pages,
        fault_around: options.fault_around,
    }
}

/// The locks `L`.
#[repr(C)]
pub struct TimedLocking<L> {
    locks: L,
    /// Nanoseconds. Never changes.
    change: f64,
}

impl<L: MapLocking<Sim>> MapLocking<Sim> for TimedLocking<L> {
    type Read<'a> = L::Read<'a>;
    type Write<'a> = L::Write<'a>;
    type Pmap<'a> = L::Pmap<'a>;
    type Config = (L::Config, f64);

    fn new((locks, change): &Self::Config) -> Self {
        TimedLocking {
            locks: L::new(locks),
            change: *change,
        }
    }

    fn label(&self) {
        self.locks.label();
    }

    #[track_caller]
    fn read(&self) -> L::Read<'_> {
        self.locks.read()
    }

    #[track_caller]
    fn write(&self) -> L::Write<'_> {
        let held = self.locks.write();
        pass(self.change);
        held
    }

    fn downgrades(&self) -> bool {
        self.locks.downgrades()
    }

    #[track_caller]
    fn downgrade(&self, write: &mut L::Write<'_>) {
        self.locks.downgrade(write);
    }

    #[track_caller]
    fn pmap(&self) -> L::Pmap<'_> {
        self.locks.pmap()
    }

    #[track_caller]
    fn try_pmap(&self) -> Option<L::Pmap<'_>> {
        self.locks.try_pmap()
    }
}

#[cfg(test)]
mod tests {
    use crate::harness::{Mode, Plan};
    use crate::simulated::{Conditions, Simulated};
    use baselines::Preset;
    use sim::profile::Profile;
    use std::time::Duration;

    fn target(preset: Preset) -> Simulated {
        let machine = Profile::named("freebsd-96").expect("a machine");
        Simulated {
            preset,
            profile: machine.with_topology(1, 4, 1).expect("four cores"),
            seed: 1,
            conditions: Conditions::default(),
        }
    }

    fn plan(tasks: usize, mode: Mode) -> Plan {
        Plan {
            workload: workloads::find("mmap1").expect("a workload").into(),
            tasks,
            mode,
            count: None,
        }
    }

    /// A millisecond of an iteration's two calls passes where no other thread of the process is,
    /// beside other processes.
    #[test]
    fn fitted_time_excludes_other_threads() {
        let span = Duration::from_millis(20);
        for preset in [Preset::LINUX_5_15, Preset::FREEBSD_11, Preset::OPENBSD_7_6] {
            let mut target = target(preset);
            target.conditions.change = 500_000.0;
            let rate = |tasks, mode| {
                target
                    .sample(&plan(tasks, mode), span)
                    .map(|one| one.rate())
            };
            let alone = rate(1, Mode::Threads).expect("runs");
            assert!((850.0..1150.0).contains(&alone), "{preset}: {alone}");
            let threads = rate(4, Mode::Threads).expect("runs");
            assert!(threads < 1.2 * alone, "{preset}: {threads} of {alone}");
            let processes = rate(4, Mode::Processes).expect("runs");
            assert!(processes > 3.2 * alone, "{preset}: {processes} of {alone}");
        }
    }

    /// Its effect on threads that wait for each other is not that on one.
    #[test]
    fn times_are_fitted_to_tasks_that_wait_for_each_other() {
        let (plan, span) = (plan(4, Mode::Threads), Duration::from_millis(2));
        for preset in [Preset::LINUX_5_15, Preset::FREEBSD_11] {
            let fitted = target(preset).fitted(&plan, span, 300_000.0);
            let (fitted, _, time) = fitted.expect("possible");
            let reached = fitted.sample(&plan, span).expect("runs").rate();
            assert!((reached / 3e5 - 1.0).abs() < 0.01, "{preset}: {reached}");
            assert!((100.0..2000.0).contains(&time), "{preset}: {time}");
        }
    }
}
