//! The locks of scalevm's own VM, as its lock profile has seen them.

use profile::{Kind, Lock, Stacks};
use sync::watch::profile::Row;

/// The rows that were waited for, the costliest first.
pub fn locks(rows: &[Row], task_seconds: f64) -> Vec<Lock> {
    let waited = rows.iter().filter(|row| row.contended > 0);
    let mut locks: Vec<Lock> = waited
        .map(|row| {
            let mut lock = Lock::new(row.class, Kind::Own, &place(row));
            let seconds = |nanoseconds: u64| nanoseconds as f64 / 1e9;
            lock.acquisitions = Some(row.acquisitions);
            lock.add_waits(row.contended, seconds(row.wait), seconds(row.max_wait));
            lock.share_of(task_seconds)
        })
        .collect();
    locks.sort_by(|a, b| b.share.total_cmp(&a.share));
    locks
}

/// Their waits as stacks: the workload, the lock, the place.
pub fn waits(rows: &[Row], workload: &str) -> Stacks {
    let mut stacks = Stacks::default();
    for row in rows.iter().filter(|row| row.wait > 0) {
        stacks.add([workload, row.class, &place(row)], row.wait as f64 / 1e9);
    }
    stacks
}

/// The place where a row's lock is taken.
fn place(row: &Row) -> String {
    format!("{}:{}", from_crate(row.file), row.line)
}

/// A path of this repository's from the crate on.
pub fn from_crate(path: &str) -> &str {
    path.rsplit_once("crates/").map_or(path, |(_, path)| path)
}
