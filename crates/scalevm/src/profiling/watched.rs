//! A run on this computer, unwatched and then watched.

use crate::harness::{Failure, Plan, Running, Schedule, Target, interrupt, measure};
use crate::output::json;
use crate::output::progress::Progress;
use stats::environment::Environment;

/// What watches a run.
pub trait Probe {
    /// What it has seen.
    type Seen;

    /// Watches from now on.
    fn start(&mut self) -> Result<(), Failure>;

    /// Stops watching; what was seen. The tasks are still there.
    fn seen(self) -> Result<Self::Seen, Failure>;
}

/// Both runs.
pub struct Runs<T> {
    /// Operations a second of the unwatched one.
    pub unwatched: f64,
    /// And of the watched one.
    pub watched: f64,
    /// Seconds it was watched.
    pub seconds: f64,
    /// The machine, with the load of others before and after.
    pub machine: Environment,
    /// What was seen.
    pub seen: T,
}

/// Measures `plan` first and watches it then, both by `schedule`: watching disturbs what
/// it sees, and the rates say by how much. None if the user interrupts before there is
/// something to see.
pub fn both<P: Probe>(
    target: &dyn Target,
    plan: &Plan,
    schedule: &Schedule,
    probe: impl FnOnce(&dyn Running) -> Result<P, Failure>,
) -> Result<Option<Runs<P::Seen>>, Failure> {
    let mut machine = json::machine();
    let samples = 2 * schedule.total().unwrap_or(0);
    let mut progress = Progress::new(samples, "samples");
    progress.point(&format!("{}, unwatched", plan.workload.name()));
    let outcome = measure(target, plan, schedule, &mut progress)?;
    let Some(unwatched) = outcome.average().filter(|_| !outcome.interrupted) else {
        progress.finish();
        return Ok(None);
    };
    progress.point(&format!("{}, watched", plan.workload.name()));
    let mut running = target.start(plan)?;
    let rest = |running: &mut dyn Running, samples: u32| -> Result<(), Failure> {
        for _ in 0..samples {
            running.advance(schedule.duration);
            progress.step();
            running.check()?;
        }
        Ok(())
    };
    rest(&mut *running, schedule.warmup)?;
    let mut probe = probe(&*running)?;
    let (mut before, mut after) = (vec![0; plan.tasks], vec![0; plan.tasks]);
    probe.start()?;
    running.counts(&mut before);
    let from = running.now();
    let checked = rest(&mut *running, schedule.samples);
    running.counts(&mut after);
    let seconds = (running.now() - from).as_secs_f64();
    let seen = probe.seen();
    progress.finish();
    checked?;
    let seen = seen?;
    match interrupt::pending() {
        Some(_) => drop(running),
        None => running.stop()?,
    }
    let done: u64 = after
        .iter()
        .zip(&before)
        .map(|(a, b)| a.wrapping_sub(*b))
        .sum();
    machine.observe_after();
    Ok(Some(Runs {
        machine,
        unwatched,
        watched: done as f64 / seconds.max(1e-9),
        seconds,
        seen,
    }))
}
