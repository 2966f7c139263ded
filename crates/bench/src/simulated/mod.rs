//! scalevm's own VM on a simulated machine.
//!
//! A sample is a run of its own: a fresh machine with the next seed, warmed up, then
//! measured for a span of simulated time. The result does not depend on this computer.

mod attribution;
mod band;
mod cause;
mod compared;
mod conditions;
mod mechanism;
mod private;
mod run;
mod timed;
mod whatif;
mod window;

pub use attribution::{Attribution, Share};
pub use band::Band;
pub use cause::Cause;
pub use compared::{Compared, Expected};
pub use conditions::{Conditions, DISTURBANCES, Fitted, Placement};
pub use mechanism::Mechanism;
use private::private;

use crate::harness::{Bars, Failure, Film, Plan, Progress, Running, Target, Times, interrupt, say};
use crate::on::{On, subject};
use crate::ours::{can_run, scheduler, swap_pages};
use crate::points::Workers;
use baselines::Preset;
use run::Run;
pub use run::Seen;
use sim::Sim;
use sim::profile::MachineProfile;
use stats::record::Subject;
use std::collections::BTreeMap;
use std::time::Duration;
use timed::timed;
use vm::{Options, System};
pub use whatif::{Answer, Variant, WhatIf};
pub use window::Window;
use workloads::Timed;

/// A warning on windows that are shorter than an iteration.
pub fn partial(plan: &Plan) -> String {
    format!(
        "windows are shorter than an iteration of {}, so what ends it may be missing from the \
         rate; without --duration they hold whole iterations",
        plan.workload.name()
    )
}

/// The most machines that are simulated at once: each holds the memory that its tasks have touched,
/// up to a gigabyte in short runs.
pub const AT_ONCE: usize = 16;
/// The number of points at a time where runs may hold whole iterations: 128 processes touch 6 GB in
/// one.
pub const AT_ONCE_WHOLE: usize = 4;

/// Operations of a task alone that a window holds if it may; a rate from fewer depends on where the
/// window cuts them.
const OPERATIONS: u32 = 20;
/// Operations by which it is known how long one takes.
const TRIED: u32 = 32;
/// The longest window that is chosen for the length of operations.
const LONGEST: Duration = Duration::from_millis(40);

/// Operations in a window whose rate must not depend on one more or less.
pub const COUNTED: u64 = 200;
/// The longest window for these.
const MOST_COUNTED: Duration = Duration::from_secs(10);
/// The most by which a window becomes longer at a time: the first operations may be slow ones.
const MOST_LONGER: f64 = 16.0;

/// Tasks per CPU at most.
const MOST_PER_CPU: usize = 32;

/// Scalevm's VM on a simulated machine as a target.
#[derive(Clone)]
pub struct Simulated {
    /// How the VM is built.
    pub preset: Preset,
    /// The machine.
    pub profile: MachineProfile,
    /// The first sample's seed; the next ones count up.
    pub seed: u64,
    /// What the system does without.
    pub without: Vec<Cause>,
    /// The rest.
    pub conditions: Conditions,
}

