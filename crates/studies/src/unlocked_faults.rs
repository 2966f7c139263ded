//! S12: page faults under the big lock, and without it (case study 003's "UVM unlocking").

use super::{Aim, Lab, Outcome, Row, System, Unit, Work, build_locks};
use bench::{Failure, Mode};

pub const SYSTEM: System = System {
    name: "S12",
    about: "faults under KERNEL_LOCK, and unlocked: build by processes and by threads",
    machines: &["arm64-16"],
    rows,
    beyond: &[],
};

const MODES: [Mode; 2] = [Mode::Processes, Mode::Threads];

const FASTER: &str =
    "case study 003: \"unlocking UVM faults makes build time decrease a lot\"; 1.2 times at least";
const SPUN: &str =
    "case study 003: the unlocked code is the code that was spun for; a tenth of the time at least";

fn rows(lab: &Lab) -> Result<Vec<Row>, Failure> {
    Ok(MODES
        .into_iter()
        .flat_map(|mode| of_mode(lab, mode))
        .collect())
}

fn of_mode(lab: &Lab, mode: Mode) -> Vec<Row> {
    let [before, after] = build_locks::both(mode);
    let by = mode.name();
    let faster = Aim::Words {
        quote: FASTER,
        low: 1.2,
        high: f64::INFINITY,
    };
    let spun = Aim::Words {
        quote: SPUN,
        low: 0.1,
        high: 1.0,
    };
    let build = Row::new(
        lab,
        format!("{by}: real time, biglock over unlocked"),
        faster,
        |world| world.ratio_of(before, after, Outcome::real),
    );
    let kernel = Row::new(
        lab,
        format!("{by}, biglock: time spinning for KERNEL_LOCK"),
        spun,
        |world| world.each(before.watched(), |outcome| outcome.waiting("KERNEL_LOCK")),
    );
    let kernel = kernel.map(|row| {
        let said = |run: Work| lab.first(run.watched()).and_then(Outcome::bottleneck);
        let beside = match (said(before), said(after)) {
            (Some(before), Some(after)) => format!("biglock: {before}; unlocked: {after}"),
            _ => return row,
        };
        row.note(beside)
    });
    let kernel = kernel.map(|row| row.unit(Unit::Share));
    build.into_iter().chain(kernel).collect()
}
