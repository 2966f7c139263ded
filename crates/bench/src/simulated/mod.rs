//! scalevm's own VM on a simulated machine.
//!
//! A sample is a run of its own: a fresh machine with the next seed, warmed up, then
//! measured for a span of simulated time. Nothing of this computer enters the result.

mod attribution;
mod private;
mod run;

pub use attribution::{Attribution, Share};
use private::private;

use crate::harness::{Bars, Failure, Film, Plan, Progress, Running, Target, Times, interrupt};
use crate::ours::{Design, SWAP_PER_TASK, can_run};
use crate::system::{self, On};
use baselines::selected::{Preset, Selected};
use run::Run;
pub use run::Seen;
use sim::Sim;
use sim::profile::Profile;
use stats::record::Subject;
use std::time::Duration;
use vm::{Best, Options};

/// The expected error of a simulated figure, printed beside it.
pub const BANDS: &str = "expected error: ±35 % for a saturated lock, ±25 % for a drop at a socket boundary, \
                         ±10 % for disjoint work within a socket; rankings hold from a factor of 1.5 on \
                         (docs/simulator)";

/// Our VM on a simulated machine as a target.
#[derive(Clone)]
pub struct Simulated {
    /// How the VM is built.
    pub preset: Preset,
    /// The machine.
    pub profile: Profile,
    /// The first sample's seed; the next ones count up.
    pub seed: u64,
}

impl Target for Simulated {
    fn start(&self, plan: &Plan) -> Result<Box<dyn Running>, Failure> {
        self.check(plan)?;
        Ok(Box::new(Samples {
            target: self.clone(),
            plan: *plan,
            counts: vec![0; plan.tasks],
            now: Duration::ZERO,
            failure: None,
        }))
    }

    fn complete(&self, plan: &Plan, sample: u32) -> Result<Times, Failure> {
        self.check(plan)?;
        let seed = self.seed + u64::from(sample);
        let target = Simulated {
            seed,
            ..self.clone()
        };
        target.with_run(plan, Run::complete)
    }

    fn play(&self, plan: &Plan, film: &'static Film) -> Result<(), Failure> {
        self.check(plan)?;
        self.with_run(plan, |run| run.until(|| film.is_over()))
    }
}

impl Simulated {
    /// Describes `plan` on it.
    pub fn subject(&self, plan: &Plan) -> Subject {
        Subject {
            profile: Some(self.profile.name.clone()),
            topology: Some(self.profile.topology.shape()),
            seed: Some(self.seed),
            ..system::subject(plan, On::Sim, Some(self.preset))
        }
    }

    fn check(&self, plan: &Plan) -> Result<(), Failure> {
        can_run(plan)?;
        let cpus = self.profile.cpus();
        if plan.tasks > cpus {
            return Err(Failure::Unavailable(format!(
                "{} tasks: {} has {cpus} CPUs, and each task is one",
                plan.tasks, self.profile.name
            )));
        }
        Ok(())
    }

    /// One run with the seed: what each task did in `span`.
    pub fn sample(&self, plan: &Plan, span: Duration) -> Result<Vec<u64>, Failure> {
        self.check(plan)?;
        self.with_run(plan, |run| run.measure(span))
    }

    /// Where the time goes, and the range of rates over the corners of the machine.
    pub fn reasons(
        &self,
        plan: &Plan,
        span: Duration,
        bars: Bars,
    ) -> Result<(Attribution, [f64; 2]), Failure> {
        let progress = bars(1 + self.profile.corners().len() as u64, "runs");
        progress.point(&format!("{}, why", self.preset.name()));
        let attribution = self.attribute(plan, span);
        progress.step();
        let reasons = attribution.and_then(|one| Ok((one, self.corners(plan, span, &*progress)?)));
        progress.finish();
        reasons
    }

    /// The lowest and the highest rate over the corners of what nobody publishes of a
    /// machine (legs, arbitration), one run each.
    fn corners(
        &self,
        plan: &Plan,
        span: Duration,
        progress: &dyn Progress,
    ) -> Result<[f64; 2], Failure> {
        let mut range = [f64::INFINITY, 0.0];
        for profile in self.profile.corners() {
            interrupt::check()?;
            let corner = Simulated {
                profile,
                ..self.clone()
            };
            let done = corner.sample(plan, span)?.iter().sum::<u64>();
            let rate = done as f64 / span.as_secs_f64();
            range = [rate.min(range[0]), rate.max(range[1])];
            progress.step();
        }
        Ok(range)
    }

