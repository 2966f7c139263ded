//! A run on this computer, unwatched and then watched.

use super::Subject;
use crate::harness::{Failure, Progress, Reading, Running, Sample, interrupt, measure};
use stats::environment::Environment;

/// An observer of a run.
pub trait Probe {
    /// Its observations.
    type Seen;

    /// Watches from now on.
    fn start(&mut self) -> Result<(), Failure>;

    /// Stops watching; returns the observations. The tasks are still there.
    fn seen(self) -> Result<Self::Seen, Failure>;
}

/// Both runs.
pub struct Runs<T> {
    /// Operations a second of the unwatched one.
    pub unwatched: f64,
    pub watched: f64,
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

/// Measures the plan first and watches it then, both by the schedule: watching slows the run, and
/// the rates say by how much. None if the user interrupts before there is something to see.
pub fn both<P: Probe>(
    subject: &Subject<'_>,
    probe: impl FnOnce(&dyn Running) -> Result<P, Failure>,
) -> Result<Option<Runs<P::Seen>>, Failure> {
    let Subject { plan, schedule, .. } = subject;
    let mut machine = (subject.machine)();
    let samples = 2 * schedule.total().unwrap_or(0);
    let mut progress = (subject.bars)(samples, "samples");
    let Some(unwatched) = unwatched(subject, &mut progress)? else {
        return Ok(None);
    };
    let mut running = subject.system.target().start(plan)?;
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
    let read = |running: &dyn Running| Reading::of(running, plan.tasks, schedule.exactness());
    probe.start()?;
    let before = read(&*running);
    let checked = rest(&mut *running, schedule.samples);
    let after = read(&*running);
    let seen = probe.seen();
    progress.finish();
    checked?;
    let seen = seen?;
    match interrupt::pending() {
        Some(_) => drop(running),
        None => running.stop()?,
    }
    let whole = Sample::between(&before, &after);
    machine.observe_after();
    Ok(Some(Runs {
        machine,
        unwatched,
        watched: whole.total,
        seconds: whole.seconds,
        seen,
    }))
}
