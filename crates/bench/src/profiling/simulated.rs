//! On a simulated machine: its accounts, the lock profile, and samples in virtual time.

use super::{names, own};
use crate::harness::{Failure, Plan};
use crate::simulated::{Attribution, Seen, Share, Simulated, partial};
use profile::{Kind, Lock, Profile, Stacks};
use sim::{SiteName, Spent};
use std::collections::HashMap;
use std::time::Duration;
use workloads::Feature;

/// About how many stacks are taken of a run.
const SAMPLES: u64 = 50_000;

/// Profiles `span` of one run; watching it costs no simulated time, so there is no other.
pub fn of(target: &Simulated, plan: &Plan, span: Duration) -> Result<Profile, Failure> {
    let tasks = plan.tasks;
    let period = (tasks as u64 * span.as_nanos() as u64 / SAMPLES).max(1);
    let seen = target.watch(plan, span, period)?;
    let seconds = seen.span.as_secs_f64();
    let task_seconds = seen.attribution.whole;
    let mut locks = own::locks(&seen.rows, task_seconds);
    locks.extend(lines(&seen.attribution, task_seconds));
    let Attribution {
        interrupts, memory, ..
    } = seen.attribution;
    let mut notes = vec![format!(
        "interrupts that flush translations: {:.1} % of the tasks' time; waiting for the bandwidth \
         of memory: {:.1} %",
        100.0 * interrupts,
        100.0 * memory
    )];
    notes.extend((!seen.is_whole).then(|| partial(plan)));
    notes.push(format!(
        "the rate: {}",
        target.expected(plan, &seen.attribution)
    ));
    let (busy, waits) = stacks(&seen, plan.workload.name());
    Ok(Profile {
        rate: Some(seen.done() as f64 / seconds),
        busy,
        waits,
        locks,
        bottleneck: seen.attribution.bottleneck(),
        notes,
        lived: plan
            .workload
            .uses(Feature::Recording)
            .then_some(task_seconds),
        ..Profile::new(target.subject(plan), seconds, "virtual time")
    })
}

/// The lines that CPUs waited for, as locks: each holds up the CPUs that want it.
fn lines(attribution: &Attribution, task_seconds: f64) -> impl Iterator<Item = Lock> {
    attribution.lines.iter().map(move |line: &Share| {
        let mut lock = Lock::new(&line.what, Kind::Line, "");
        lock.add_waits(line.count, (line.wait + line.hold) * task_seconds, 0.0);
        lock.spin = line.spin * task_seconds;
        lock.share_of(task_seconds)
    })
}

/// Stacks of all CPU time, and those of all waiting: for lines, spinning and blocked.
fn stacks(seen: &Seen, workload: &str) -> (Stacks, Stacks) {
    let (mut busy, mut waits) = (Stacks::default(), Stacks::default());
    let mut names: HashMap<usize, Vec<String>> = HashMap::new();
    for sample in &seen.samples {
        let mut frames = vec![workload.to_owned()];
        for &address in sample.stack.iter().rev() {
            let functions = names.entry(address).or_insert_with(|| functions(address));
            frames.extend(functions.iter().cloned());
        }
        if sample.stack.is_empty() {
            frames.push("[has not come back yet]".into());
        }
        let state = match (sample.spent, &sample.line) {
            (Spent::Working, _) => None,
            (Spent::Fetching, Some(line)) => {
                let whole = line.split(" + ").next().unwrap_or(line);
                Some(format!("[waits for the line of {whole}]"))
            }
            (Spent::Fetching, None) => Some("[waits for its stores]".to_owned()),
            (Spent::Spinning, _) => Some("[spins]".to_owned()),
            (Spent::Interrupted, _) => {
                Some("[flushes for others, or waits for their flushes]".to_owned())
            }
            (Spent::Memory, _) => Some("[waits for memory]".to_owned()),
            (Spent::Blocked, _) => Some("[blocked]".to_owned()),
            (Spent::Queued, _) => Some("[waits for a CPU]".to_owned()),
        };
        let seconds = sample.nanoseconds as f64 / 1e9;
        let waiting = state.is_some();
        frames.extend(state);
        let stack = || frames.iter().map(String::as_str);
        if waiting {
            waits.add(stack(), seconds);
        }
        if !matches!(sample.spent, Spent::Blocked | Spent::Queued) {
            busy.add(stack(), seconds);
        }
    }
    (busy, waits)
}

/// The functions at an address, the outermost first: those of the workload, the VM and
/// its locks, by their modules. Their callers, and the simulator's own, are left out.
fn functions(address: usize) -> Vec<String> {
    let mut names: Vec<String> = SiteName::resolve(address)
        .iter()
        .filter_map(qualified)
        .collect();
    names.reverse();
    names
}

/// A function's path; none for functions that are not simulated.
fn qualified(name: &SiteName) -> Option<String> {
    const SIMULATED: [&str; 4] = ["workloads", "vm", "sync", "baselines"];
    let (package, path) = names::qualified(&name.function, &name.place)?;
    let is_ours = name.place.contains("crates/");
    (is_ours && SIMULATED.contains(&package)).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_named_by_their_modules() {
        let name = |function: &str, place: &str| {
            qualified(&SiteName {
                function: function.into(),
                place: place.into(),
            })
        };
        let unmap = name(
            "<A<B> as C>::remove<sim::Sim, fn() -> vm::Best>",
            "/x/crates/vm/src/space/unmap.rs:45",
        );
        assert_eq!(unmap.as_deref(), Some("vm::space::unmap::remove"));
        let run = name("workloads::mmap1::run", "crates/workloads/src/mmap1.rs:9");
        assert_eq!(run.as_deref(), Some("workloads::mmap1::run"));
        let top = name("lock", "crates/sync/src/watch/mod.rs:9");
        assert_eq!(top.as_deref(), Some("sync::watch::lock"));
        assert_eq!(name("touch", "crates/sim/src/engine/access.rs:1"), None);
        assert_eq!(
            name("call_once", "/rustc/1/library/core/src/ops.rs:1"),
            None
        );
        assert_eq!(name("main", ""), None);
    }
}
