//! A run on this computer, in parts unwatched and watched.

use super::Subject;
use crate::harness::{Failure, Progress, Reading, Running, Sample, interrupt, measure};
use stats::environment::Environment;
use stats::verdict::hodges_lehmann;

/// An observer of a run.
pub trait Probe {
    /// Its observations.
    type Seen;

    /// Watches from now on.
    fn start(&mut self) -> Result<(), Failure>;

    /// Stops watching; returns the observations. The tasks are still there.
    fn seen(self) -> Result<Self::Seen, Failure>;
}

/// A run.
pub struct Runs<T> {
    /// Operations a second of the unwatched parts.
    pub unwatched: f64,
    pub watched: f64,
    /// The share of its rate that it lost while it was watched, as an interval of 95 %; none if
    /// there are too few samples.
    pub cost: Option<[f64; 2]>,
    /// Seconds it was watched.
    pub seconds: f64,
    /// The machine, with the load of others before and after.
    pub machine: Environment,
    /// The observations.
    pub seen: T,
}

/// Measures the plan with nothing watching: operations a second. The progress goes on with the
/// watched run; it ends, and there is no rate, if the user interrupts.
pub fn unwatched(
    subject: &Subject<'_>,
    progress: &mut Box<dyn Progress>,
) -> Result<Option<f64>, Failure> {
    let Subject { plan, schedule, .. } = subject;
    progress.point(&format!("{}, unwatched", plan.workload.name()));
    let outcome = measure(subject.system.target(), plan, schedule, progress)?;
    let rate = outcome.average().filter(|_| !outcome.interrupted);
    match rate {
        Some(_) => progress.point(&format!("{}, watched", plan.workload.name())),
        None => progress.finish(),
    }
    Ok(rate)
}

/// Runs the plan unwatched, watched, and unwatched again, by the schedule each: watching slows the
/// run, and the rates say by how much. A drift of the machine does not look like a cost. None if
/// the user interrupts before there is something to see.
pub fn both<P: Probe>(
    subject: &Subject<'_>,
    probe: impl FnOnce(&dyn Running) -> Result<P, Failure>,
) -> Result<Option<Runs<P::Seen>>, Failure> {
    let Subject { plan, schedule, .. } = subject;
    let mut machine = (subject.machine)();
    let parts = u64::from(schedule.warmup) + 3 * u64::from(schedule.samples);
    let progress = (subject.bars)(parts, "samples");
    let name = plan.workload.name();
    progress.point(&format!("{name}, unwatched"));
    let mut running = subject.system.target().start(plan)?;
    let rest = |running: &mut dyn Running, samples: u32| -> Result<Vec<Sample>, Failure> {
        let read = |running: &dyn Running| Reading::of(running, plan.tasks, schedule.exactness());
        let mut before = read(running);
        let mut taken = Vec::new();
        for _ in 0..samples {
            running.advance(schedule.duration);
            progress.step();
            running.check()?;
            let after = read(running);
            taken.push(Sample::between(&before, &after, plan.width() / plan.tasks));
            before = after;
        }
        Ok(taken)
    };
    rest(&mut *running, schedule.warmup)?;
    let first = rest(&mut *running, schedule.samples)?;
    if interrupt::pending().is_some() {
        progress.finish();
        return Ok(None);
    }
    progress.point(&format!("{name}, watched"));
    let mut probe = probe(&*running)?;
    probe.start()?;
    let watched = rest(&mut *running, schedule.samples);
    let seen = probe.seen();
    let (watched, seen) = (watched?, seen?);
    let second = match interrupt::pending() {
        Some(_) => Vec::new(),
        None => rest(&mut *running, schedule.samples)?,
    };
    progress.finish();
    match interrupt::pending() {
        Some(_) => drop(running),
        None => running.stop()?,
    }
    machine.observe_after();
    let unwatched: Vec<f64> = first.iter().chain(&second).map(|one| one.total).collect();
    let rates: Vec<f64> = watched.iter().map(|one| one.total).collect();
    Ok(Some(Runs {
        machine,
        unwatched: mean(&unwatched),
        watched: mean(&rates),
        cost: cost(&unwatched, &rates),
        seconds: watched.iter().map(|one| one.seconds).sum(),
        seen,
    }))
}

/// The share of the rate that was lost, as an interval of 95 %.
fn cost(unwatched: &[f64], watched: &[f64]) -> Option<[f64; 2]> {
    const ALPHA: f64 = 0.05;
    let mut all = unwatched.iter().chain(watched);
    if watched.is_empty() || all.any(|&rate| rate <= 0.0) {
        return None;
    }
    let ratio = hodges_lehmann(unwatched, watched, ALPHA);
    let interval = [1.0 - ratio.high, 1.0 - ratio.low];
    ratio.is_bounded().then_some(interval)
}

fn mean(rates: &[f64]) -> f64 {
    rates.iter().sum::<f64>() / rates.len().max(1) as f64
}
