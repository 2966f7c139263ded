//! S10: lists of all PV chunks under a lock for each domain, and a list of pmaps in their place
//! (case study 002, on a NUMA box).

use super::{Aim, Lab, Outcome, Row, System, Unit, Work};
use baselines::Preset;
use bench::Failure;
use bench::simulated::Band;

pub const SYSTEM: System = System {
    name: "S10",
    about: "lists of PV chunks, and a list of pmaps in their place: a build on two sockets",
    machines: &["freebsd-96"],
    rows,
    beyond: &[],
};

/// The tasks that kept the case study's machine busy: (7901.83 + 446.20) / 116.11 s.
const TASKS: usize = 72;
const STOCK: Work = build(Preset::FREEBSD_NUMA);
const OBM_ONLY: Work = build(Preset::FREEBSD_OBM_ONLY);
const BOTH: Work = build(Preset::FREEBSD_OBM);

const ONLY: &str =
    "case study 002, pig1, \"only obm\": 437.0 sys, the mean of two, of 448.1, the mean of three";
const ALL: &str =
    "case study 002, pig1, \"obm + removal of pvc locks\": 431.4 sys, the mean of three, of 448.1";
const LIST: &str = "case study 002: 1.3 % of the system's time go with the list, so it takes that \
                    at most; a hundredth of all time";

/// From the profile of the unpatched system: see `docs/studies/002.md`.
const WHY: &str = "the pages that all compilers map, text and libraries, lie in one 2 MiB here, \
     since the simulated files are a twentieth of theirs, and stock waits at that one lock; and \
     all tasks begin at once. Larger files would spread them over some dozens of locks: with a \
     lock for each 16 KiB in stock it is 0.76 (docs/studies/002.md)";

const fn build(preset: Preset) -> Work {
    Work::processes("build", preset, TASKS).jobs(1)
}

fn rows(lab: &Lab) -> Result<Vec<Row>, Failure> {
    let seed = |figure, quote| Aim::Published {
        figure,
        quote,
        band: Band::SOCKETS,
    };
    let list = Aim::Words {
        quote: LIST,
        low: 0.0,
        high: 0.01,
    };
    let rows = [
        Row::new(
            lab,
            "build, 72 processes: sys, only one-byte mutexes over stock",
            seed(437.035 / 448.09, ONLY),
            |world| world.ratio_of(OBM_ONLY, STOCK, Outcome::sys),
        )
        .map(|row| row.why(WHY)),
        Row::new(
            lab,
            "build, 72 processes: sys, and no list of chunks, over stock",
            seed(431.353 / 448.09, ALL),
            |world| world.ratio_of(BOTH, STOCK, Outcome::sys),
        )
        .map(|row| row.why(WHY)),
        Row::new(
            lab,
            "build, 72 processes: time waited for the lists of chunks",
            list,
            |world| world.each(OBM_ONLY.watched(), |seen| seen.waiting("pv chunk list")),
        )
        .map(|row| row.unit(Unit::Share)),
    ];
    Ok(rows.into_iter().flatten().collect())
}
