//! S15: the paths other than memory that case study 003 names: futexes, poll, pipes, and wake-ups.

use super::{Aim, Beyond, Lab, Outcome, Row, System, Unit, Work};
use baselines::Preset;
use bench::Failure;

pub const SYSTEM: System = System {
    name: "S15",
    about: "futexes, poll, pipes and wake-ups under the big lock and without: 16 threads",
    machines: &["arm64-16"],
    rows,
    beyond: &[Beyond {
        after: DESKTOP,
        why: None,
    }],
};

const TASKS: usize = 16;
/// The workload of the case study's third analysis, with faults unlocked.
const DESKTOP: Work = Work::threads("desktop", Preset::OPENBSD_UNLOCKED, TASKS);
/// To an end, so that the kernel's part of the time is known.
const SEEN: Work = DESKTOP.jobs(200).watched();

const KERNEL: &str = "case study 003: \"If we look at time spent in kernel, 37% is spent spinning \
                      on the KERNEL_LOCK()\"";
const SCHED: &str = "case study 003: \"and 12% on the SCHED_LOCK()\"";
const OWN: &str = "aim: twice at least; case study 003: \"Completely unlocking poll(2), select(2) \
     and kqueue(2)\", \"reduce the contention in futex(2)\"";

/// Workloads, and the events that they count.
const CALLS: [(&str, &str); 4] = [
    ("futex1", "futex wake-ups"),
    ("poll1", "polls"),
    ("pipe1", "round trips of a pipe"),
    ("desktop", "events of desktop"),
];

const fn threads(workload: &'static str, preset: Preset) -> Work {
    Work::threads(workload, preset, TASKS)
}

fn rows(lab: &Lab) -> Result<Vec<Row>, Failure> {
    let share = |class, figure, quote| {
        let aim = Aim::Published {
            figure,
            quote,
            band: bench::simulated::Band::LAYOUT,
        };
        let what = format!("desktop, {TASKS} threads: {class}, of the time in the kernel");
        let row = Row::new(lab, what, aim, |world| {
            world.each(SEEN, |outcome| of_kernel(outcome, class))
        });
        row.map(|row| row.unit(Unit::Share))
    };
    let shares = [
        share("KERNEL_LOCK", 0.37, KERNEL),
        share("SCHED_LOCK", 0.12, SCHED),
    ];
    let over = |(workload, counted)| {
        let [ours, theirs] =
            [Preset::SCALEVM, Preset::OPENBSD_UNLOCKED].map(|preset| threads(workload, preset));
        let what = format!("{counted}, {TASKS} threads: without the big lock over with it");
        Row::new(lab, what, Aim::AtLeast(2.0, OWN), |world| {
            world.ratio(ours, theirs)
        })
    };
    let rows = shares.into_iter().chain(CALLS.map(over));
    Ok(rows.flatten().collect())
}

/// The part of the time in the kernel, awake, spent waiting for locks of `class`.
fn of_kernel(outcome: &Outcome, class: &str) -> Option<f64> {
    let (times, _) = outcome.times.as_ref()?;
    let waited = outcome.waiting(class)? * times.real.as_secs_f64() * TASKS as f64;
    Some(waited / times.sys.as_secs_f64().max(f64::MIN_POSITIVE))
}
