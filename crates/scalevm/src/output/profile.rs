//! A profile, and the difference of two, as tables.

use super::table::{align_right, with_header};
use super::{percent, short, time};
use crate::harness::Plan;
use comfy_table::Table;
use profile::{Change, Difference, Lock, Profile};

/// Locks that cost less than this part of the tasks' time are counted, not shown.
const SHOWN: f64 = 0.001;
/// So many rows at most.
const ROWS: usize = 15;

/// Prints what a run has shown.
pub fn print(plan: &Plan, profile: &Profile) {
    println!(
        "{} ({}), {} on {}",
        plan.workload.name(),
        plan.workload.description(),
        plan.mode.count(plan.tasks),
        profile.subject.on
    );
    match (profile.rate_unwatched, profile.cost()) {
        (Some(unwatched), Some(cost)) => println!(
            "{} a second unwatched, {} watched: watching costs {:.0} %",
            short(unwatched),
            short(profile.rate),
            100.0 * cost
        ),
        _ => println!("{} a second", short(profile.rate)),
    }
    let all = profile.task_seconds();
    println!(
        "of {} of task time {:.0} % is busy, {:.0} % waits ({})",
        time(all),
        100.0 * profile.busy.total() / all,
        100.0 * profile.waits.total() / all,
        profile.clock
    );
    let shown: Vec<&Lock> = profile
        .locks
        .iter()
        .filter(|lock| lock.share >= SHOWN)
        .take(ROWS)
        .collect();
    if !shown.is_empty() {
        println!("{}", locks(&shown));
    }
    let others = profile.locks.len() - shown.len();
    if others > 0 {
        let share: f64 = profile.locks.iter().map(|lock| lock.share).sum::<f64>()
            - shown.iter().map(|lock| lock.share).sum::<f64>();
        let noun = if others == 1 {
            "other row"
        } else {
            "other rows"
        };
        println!("{others} {noun}: {}", percent(share));
    }
    println!("bottleneck: {}", profile.bottleneck);
}

/// What is doubtful or was not seen, on stderr: it is not data.
pub fn notes(notes: &[String]) {
    notes
        .iter()
        .for_each(|note| eprintln!("scalevm: note: {note}"));
}

/// A row for each lock and caller; waits that were seen and spinning apart.
fn locks(locks: &[&Lock]) -> Table {
    let mut table = with_header([
        "lock",
        "kind",
        "caller",
        "waits",
        "total",
        "mean",
        "worst",
        "waiting",
        "spinning",
        "of task time",
    ]);
    for lock in locks {
        let all = lock.wait + lock.spin;
        let part = |seconds: f64| percent(lock.share * seconds / all.max(f64::MIN_POSITIVE));
        table.add_row([
            lock.name.clone(),
            lock.kind.name().to_owned(),
            lock.caller.clone(),
            lock.contentions.to_string(),
            time(lock.wait),
            known(lock.mean),
            known(lock.worst),
            part(lock.wait),
            part(lock.spin),
            percent(lock.share),
        ]);
    }
    align_right(&mut table, 3..);
    table
}

/// Prints what changed from one profile to another.
pub fn print_difference(difference: &Difference) {
    let mut table = with_header([
        "lock",
        "kind",
        "caller",
        "before",
        "after",
        "change",
        "waits/s before",
        "after",
    ]);
    let changed = |change: &&Change| change.before.max(change.after) >= SHOWN;
    for change in difference.changes.iter().filter(changed).take(ROWS) {
        table.add_row([
            change.name.clone(),
            change.kind.name().to_owned(),
            change.caller.clone(),
            percent(change.before),
            percent(change.after),
            format!("{:+.1}", 100.0 * change.more()),
            short(change.contentions_before),
            short(change.contentions_after),
        ]);
    }
    if table.row_count() > 0 {
        align_right(&mut table, 3..);
        println!("{table}");
    }
    println!("{}", difference.sentence);
}

/// Nothing takes no time at all: it was not measured.
fn known(seconds: f64) -> String {
    match seconds > 0.0 {
        true => time(seconds),
        false => "–".into(),
    }
}
