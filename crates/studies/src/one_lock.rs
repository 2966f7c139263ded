//! S2: one lock over every change of a mapping, and delayed invalidation in its place (case study
//! 000's first step).

use super::{Aim, Lab, Outcome, Row, System, Unit, Work};
use baselines::Preset;
use bench::Failure;

pub const SYSTEM: System = System {
    name: "S2",
    about: "pvh_global_lock, and delayed invalidation in its place: reclaim1 and mmap1 by \
            processes",
    machines: &["freebsd-96"],
    rows,
    beyond: &[],
};

/// Processes that unmap.
const UNMAP: [usize; 3] = [1, 12, 96];
const RECLAIM: usize = 96;

const WAITS: &str = "case study 000, the change of 2016: DI \"does not block entered thread when \
     pmap_remove_all() … are executed in parallel\"; half as much waiting at most";
const BLOCKED: &str = "case study 000: with pvh_global_lock, a reclaimer stops all: \"the third \
     processor is executing the page daemon\"; a tenth of the time at least";
const NARROWED: &str = "case study 000: \"a much larger section of code was previously globally \
     serialized on the pvh lock and this narrows it down\"; below 1.2× is no difference";

const WHY_MMAP1: &str = "FreeBSD 10 takes pvh_global_lock for reading where it unmaps (10.4, \
     sys/amd64/amd64/pmap.c), so unmapping is not serialized: a reader writes the lock's line \
     twice, delayed invalidation takes and releases a mutex twice. Only removals by the reverse \
     map shut all out, and mmap1 has none";

const fn unmap(preset: Preset, tasks: usize) -> Work {
    Work::processes("mmap1", preset, tasks)
}

const fn reclaim(preset: Preset) -> Work {
    Work::processes("reclaim1", preset, RECLAIM).watched()
}

/// The part of the time that the global lock was waited for.
fn global(outcome: &Outcome) -> Option<f64> {
    Some(outcome.waiting("pvh global")? + outcome.waiting("invl gen")?)
}

fn rows(lab: &Lab) -> Result<Vec<Row>, Failure> {
    let words = |quote, low, high| Aim::Words { quote, low, high };
    let [pvh, di] = [Preset::FREEBSD_PVH, Preset::FREEBSD_DI].map(reclaim);
    let what = |of| format!("reclaim1, {RECLAIM} processes: {of}");
    let waiting = Row::new(
        lab,
        what("time waited for pvh_global_lock"),
        words(BLOCKED, 0.1, 1.0),
        |world| world.each(pvh, global),
    );
    let left = Row::new(
        lab,
        what("time waited for the DI mutex, over that"),
        words(WAITS, 0.0, 0.5),
        |world| world.ratio_of(di, pvh, global),
    );
    let mut rows: Vec<Row> = waiting
        .map(|row| row.unit(Unit::Share))
        .into_iter()
        .collect();
    rows.extend(left);
    for tasks in UNMAP {
        let what = format!(
            "mmap1, {}: DI over pvh",
            unmap(Preset::FREEBSD_DI, tasks).mode.count(tasks)
        );
        let aim = words(NARROWED, 1.0 / 1.2, f64::INFINITY);
        let row = Row::new(lab, what, aim, |world| {
            let side = |preset| unmap(preset, tasks);
            world.ratio(side(Preset::FREEBSD_DI), side(Preset::FREEBSD_PVH))
        });
        rows.extend(row.map(|row| row.why(WHY_MMAP1)));
    }
    Ok(rows)
}
