//! S3: delayed invalidation behind one mutex, mmap1 by processes (case study 000's "before").

use super::lab::World;
use super::{Aim, Lab, Row, System, Unit, Work};
use baselines::Preset;
use bench::Failure;
use bench::simulated::Band;

pub const SYSTEM: System = System {
    name: "S3",
    about: "delayed invalidation behind one mutex: mmap1 by processes",
    machines: &["freebsd-96"],
    rows,
    beyond: &[],
};

/// Numbers of tasks from which the peak is read.
const COUNTS: [usize; 10] = [1, 2, 4, 8, 12, 16, 24, 32, 48, 96];
/// The part of the highest rate that a plateau has: a peak is where it begins.
const PLATEAU: f64 = 0.95;

const PEAK: &str = "case study 000, `-t 12`: average:1719430";
const ALL: &str = "case study 000, `-t 96`: average:1008730";
const COURSE: &str =
    "case study 000: \"peaks at 12 processes, plateaus until 24, and then rapidly declines\"";

const WHY_PEAK: &str = "tasks saturate the mutex as soon as their own work no longer hides it, and \
     the simulated mmap and munmap are short: 0.6 µs an iteration; with 286 ns more a call the \
     peak begins at 8";

const fn at(tasks: usize) -> Work {
    Work::processes("mmap1", Preset::FREEBSD_DI, tasks)
}

fn rows(lab: &Lab) -> Result<Vec<Row>, Failure> {
    let seed = |figure, quote, band| Aim::Published {
        figure,
        quote,
        band,
    };
    let rows = [
        Row::new(
            lab,
            "12 processes",
            seed(1_719_430.0, PEAK, Band::SATURATED),
            |world| world.of(at(12)),
        )
        .map(|row| row.unit(Unit::Rate)),
        Row::new(
            lab,
            "24 over 12 processes",
            seed(1.0, COURSE, Band::SOCKETS),
            |world| world.ratio(at(24), at(12)),
        ),
        Row::new(
            lab,
            "96 processes",
            seed(1_008_730.0, ALL, Band::SATURATED),
            |world| world.of(at(96)),
        )
        .map(|row| row.unit(Unit::Rate)),
        Row::new(
            lab,
            "96 over 12 processes",
            seed(0.587, ALL, Band::SOCKETS),
            |world| world.ratio(at(96), at(12)),
        ),
        Row::new(
            lab,
            "where the peak begins, processes",
            seed(12.0, COURSE, Band::KNEE),
            peak,
        )
        .map(|row| row.why(WHY_PEAK)),
    ];
    Ok(rows.into_iter().flatten().collect())
}

/// The fewest tasks with a rate within the plateau.
fn peak(world: &World) -> Option<Vec<f64>> {
    let curve: Option<Vec<Vec<f64>>> = COUNTS
        .map(|tasks| world.of(at(tasks)))
        .into_iter()
        .collect();
    let curve = curve?;
    let seeds = 0..curve[0].len();
    let begins = seeds.map(|seed| {
        let highest = curve.iter().map(|rates| rates[seed]).fold(0.0, f64::max);
        let first = curve
            .iter()
            .position(|rates| rates[seed] >= PLATEAU * highest);
        COUNTS[first.unwrap_or(0)] as f64
    });
    Some(begins.collect())
}
