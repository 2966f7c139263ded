//! S14: sleeping under one lock for all, and under hashed ones (case study 003's SCHED_LOCK).

use super::{Aim, Effort, Lab, Outcome, Probe, Row, System, Unit, Work};
use baselines::Preset;
use bench::Failure;
use machine::{Atomic, AtomicInt, Atomics, Job, Ordering};
use sim::profile::MachineProfile;
use sim::{Options, Progress, Sim};
use std::sync::Arc;
use sync::Padded;
use sync::sleepq::{GlobalQueue, Hashed, SleepQueue};

pub const SYSTEM: System = System {
    name: "S14",
    about: "sleep queue: one under SCHED_LOCK, hashed; make -j17, desktop, wake-ups alone",
    machines: &["arm64-16"],
    rows,
    beyond: &[],
};

const BUILD: Work = Work::processes("build", Preset::OPENBSD_UNLOCKED, 17)
    .over(16)
    .jobs(2)
    .watched();
const DESKTOP: Work = Work::threads("desktop", Preset::OPENBSD_UNLOCKED, 16).watched();
const GLOBAL: Probe = Probe::new(
    "wake-ups",
    Preset::OPENBSD_UNLOCKED,
    16,
    pairs::<GlobalQueue<Sim>>,
);
const HASHED: Probe = Probe::new("wake-ups", Preset::SCALEVM, 16, pairs::<Hashed<Sim>>);

const MAKE: &str = "case study 003: make -j17: \"10% on SCHED_LOCK()\"; with a video \"2%\"";
const MAP: &str = "case study 003: a map in a browser: \"12% on the SCHED_LOCK()\" of the time in \
                   the kernel; 2 to 24 % of all";
const WHY_MAKE: &str = "the simulated compilers sleep too rarely (S16): with 160 more sleeps of 20 \
                        us each it is 6.3 % (docs/studies/003.md)";
const MORE: &str = "aim: tasks that sleep on different keys do not meet";

fn rows(lab: &Lab) -> Result<Vec<Row>, Failure> {
    let share = |what: &str, work: Work, quote, high| {
        let aim = Aim::Words {
            quote,
            low: 0.02,
            high,
        };
        let row = Row::new(lab, what, aim, |world| {
            world.each(work, |outcome| outcome.waiting("SCHED_LOCK"))
        });
        row.map(|row| row.unit(Unit::Share))
    };
    let rows = [
        share(
            "build, 17 processes on 16 CPUs: waiting for SCHED_LOCK",
            BUILD,
            MAKE,
            0.12,
        )
        .map(|row| row.why(WHY_MAKE)),
        share(
            "desktop, 16 threads: waiting for SCHED_LOCK",
            DESKTOP,
            MAP,
            0.24,
        ),
        Row::new(
            lab,
            "wake-ups of 8 pairs: hashed over one lock",
            Aim::AtLeast(1.2, MORE),
            |world| world.ratio(HASHED, GLOBAL),
        ),
    ];
    Ok(rows.into_iter().flatten().collect())
}

/// A word that a pair of tasks passes to and fro; each task sleeps while it is the other's turn.
struct Ball(Padded<<Sim as Atomics>::AtomicU64>);

impl Ball {
    /// Waits until the word says `turn`, then says the next.
    fn pass<Q: SleepQueue<Sim>>(&self, queue: &Q, turn: u64) {
        let key = std::ptr::from_ref(self).cast();
        // Relaxed: the queue's lock orders a change with the sleeper's look.
        while self.0.load(Ordering::Relaxed) != turn {
            queue.sleep(key, || self.0.load(Ordering::Relaxed) != turn);
        }
        self.0.fetch_add(1, Ordering::Relaxed);
        queue.wake(key, 1);
    }
}

/// Wake-ups a second of as many pairs as the CPUs make; each pair hands a word to and fro.
fn pairs<Q: SleepQueue<Sim> + 'static>(
    probe: &Probe,
    machine: &MachineProfile,
    seed: u64,
    _: &Effort,
) -> Result<Outcome, Failure> {
    const SPREAD: u64 = 2_000;
    const ROUNDS: u64 = 500;
    const LIMIT: u64 = 1_000_000_000;
    let failed = |why: String| Failure::Simulation {
        workload: probe.name,
        why,
    };
    let options = Options {
        seed,
        spread: SPREAD,
        ..Options::new(machine.clone())
    };
    let sim = Sim::new(options).map_err(|error| failed(error.to_string()))?;
    let count = probe.size / 2;
    let made = sim.on_cpu(0, move || {
        let ball = || Ball(Padded(<Sim as Atomics>::AtomicU64::new(0)));
        let balls: Vec<Ball> = (0..count).map(|_| ball()).collect();
        Arc::new((Q::new(), balls))
    });
    let began = sim.time();
    let job = |cpu: usize| {
        let made = made.clone();
        let job = move || {
            let (queue, balls) = &*made;
            let turns = (cpu as u64 % 2..2 * ROUNDS).step_by(2);
            turns.for_each(|turn| balls[cpu / 2].pass(queue, turn));
        };
        Box::new(job) as Job
    };
    sim.start((0..2 * count).map(job).collect());
    match sim.run(LIMIT) {
        Progress::Finished => {
            let seconds = (sim.time() - began) as f64 / 1e9;
            Ok(Outcome::of(2.0 * ROUNDS as f64 * count as f64 / seconds))
        }
        Progress::Deadlock(why) => Err(failed(why)),
        Progress::Running => Err(failed("no end within a simulated second".into())),
    }
}