impl Target for Simulated {
    fn start(&self, plan: &Plan) -> Result<Box<dyn Running>, Failure> {
        self.check(plan)?;
        Ok(Box::new(Samples {
            target: self.clone(),
            plan: *plan,
            counts: vec![0; plan.tasks],
            now: Duration::ZERO,
            timed: Timed::default(),
            partial: false,
            bottleneck: None,
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
    /// The VM built as `preset` on the machine of `profile`, under the usual conditions.
    pub fn new(preset: Preset, profile: MachineProfile, seed: u64) -> Self {
        Simulated {
            preset,
            profile,
            seed,
            without: Vec::new(),
            conditions: Conditions::default(),
        }
    }

    /// Describes `plan` on it.
    pub fn subject(&self, plan: &Plan) -> Subject {
        Subject {
            profile: Some(self.profile.name.clone()),
            topology: Some(self.profile.topology.shape()),
            scheduler: self
                .is_scheduled(plan)
                .then(|| scheduler::of::<Sim>(self.preset).name.to_owned()),
            seed: Some(self.seed),
            ..subject(plan, On::Sim, Some(self.preset))
        }
    }

    /// The length of windows for `plan`: at least `least`, and longer where operations are long.
    pub fn window(&self, plan: &Plan, least: Duration) -> Result<Duration, Failure> {
        let alone = Plan {
            tasks: 1,
            count: Some(TRIED.into()),
            ..*plan
        };
        let taken = self.complete(&alone, 0)?.real;
        Ok(least.max((taken * OPERATIONS / TRIED).min(LONGEST)))
    }

    /// This system on a machine with as many more sockets as `tasks` tasks need.
    ///
    /// # Errors
    /// No such machine is possible.
    pub fn grown(&self, tasks: usize) -> Result<Self, Failure> {
        let mut grown = self.clone();
        if tasks > self.profile.cpus() {
            let (cores, threads) = (self.profile.topology.cores, self.profile.topology.threads);
            let sockets = tasks.div_ceil(cores * threads);
            let larger = self.profile.with_topology(sockets, cores, threads);
            grown.profile = larger.map_err(|error| Failure::Unavailable(error.to_string()))?;
        }
        Ok(grown)
    }

    /// The rate that `tasks` independent tasks would have, as a multiple of one task's: threads
    /// that share a core are slower than one alone.
    pub fn linear(&self, tasks: usize) -> f64 {
        let mut cores: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for task in 0..tasks.min(self.profile.cpus()) {
            let cpu = self.conditions.place.cpu(&self.profile.topology, task);
            let place = self.profile.place(cpu);
            *cores.entry((place.socket, place.core)).or_default() += 1;
        }
        let speed = |&threads: &usize| match threads {
            1 => 1.0,
            _ => threads as f64 * self.profile.core.smt,
        };
        cores.values().map(speed).sum()
    }

    fn check(&self, plan: &Plan) -> Result<(), Failure> {
        can_run(plan)?;
        let most = MOST_PER_CPU * self.profile.cpus();
        if plan.tasks > most {
            return Err(Failure::Unavailable(format!(
                "{} tasks: {} has {} CPUs, and each runs at most {MOST_PER_CPU} tasks",
                plan.tasks,
                self.profile.name,
                self.profile.cpus()
            )));
        }
        Ok(())
    }

    /// Returns true if a scheduler deals the tasks out: that of the preset's system. Otherwise each
    /// task has a CPU of its own.
    pub fn is_scheduled(&self, plan: &Plan) -> bool {
        plan.needs_scheduler(self.profile.cpus())
    }

    /// One run with the seed.
    pub fn sample(&self, plan: &Plan, span: Duration) -> Result<Window, Failure> {
        self.check(plan)?;
        self.with_run(plan, |run| run.measure(span))
    }

    /// One run, over a span that is at least `least`, and long enough for `operations` of all
    /// tasks, if ten seconds are.
    pub fn counted(
        &self,
        plan: &Plan,
        least: Duration,
        operations: u64,
    ) -> Result<Window, Failure> {
        let mut span = least;
        loop {
            let window = self.sample(plan, span)?;
            let counted: u64 = window.counts.iter().sum();
            if counted >= operations || span >= MOST_COUNTED {
                return Ok(window);
            }
            // A little more than it takes at this rate.
            let longer = 1.1 * operations as f64 / counted.max(1) as f64;
            span = span.mul_f64(longer.min(MOST_LONGER)).min(MOST_COUNTED);
        }
    }

    /// Where the time goes, and the range of rates over the corners (the extremes of its
    /// unpublished properties) of the machine.
    pub fn reasons(
        &self,
        plan: &Plan,
        span: Duration,
        bars: Bars,
    ) -> Result<(Attribution, [f64; 2]), Failure> {
        let progress = bars(1 + self.profile.corners().len() as u64, "runs");
        progress.point(&format!("{}, why", self.preset.name));
        let attribution = self.attribute(plan, span);
        progress.step();
        let reasons = attribution.and_then(|one| Ok((one, self.corners(plan, span, &*progress)?)));
        progress.finish();
        reasons
    }

    /// The lowest and the highest rate over the corners of a machine's unpublished properties (the
    /// one-way latencies of a line's transfer, arbitration), one run each.
    fn corners(
        &self,
        plan: &Plan,
        span: Duration,
        progress: &dyn Progress,
    ) -> Result<[f64; 2], Failure> {
        let corners = self.profile.corners();
        let rate = |profile: &MachineProfile| {
            let corner = Simulated {
                profile: profile.clone(),
                ..self.clone()
            };
            let window = corner.sample(plan, span);
            progress.step();
            window
        };
        let mut range = [f64::INFINITY, 0.0];
        Workers::here(AT_ONCE_WHOLE).run(&corners, rate, |_, window| {
            let rate = window?.rate();
            range = [rate.min(range[0]), rate.max(range[1])];
            Ok::<_, Failure>(())
        })?;
        interrupt::check()?;
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
        // As much as the machine's CPUs need, however many tasks there are: each CPU's account has
        // a share.
        let swap_pages = Some(swap_pages(plan, self.profile.cpus()));
        let options = Options {
            swap_pages,
            ..self.preset.options()
        };
        let mut run = self.begin(plan, timed(options, self.conditions.change))?;
        let result = f(&mut run)?;
        run.end()?;
        Ok(result)
    }

    fn begin<S: System<Machine = Sim>>(
        &self,
        plan: &Plan,
        options: Options<S>,
    ) -> Result<Run, Failure> {
        Run::begin(plan, self, options)
    }
}

/// The runs of one measurement, one after the other.
struct Samples {
    target: Simulated,
    plan: Plan,
    counts: Vec<u64>,
    now: Duration,
    timed: Timed,
    /// True if a window was shorter than an iteration.
    partial: bool,
    /// That of the first run.
    bottleneck: Option<String>,
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
        // To watch the locks takes no simulated time: the counts are the same.
        match self.target.observe(&self.plan, span) {
            Ok(seen) => {
                let pairs = self.counts.iter_mut().zip(seen.counts);
                pairs.for_each(|(count, done)| *count += done);
                self.now += seen.span;
                self.timed = [self.timed, seen.timed].into_iter().sum();
                self.partial |= !seen.is_whole;
                let bottleneck = || seen.attribution.bottleneck();
                self.bottleneck.get_or_insert_with(bottleneck);
                self.target.seed += 1;
            }
            Err(failure) => self.failure = Some(failure),
        }
    }

    fn delay(&mut self, time: Duration) -> bool {
        self.target.conditions.delay = time;
        true
    }

    fn timed(&self) -> Timed {
        self.timed
    }

    fn check(&mut self) -> Result<(), Failure> {
        self.failure.take().map_or(Ok(()), Err)
    }

    fn bottleneck(&self) -> Option<String> {
        self.bottleneck.clone()
    }

    fn stop(mut self: Box<Self>) -> Result<(), Failure> {
        if self.partial {
            say(format_args!("scalevm: {}", partial(&self.plan)));
        }
        self.check()
    }
}
