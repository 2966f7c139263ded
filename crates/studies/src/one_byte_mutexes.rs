//! S8: the number of times that tasks contend for a one-byte mutex, and that one must be woken
//! (case study 002's counters).

use super::{Aim, Effort, Lab, Outcome, Probe, Row, System, Work};
use baselines::Preset;
use bench::Failure;
use bench::simulated::Band;
use sim::profile::MachineProfile;

pub const SYSTEM: System = System {
    name: "S8",
    about: "one-byte mutexes of PV lists: slow locks and slow unlocks of a build",
    machines: &["pc-16c32t"],
    rows,
    beyond: &[],
};

const TASKS: usize = 40;
const CPUS: usize = 32;
const JOBS: u64 = 3;
/// The events that the build counts.
const COUNTS: Probe = Probe::new("slow paths of a build", Preset::FREEBSD_OBM, CPUS, count)
    .of(TASKS)
    .once();

/// `debug.obm.slow_lock` and `debug.obm.slow_unlock`.
const SLOW_LOCK: f64 = 111_444.0;
const SLOW_UNLOCK: f64 = 22_920.0;
const BOTH: &str =
    "case study 002: slow_unlock: 22920, slow_lock: 111444 \"after around dozen buildkernels\"";
const RARE: &str = "case study 002: \"This seems to occur rare\"; 9,287 slow locks a build of some \
     thousand jobs: a few a job at most";
const WHY: &str = "it is the number of rounds that a waiter spins before it sleeps, which the case \
     study does not say and a byte without an owner does not give: 40 here; with none the ratio is \
     0.89, with two 0.68, with five 0.24, with ten 0.10 (docs/studies/002.md)";
const WHY_OFTEN: &str =
    "all tasks begin at the same moment, and each job maps the same eight pages of sources";

fn rows(lab: &Lab) -> Result<Vec<Row>, Failure> {
    let aim = Aim::Published {
        figure: SLOW_UNLOCK / SLOW_LOCK,
        quote: BOTH,
        band: Band::LAYOUT,
    };
    let what = format!("build, {TASKS} processes: slow unlocks over slow locks");
    let ratio = Row::new(lab, what, aim, |world| {
        world.each(COUNTS, |counts| {
            Some(counts.other("unlock")? / counts.value.max(1.0))
        })
    });
    let aim = Aim::Words {
        quote: RARE,
        low: 0.0,
        high: 10.0,
    };
    let rare = Row::new(lab, "slow locks of a job", aim, |world| {
        world.each(COUNTS, |counts| Some(counts.value / jobs() as f64))
    });
    let rare = rare.map(|row| row.why(WHY_OFTEN));
    let note = lab.first(COUNTS).map(|counts| {
        let unlocks = counts.other("unlock").unwrap_or(0.0);
        format!(
            "{} slow locks and {unlocks} slow unlocks in {} jobs",
            counts.value,
            jobs()
        )
    });
    let ratio = ratio.map(|row| row.why(WHY)).map(|row| match note {
        Some(note) => row.note(note),
        None => row,
    });
    Ok(ratio.into_iter().chain(rare).collect())
}

const fn jobs() -> u64 {
    JOBS * TASKS as u64
}

/// Slow locks, and by the name of `unlock` slow unlocks, of all one-byte mutexes; but tasks meet
/// only at those of PV lists: a space's are behind its pmap's lock.
fn count(
    probe: &Probe,
    machine: &MachineProfile,
    seed: u64,
    effort: &Effort,
) -> Result<Outcome, Failure> {
    let work = Work::processes("build", probe.preset, probe.size).jobs(JOBS);
    let (target, plan) = work.on(machine, seed)?;
    let slow = target.observe(&plan, effort.contended)?.slow_paths;
    let slow = slow.unwrap_or_default();
    Ok(Outcome::of(slow.slow_lock as f64).with("unlock", slow.slow_unlock as f64))
}
