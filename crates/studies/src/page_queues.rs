//! S13: one lock over all page queues (case study 003: 8 to 12 % of the CPUs' time).

use super::{Aim, Lab, Row, System, Unit, Work, build_locks};
use baselines::Preset;
use bench::simulated::Band;
use bench::{Failure, Mode};

pub const SYSTEM: System = System {
    name: "S13",
    about: "the page queues under one lock, and no queue: build by processes",
    machines: &["arm64-16"],
    rows,
    beyond: &[],
};

const AFTER: Work = build_locks::make(Mode::Processes, Preset::OPENBSD_UNLOCKED).watched();
const OURS: Work = build_locks::make(Mode::Processes, Preset::SCALEVM).watched();

const SEED: &str = "case study 003: 12% on UVM's pageqlock";
const NONE: &str = "aim: where no queue is shared no task waits for one";

fn rows(lab: &Lab) -> Result<Vec<Row>, Failure> {
    let seed = Aim::Published {
        figure: 0.12,
        quote: SEED,
        band: Band::LAYOUT,
    };
    let spinning = |what: &str, aim, run: Work| {
        let row = Row::new(lab, what, aim, |world| {
            world.each(run, |outcome| outcome.waiting("pageqlock"))
        })?;
        Some(row.unit(Unit::Share))
    };
    let theirs = spinning("time spinning for pageqlock, unlocked", seed, AFTER);
    // There is no queue.
    let ours = spinning("the same, scalevm", Aim::AtMost(0.001, NONE), OURS).map(Row::check);
    Ok(theirs.into_iter().chain(ours).collect())
}
