//! S4: epochs in place of delayed invalidation (case study 000's experiment).

use super::{Aim, Beyond, Lab, Outcome, Row, System, Unit, Work};
use baselines::Preset;
use bench::Failure;
use bench::simulated::Band;

pub const SYSTEM: System = System {
    name: "S4",
    about: "epochs in place of delayed invalidation: mmap1 by processes",
    machines: &["freebsd-96"],
    rows,
    beyond: &[Beyond {
        after: EPOCH,
        why: None,
    }],
};

const EPOCH: Work = Work::processes("mmap1", Preset::FREEBSD_EPOCH, 96);
const DI: Work = Work::processes("mmap1", Preset::FREEBSD_DI, 96);

const RATE: &str = "case study 000, epochs, `-t 96`: average:3550909";
const RATIO: &str = "case study 000: 252.018% +/- 1.06257% more";
const NEXT: &str = "case study 000: \"swap reservation accounting is now the bottleneck\"";

const WHY: &str = "a section under a swap mutex takes about as long as an owner keeps its line, \
     which is not published and the profile takes for 14 ns within a socket. Many releases \
     fetch the line back from behind queued probes; with 28 ns it is 5.2 M, on one socket 2.7 M";

fn rows(lab: &Lab) -> Result<Vec<Row>, Failure> {
    let seed = |figure, quote| Aim::Published {
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
    let mut rows: Vec<Row> = [rate.map(|row| row.unit(Unit::Rate)), ratio]
        .into_iter()
        .flatten()
        .map(|row| row.why(WHY))
        .collect();
    rows.extend(bottleneck(lab));
    Ok(rows)
}

/// The part of the waiting for locks that is for the swap account's.
fn bottleneck(lab: &Lab) -> Option<Row> {
    let what = "share of swap reservation in waiting for locks";
    let row = Row::new(lab, what, Aim::AtLeast(0.5, NEXT), |world| {
        world.each(EPOCH.watched(), |outcome| {
            let all = outcome.waiting("")?.max(f64::MIN_POSITIVE);
            Some(outcome.waiting("swap")? / all)
        })
    })?;
    let row = row.unit(Unit::Share);
    Some(
        match lab.first(EPOCH.watched()).and_then(Outcome::bottleneck) {
            Some(sentence) => row.note(sentence),
            None => row,
        },
    )
}
