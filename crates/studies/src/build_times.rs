//! S11: where the time of a build goes: real, user, sys (case study 002's tables).

use super::{Aim, Lab, Outcome, Row, System, Unit, Work};
use baselines::Preset;
use bench::Failure;
use bench::simulated::Band;

pub const SYSTEM: System = System {
    name: "S11",
    about: "a build: the system's part of the CPU time, and how busy the CPUs are",
    machines: &["pc-16c32t"],
    rows,
    beyond: &[],
};

const TASKS: usize = 40;
const CPUS: usize = 32;
const STOCK: Work = build(Preset::FREEBSD_LOCKLESS_DI);
const PATCHED: Work = build(Preset::FREEBSD_OBM);

const BEFORE: &str = "case study 002, stock: 567.74 sys, 6782.41 user";
const AFTER: &str = "case study 002, patched: 307.43 sys, 6730.43 user";
const USER: &str = "case study 002: 6730.43 user, patched, of 6782.41 user, stock";
const WHY: &str = "the simulated job computes 8 ms, where a compiler's twentieth would be 85 \
     (docs/workloads.md), and the simulated system has no work but memory's, files' and processes' \
     own. Experiment: with 80 ms its part is 1.5 % stock and 1.2 % patched, so the published parts \
     lie between";

const fn build(preset: Preset) -> Work {
    Work::processes("build", preset, TASKS).over(CPUS).jobs(3)
}

/// The system's part of the CPU time.
fn system(outcome: &Outcome) -> Option<f64> {
    let sys = outcome.sys()?;
    Some(sys / (sys + outcome.user()?))
}

fn rows(lab: &Lab) -> Result<Vec<Row>, Failure> {
    let seed = |figure, quote, band| Aim::Published {
        figure,
        quote,
        band,
    };
    let share = |what: &str, work, aim| {
        let row = Row::new(lab, what, aim, |world| world.each(work, system));
        row.map(|row| row.unit(Unit::Share).why(WHY))
    };
    let rows = [
        share(
            "build, 40 processes on 32 CPUs: the system's part, stock",
            STOCK,
            seed(567.74 / (567.74 + 6782.41), BEFORE, Band::LAYOUT),
        ),
        share(
            "build, 40 processes on 32 CPUs: the system's part, patched",
            PATCHED,
            seed(307.43 / (307.43 + 6730.43), AFTER, Band::LAYOUT),
        ),
        Row::new(
            lab,
            "build, 40 processes on 32 CPUs: user, patched over stock",
            seed(6730.43 / 6782.41, USER, Band::SOCKETS),
            |world| world.ratio_of(PATCHED, STOCK, Outcome::user),
        ),
    ];
    Ok(rows.into_iter().flatten().collect())
}
