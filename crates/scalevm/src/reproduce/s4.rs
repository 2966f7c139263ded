//! S4: epochs in place of delayed invalidation (seed 000's experiment).

use super::row::Band;
use super::{Aim, Lab, Point, Row, Spread, System};
use crate::harness::Failure;
use crate::simulated::Attribution;
use baselines::selected::Preset;
use sim::profile::Profile;

/// The system.
pub const SYSTEM: System = System {
    name: "S4",
    about: "epochs in place of delayed invalidation: mmap1 by processes",
    machines: &["freebsd-96"],
    points,
    rows,
};

const EPOCH: Point = Point::processes(Preset::FreebsdEpoch, 96);
const DI: Point = Point::processes(Preset::FreebsdDi, 96);

const RATE: &str = "seed 000, epochs, `-t 96`: average:3550909";
const RATIO: &str = "seed 000: 252.018% +/- 1.06257% more";
const NEXT: &str = "seed 000: \"swap reservation accounting is now the bottleneck\"";

const WHY: &str = "a section under a swap mutex takes about as long as an owner keeps its line, which nobody \
     publishes and the profile takes for 14 ns within a socket, so many releases fetch the line back \
     from behind queued probes; with 28 ns it is 5.2 M, on one socket 2.7 M";

fn points(_: &Profile) -> Vec<Point> {
    vec![EPOCH, DI]
}

fn rows(lab: &Lab) -> Result<Vec<Row>, Failure> {
    let seed = |figure, quote| Aim::Seed {
        figure,
        quote,
        band: Band::LAYOUT,
    };
    let rate = Row::new(lab, "96 processes", seed(3_550_909.0, RATE), |world| {
        world.of(EPOCH)
    });
    let ratio = Row::new(
        lab,
        "96 processes, over delayed invalidation",
        seed(3.52, RATIO),
        |world| world.ratio(EPOCH, DI),
    );
    let mut rows: Vec<Row> = [rate.map(Row::rate), ratio].into_iter().flatten().collect();
    rows.iter_mut().for_each(|row| row.why = Some(WHY));
    if !rows.is_empty() {
        rows.push(bottleneck(&lab.attribute(EPOCH)?));
    }
    Ok(rows)
}

/// How much of the waiting for locks is for the swap account's, with one seed.
fn bottleneck(attribution: &Attribution) -> Row {
    let waits = |only: &str| -> f64 {
        let locks = attribution.locks.iter();
        let named = locks.filter(|lock| lock.what.starts_with(only));
        named.map(|lock| lock.wait).sum()
    };
    let share = waits("swap") / waits("").max(f64::MIN_POSITIVE);
    Row {
        what: "share of swap reservation in waiting for locks".into(),
        is_rate: false,
        aim: Aim::AtLeast(0.5, NEXT),
        ours: Spread {
            median: share,
            low: share,
            high: share,
        },
        corners: Vec::new(),
        why: None,
        note: Some(attribution.bottleneck()),
    }
}