    /// Where the time goes, by one run more with the locks watched.
    pub fn attribute(&self, plan: &Plan, span: Duration) -> Result<Attribution, Failure> {
        Ok(self.observe(plan, span)?.attribution)
    }

    /// One run with the locks watched.
    pub fn observe(&self, plan: &Plan, span: Duration) -> Result<Seen, Failure> {
        self.check(plan)?;
        self.with_run(plan, |run| run.watch(span, None))
    }

    /// One run with all that can be seen of it, a stack for each `period` nanoseconds.
    pub fn watch(&self, plan: &Plan, span: Duration, period: u64) -> Result<Seen, Failure> {
        self.check(plan)?;
        self.with_run(plan, |run| run.watch(span, Some(period)))
    }

    fn with_run<R>(
        &self,
        plan: &Plan,
        f: impl FnOnce(&mut Run) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        // The machine's, whoever uses it: an account per CPU has its share for each.
        let swap_pages = Some(SWAP_PER_TASK * self.profile.cpus() as u64);
        let mut run = match self.preset {
            Preset::Scalevm => self.begin::<Best>(
                plan,
                Options {
                    swap_pages,
                    ..Options::default()
                },
            ),
            preset => self.begin::<Selected>(
                plan,
                Options {
                    swap_pages,
                    ..preset.options()
                },
            ),
        }?;
        let result = f(&mut run)?;
        run.end()?;
        Ok(result)
    }

    fn begin<P: Design<Sim>>(&self, plan: &Plan, options: Options<Sim, P>) -> Result<Run, Failure> {
        Run::begin(plan, &self.profile, self.seed, self.preset, options)
    }
}

/// The runs of one measurement, one after the other.
struct Samples {
    target: Simulated,
    plan: Plan,
    counts: Vec<u64>,
    now: Duration,
    failure: Option<Failure>,
}

impl Running for Samples {
    fn counts(&self, into: &mut [u64]) {
        into.copy_from_slice(&self.counts);
    }

    fn now(&self) -> Duration {
        self.now
    }

    fn advance(&mut self, span: Duration) {
        match self.target.sample(&self.plan, span) {
            Ok(done) => {
                let pairs = self.counts.iter_mut().zip(done);
                pairs.for_each(|(count, done)| *count += done);
                self.now += span;
                self.target.seed += 1;
            }
            Err(failure) => self.failure = Some(failure),
        }
    }

    fn check(&mut self) -> Result<(), Failure> {
        self.failure.take().map_or(Ok(()), Err)
    }

    fn stop(mut self: Box<Self>) -> Result<(), Failure> {
        self.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Mode;

    /// What is seen of a run is that run, to the operation: watched figures may stand beside others.
    #[test]
    fn watching_takes_no_simulated_time() {
        let cases = [
            (
                "mmap1",
                Preset::FreebsdEpoch,
                "freebsd-96",
                24,
                Mode::Processes,
            ),
            (
                "mmap1",
                Preset::FreebsdDi,
                "freebsd-96",
                24,
                Mode::Processes,
            ),
            (
                "page_fault1",
                Preset::Scalevm,
                "freebsd-96",
                12,
                Mode::Threads,
            ),
            (
                "desktop",
                Preset::OpenbsdUnlocked,
                "pc-16c32t",
                8,
                Mode::Threads,
            ),
            ("fork1", Preset::Linux2639, "xeon-4s", 8, Mode::Processes),
        ];
        for (workload, preset, machine, tasks, mode) in cases {
            let target = Simulated {
                preset,
                profile: Profile::named(machine).expect("a machine"),
                seed: 1,
            };
            let plan = Plan {
                workload: workloads::find(workload).expect("a workload").into(),
                tasks,
                mode,
                count: None,
            };
            let span = Duration::from_micros(500);
            let unwatched: u64 = target.sample(&plan, span).expect("runs").iter().sum();
            let seen = target.observe(&plan, span).expect("runs");
            assert_eq!(seen.done, unwatched, "{workload} on {preset}");
            assert!(
                unwatched > 0 && !seen.rows.is_empty(),
                "{workload} on {preset}"
            );
            let sampled = target.watch(&plan, span, 1000).expect("runs");
            assert_eq!(
                sampled.done, unwatched,
                "{workload} on {preset}, with stacks"
            );
        }
    }
}
