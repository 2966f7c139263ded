//! S9: locks of PV lists that pages share, and a one-byte mutex in each page (case study 002).

use super::{Aim, Beyond, Lab, Outcome, Row, System, Unit, Work};
use baselines::Preset;
use bench::Failure;
use bench::simulated::Band;

pub const SYSTEM: System = System {
    name: "S9",
    about: "hashed locks of PV lists, and a one-byte mutex in each page: a build, and first \
            touches",
    machines: &["pc-16c32t"],
    rows,
    beyond: &[Beyond {
        after: build(Preset::FREEBSD_OBM),
        why: None,
    }],
};

const TASKS: usize = 40;
const CPUS: usize = 32;
const STOCK: Work = build(Preset::FREEBSD_LOCKLESS_DI);
const PATCHED: Work = build(Preset::FREEBSD_OBM);
const TOUCH_STOCK: Work = touch(Preset::FREEBSD_LOCKLESS_DI);
const TOUCH_PATCHED: Work = touch(Preset::FREEBSD_OBM);

const SYS: &str = "case study 002, buildkernel -s -j 40: 307.43 sys, patched, of 567.74 sys, stock";
const REAL: &str =
    "case study 002, buildkernel -s -j 40: 227.86 real, patched, of 237.53 real, stock";
const NO_ALIASING: &str = "case study 002: \"there is no aliasing and no false blocking on other \
     page pv list\"; a tenth of what stock waits, at most";
const BLOCKED: &str = "case study 002: stock has \"aliasing and … false blocking\"; a tenth of the \
     time at least, where all tasks touch pages of their own";
const fn build(preset: Preset) -> Work {
    Work::processes("build", preset, TASKS).over(CPUS).jobs(3)
}

const fn touch(preset: Preset) -> Work {
    Work::processes("page_fault1", preset, CPUS).watched()
}

/// The part of the time that tasks waited for a lock of PV lists of either kind.
fn lists(outcome: &Outcome) -> Option<f64> {
    Some(outcome.waiting("pv list lock")? + outcome.waiting("page pv")?)
}

fn rows(lab: &Lab) -> Result<Vec<Row>, Failure> {
    let seed = |figure, quote| Aim::Published {
        figure,
        quote,
        band: Band::SATURATED,
    };
    let words = |quote, low, high| Aim::Words { quote, low, high };
    let rows = [
        Row::new(
            lab,
            "build, 40 processes on 32 CPUs: sys, patched over stock",
            seed(307.43 / 567.74, SYS),
            |world| world.ratio_of(PATCHED, STOCK, Outcome::sys),
        ),
        Row::new(
            lab,
            "build, 40 processes on 32 CPUs: real, patched over stock",
            seed(227.86 / 237.53, REAL),
            |world| world.ratio_of(PATCHED, STOCK, Outcome::real),
        ),
        Row::new(
            lab,
            "page_fault1, 32 processes: time waited for PV lists, stock",
            words(BLOCKED, 0.1, 1.0),
            |world| world.each(TOUCH_STOCK, lists),
        )
        .map(|row| row.unit(Unit::Share)),
        Row::new(
            lab,
            "page_fault1, 32 processes: time waited for PV lists, patched over stock",
            words(NO_ALIASING, 0.0, 0.1),
            |world| world.ratio_of(TOUCH_PATCHED, TOUCH_STOCK, lists),
        ),
    ];
    Ok(rows.into_iter().flatten().collect())
}
