//! Rows of the lower table.

use profile::{Thread, Wait};
use std::collections::{BTreeMap, HashMap};

/// A thread, or a process with all its threads. Times are seconds.
pub struct Task {
    pub id: u32,
    pub name: String,
    pub busy: f64,
    /// Held up, with something to do.
    pub waited: f64,
    /// What it waited for most; empty if it did not wait.
    pub main: String,
}

/// A row for each thread, the most active first.
pub fn threads(threads: &[Thread]) -> Vec<Task> {
    let row = |thread: &Thread| Task {
        id: thread.tid,
        name: thread.name.clone(),
        busy: thread.busy,
        waited: thread.held_up(),
        main: main(&thread.waits),
    };
    threads.iter().map(row).collect()
}

/// A row for each process, the most active first.
pub fn processes(threads: &[Thread]) -> Vec<Task> {
    let mut sums: BTreeMap<u32, Vec<&Thread>> = BTreeMap::new();
    for thread in threads {
        sums.entry(thread.pid).or_default().push(thread);
    }
    let mut rows = Vec::from_iter(
        sums.into_iter()
            .map(|(pid, threads)| process(pid, &threads)),
    );
    rows.sort_by(|a, b| (b.busy + b.waited).total_cmp(&(a.busy + a.waited)));
    rows
}

fn process(pid: u32, threads: &[&Thread]) -> Task {
    let mut waits: HashMap<(&str, bool), f64> = HashMap::new();
    for wait in threads.iter().flat_map(|thread| &thread.waits) {
        *waits.entry((&wait.what, wait.idle)).or_default() += wait.seconds;
    }
    let wait = |((what, idle), seconds): ((&str, bool), f64)| Wait {
        what: what.to_owned(),
        seconds,
        idle,
    };
    let mut waits = Vec::from_iter(waits.into_iter().map(wait));
    waits.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then(a.what.cmp(&b.what)));
    Task {
        id: pid,
        name: threads[0].process.clone(),
        busy: threads.iter().map(|thread| thread.busy).sum(),
        waited: threads.iter().map(|thread| thread.held_up()).sum(),
        main: main(&waits),
    }
}

/// What held it up most, or in what it slept if nothing did; `waits` are the longest first.
fn main(waits: &[Wait]) -> String {
    let held_up = waits.iter().find(|wait| !wait.idle);
    match (held_up, waits.first()) {
        (Some(wait), _) => wait.what.clone(),
        (None, Some(wait)) => format!("nothing to do ({})", wait.what),
        (None, None) => String::new(),
    }
}
