//! scalevm's own VM on a simulated machine.
//!
//! A sample is a run of its own: a fresh machine with the next seed, warmed up, then
//! measured for a span of simulated time. Nothing of this computer enters the result.

mod attribution;
mod private;
mod run;

pub use attribution::{Attribution, Share};
use private::private;

use crate::harness::{Failure, Film, Plan, Running, Target, Times};
use crate::ours::{Design, SWAP_PER_TASK, can_run};
use baselines::selected::{Preset, Selected};
use run::Run;
pub use run::Seen;
use sim::Sim;
use sim::profile::Profile;
use std::time::Duration;
use vm::{Best, Options};

/// How far to trust a simulated figure, to be said beside it.
pub const BANDS: &str = "to be trusted: a saturated lock ± 35 %, a drop at a socket boundary ± 25 %, \
                         disjoint work within a socket ± 10 %, a ranking from 1.5 times apart \
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
    /// The machine, and the first seed.
    pub fn machine(&self) -> (&Profile, u64) {
        (&self.profile, self.seed)
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

    /// The lowest and the highest rate over the corners of what nobody publishes of a
    /// machine (legs, arbitration), one run each.
    pub fn corners(&self, plan: &Plan, span: Duration) -> Result<[f64; 2], Failure> {
        let mut range = [f64::INFINITY, 0.0];
        for profile in self.profile.corners() {
            let corner = Simulated {
                profile,
                ..self.clone()
            };
            let done = corner.sample(plan, span)?.iter().sum::<u64>();
            let rate = done as f64 / span.as_secs_f64();
            range = [rate.min(range[0]), rate.max(range[1])];
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
