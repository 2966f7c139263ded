//! S20: a fork-heavy mail server, exim of MOSBENCH (case study 004).

use super::row::Band;
use super::{Aim, Beyond, Lab, Outcome, Point, Row, System, Unit, Work};
use baselines::selected::Preset;
use bench::Failure;
use sim::profile::Profile;

/// The system.
pub const SYSTEM: System = System {
    name: "S20",
    about: "a mail server that forks for each message: exim by processes of one family",
    machines: &["xeon-4s"],
    points,
    rows,
    beyond: &[Beyond {
        after: on(Preset::Linux30Fixes),
        why: None,
    }],
};

/// Clients, one for each core: as the case study's authors ran it later (Chen, June 2013: "the number of clients sending
/// mail equal to number of cores" on four sockets of Westmere).
const CLIENTS: usize = 40;

/// Messages of each: as few as make a run short. A connection brings ten in MOSBENCH.
const MESSAGES: u64 = 1;

const RA: &str = "case study 004: 2.6.39+ra-fix 166.7% (+66.7%)";
const RC2: &str = "case study 004: 3.0-rc2(vanilla) 68.0% (-32%)";
const FIXES: &str = "case study 004: 3.0-rc2+fixes 140.3% (+40.3%)";
const ROOT: &str = "case study 004: \"Anon vma chains are the main scalability problem in fork\"";

const WHY: &str = "a message takes 2.5 ms of a task here, 0.5 ms in MOSBENCH (1.156 M cycles, Boyd-Wickizer et al., \
     2012): locks and lines are met five times less often, and three quarters of the time are the tasks' own work; \
     where the operations stand alone (S17) the order is the case study's. Tasks that sleep are not predicted";

const fn on(preset: Preset) -> Work {
    Work::processes("exim", preset, CLIENTS).jobs(MESSAGES)
}

const SYSTEMS: [Preset; 4] = [
    Preset::Linux2639,
    Preset::Linux2639Ra,
    Preset::Linux30Rc2,
    Preset::Linux30Fixes,
];

fn points(_: &Profile) -> Vec<Point> {
    let mut points: Vec<Point> = SYSTEMS.map(|preset| on(preset).into()).to_vec();
    points.push(on(Preset::Linux2639Ra).watched().into());
    points
}

fn rows(lab: &Lab) -> Result<Vec<Row>, Failure> {
    let seed = |figure, quote| Aim::Published {
        figure,
        quote,
        band: Band::SATURATED,
    };
    let over = |preset, figure, quote| {
        let what = format!("{preset} over linux-2.6.39");
        Row::new(lab, what, seed(figure, quote), |world| {
            world.ratio(on(preset), on(Preset::Linux2639))
        })
        .map(|row| row.why(WHY))
    };
    let waits = Aim::Words {
        quote: ROOT,
        low: 0.1,
        high: 1.0,
    };
    let watched = on(Preset::Linux2639Ra).watched();
    let rows = [
        over(Preset::Linux2639Ra, 1.667, RA),
        over(Preset::Linux30Rc2, 0.68, RC2),
        over(Preset::Linux30Fixes, 1.403, FIXES),
        Row::new(
            lab,
            "linux-2.6.39-ra: the tasks' time that goes in waiting for the root's lock",
            waits,
            |world| world.each(watched, |outcome| outcome.waiting("anon_vma root")),
        )
        .map(|row| row.unit(Unit::Share).why(WHY))
        .map(|row| {
            let said = lab.first(watched).and_then(Outcome::bottleneck);
            said.into_iter().fold(row, Row::note)
        }),
    ];
    Ok(rows.into_iter().flatten().collect())
}
