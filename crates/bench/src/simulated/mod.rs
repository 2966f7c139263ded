//! scalevm's own VM on a simulated machine.
//!
//! A sample is a run of its own: a fresh machine with the next seed, warmed up, then
//! measured for a span of simulated time. The result does not depend on this computer.

mod attribution;
mod conditions;
mod private;
mod run;
mod timed;
mod window;

pub use attribution::{Attribution, Share};
pub use conditions::{Conditions, DISTURBANCES, Fitted, Placement};
use private::private;

use crate::harness::{Bars, Failure, Film, Plan, Progress, Running, Target, Times, interrupt, say};
use crate::on::{On, subject};
use crate::ours::{SWAP_PER_TASK, can_run, scheduler};
use crate::points::Workers;
use baselines::Preset;
use run::Run;
pub use run::Seen;
use sim::Sim;
use sim::profile::MachineProfile;
use stats::record::Subject;
use std::time::Duration;
use timed::timed;
use vm::{Options, System};
pub use window::Window;

/// The expected error of a simulated figure, printed with it.
pub const BANDS: &str = "expected error: ±35 % for a saturated lock, ±25 % for a drop at a socket \
                         boundary, ±10 % for disjoint work within a socket; rankings hold from a \
                         factor of 1.5 on (docs/simulator)";

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
            partial: false,
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
            scheduler: self
                .is_scheduled(plan)
                .then(|| scheduler::of::<Sim>(self.preset).name.to_owned()),
            seed: Some(self.seed),
            ..subject(plan, On::Sim, Some(self.preset))
        }
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

    /// Returns true if there are more tasks than CPUs, so that a scheduler deals these out: that of
    /// the preset's system. Otherwise each task has a CPU of its own.
    pub fn is_scheduled(&self, plan: &Plan) -> bool {
        plan.tasks > self.profile.cpus()
    }

    /// One run with the seed.
    pub fn sample(&self, plan: &Plan, span: Duration) -> Result<Window, Failure> {
        self.check(plan)?;
        self.with_run(plan, |run| run.measure(span))
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
        let swap_pages = Some(SWAP_PER_TASK * self.profile.cpus() as u64);
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
        let (seed, preset, conditions) = (self.seed, self.preset, self.conditions);
        Run::begin(plan, &self.profile, seed, preset, conditions, options)
    }
}

/// The runs of one measurement, one after the other.
struct Samples {
    target: Simulated,
    plan: Plan,
    counts: Vec<u64>,
    now: Duration,
    /// True if a window was shorter than an iteration.
    partial: bool,
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
            Ok(window) => {
                let pairs = self.counts.iter_mut().zip(window.counts);
                pairs.for_each(|(count, done)| *count += done);
                self.now += window.span;
                self.partial |= !window.is_whole;
                self.target.seed += 1;
            }
            Err(failure) => self.failure = Some(failure),
        }
    }

    fn check(&mut self) -> Result<(), Failure> {
        self.failure.take().map_or(Ok(()), Err)
    }

    fn stop(mut self: Box<Self>) -> Result<(), Failure> {
        if self.partial {
            say(format_args!("scalevm: {}", partial(&self.plan)));
        }
        self.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Mode;

    /// A watched run is the same run, to the operation: watched figures may be compared with
    /// others.
    #[test]
    fn watching_takes_no_simulated_time() {
        let cases = [
            (
                "mmap1",
                Preset::FREEBSD_EPOCH,
                "freebsd-96",
                24,
                Mode::Processes,
            ),
            (
                "mmap1",
                Preset::FREEBSD_DI,
                "freebsd-96",
                24,
                Mode::Processes,
            ),
            (
                "page_fault1",
                Preset::SCALEVM,
                "freebsd-96",
                12,
                Mode::Threads,
            ),
            (
                "desktop",
                Preset::OPENBSD_UNLOCKED,
                "pc-16c32t",
                8,
                Mode::Threads,
            ),
            ("fork1", Preset::LINUX_2_6_39, "xeon-4s", 8, Mode::Processes),
        ];
        for (workload, preset, machine, tasks, mode) in cases {
            let target = Simulated {
                preset,
                profile: MachineProfile::named(machine).expect("a machine"),
                seed: 1,
                conditions: Conditions::default(),
            };
            let plan = Plan {
                workload: workloads::find(workload).expect("a workload").into(),
                tasks,
                mode,
                count: None,
            };
            let span = Duration::from_micros(500);
            let unwatched = target.sample(&plan, span).expect("runs");
            let unwatched: u64 = unwatched.counts.iter().sum();
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

    fn four_cpus(preset: Preset) -> Simulated {
        shaped(preset, "arm64-16", [1, 4, 1])
    }

    /// With the costs of `machine`, in another shape.
    fn shaped(preset: Preset, machine: &str, [sockets, cores, threads]: [usize; 3]) -> Simulated {
        let machine = MachineProfile::named(machine).expect("a machine");
        let profile = machine.with_topology(sockets, cores, threads);
        Simulated {
            preset,
            profile: profile.expect("a shape"),
            seed: 1,
            conditions: Conditions::default(),
        }
    }

    fn plan(workload: &str, tasks: usize, count: Option<u64>) -> Plan {
        Plan {
            workload: workloads::find(workload).expect("a workload").into(),
            tasks,
            mode: Mode::Processes,
            count,
        }
    }

    /// Under each system's scheduler tasks share the CPUs, and so do the children that they fork
    /// and wait for; the time for which they wait for one is counted apart.
    #[test]
    fn tasks_that_outnumber_cpus_share_them() {
        for preset in Preset::ALL {
            let target = four_cpus(preset);
            let build = plan("build", 6, Some(12));
            let scheduler = target.subject(&build).scheduler;
            assert_eq!(
                scheduler.as_deref(),
                Some(scheduler::of::<Sim>(preset).name)
            );
            let times = target.complete(&build, 0).expect("runs");
            let (cpus, user) = (4.0 * times.real.as_secs_f64(), times.user.as_secs_f64());
            // A job computes for about 8 ms.
            assert!((0.08..0.12).contains(&user), "{preset}: {user} s of user");
            assert!(
                user + times.sys.as_secs_f64() <= cpus,
                "{preset}: {times:?}"
            );
            let seen = target
                .observe(&build, Duration::from_millis(1))
                .expect("runs");
            let queued = seen.attribution.queued;
            assert!((0.05..0.6).contains(&queued), "{preset}: {queued} queued");
        }
    }

    /// A job waits for its compiler: their time is counted once.
    #[test]
    fn a_parent_that_waits_for_its_child_takes_no_time() {
        let target = four_cpus(Preset::SCALEVM);
        let exim = plan("exim", 8, None);
        let seen = target
            .watch(&exim, Duration::from_millis(20), 1_000)
            .expect("runs");
        let all: u64 = seen.samples.iter().map(|one| one.nanoseconds).sum();
        let share = all as f64 / (8.0 * 20e6);
        assert!((0.95..1.05).contains(&share), "{share} of the tasks' time");
        let off = seen.attribution.blocked + seen.attribution.queued;
        assert!(off < 0.7, "{off} off CPUs");
    }

    /// Tasks that take their spaces down, and CPUs that have nothing to do meanwhile, are in no
    /// account.
    #[test]
    fn accounts_end_with_the_work() {
        let target = four_cpus(Preset::LINUX_2_6_39);
        let exim = plan("exim", 8, Some(16));
        let seen = target
            .watch(&exim, Duration::from_millis(1), 1_000)
            .expect("runs");
        let real = seen.times.expect("its end").real.as_nanos() as f64;
        let all: u64 = seen.samples.iter().map(|one| one.nanoseconds).sum();
        let share = all as f64 / (8.0 * real);
        // A task that has done its last message before others has no time any more.
        assert!((0.7..1.05).contains(&share), "{share} of the tasks' time");
        let own = seen.attribution.own;
        assert!((0.0..1.0).contains(&own), "{own} is work");
    }

    /// A thread that has finished a job takes the next that has not begun.
    #[test]
    fn jobs_are_dealt_out_as_they_end() {
        let target = four_cpus(Preset::SCALEVM);
        let counts = target.with_run(&plan("build", 6, Some(60)), |run| {
            run.complete()?;
            Ok(run.counts())
        });
        let counts = counts.expect("runs");
        assert_eq!(counts.iter().sum::<u64>(), 60);
        assert_ne!(counts, [10; 6], "chance makes some jobs longer");
    }

    /// A task that does nothing but system calls makes room for the others, too.
    #[test]
    fn each_task_gets_its_turn() {
        let target = four_cpus(Preset::SCALEVM);
        let mmap1 = plan("mmap1", 10, None);
        let done = target
            .sample(&mmap1, Duration::from_millis(60))
            .expect("runs")
            .counts;
        let (least, most) = (done.iter().min(), done.iter().max());
        let even = 2 * least.expect("tasks") > *most.expect("tasks");
        assert!(even, "{done:?}");
    }

    /// An iteration of page_fault1 ends with an unmap of all its pages, which a short window leaves
    /// out.
    #[test]
    fn windows_hold_whole_iterations_or_say_that_they_do_not() {
        let mut target = four_cpus(Preset::SCALEVM);
        let plan = plan("page_fault1", 2, None);
        let window = |target: &Simulated| {
            let window = target.sample(&plan, Duration::from_millis(1));
            window.expect("runs")
        };
        let part = window(&target);
        assert!(!part.is_whole && part.span == Duration::from_millis(1));
        assert!(partial(&plan).contains("page_fault1"));
        target.conditions.whole = true;
        let whole = window(&target);
        let round = (workloads::SIZE / machine::PAGE_SIZE) as u64;
        assert!(whole.is_whole && whole.counts.iter().all(|&count| count >= round));
        assert!(whole.span > Duration::from_millis(10));
        assert!(whole.rate() < 0.99 * part.rate(), "{whole:?}, {part:?}");
    }

    #[test]
    fn tasks_are_fitted_to_a_rate() {
        let target = four_cpus(Preset::SCALEVM);
        let span = Duration::from_millis(1);
        for (workload, tasks, rate, fitted) in [
            ("mmap1", 1, 1e6, Fitted::Call),
            ("mmap1", 3, 3e6, Fitted::Call),
            ("page_fault1", 1, 300e3, Fitted::Fault),
        ] {
            let plan = plan(workload, tasks, None);
            let (target, what, time) = target.fitted(&plan, span, rate).expect("possible");
            assert!(what == fitted && time > 0.0, "{workload}: {what:?}, {time}");
            let window = target.sample(&plan, span).expect("runs");
            assert!(
                (window.rate() / rate - 1.0).abs() < 0.02,
                "{workload}: {window:?}"
            );
        }
        let refused = target.fitted(&plan("mmap1", 1, None), span, 1e9);
        let why = refused.map(drop).expect_err("too fast").to_string();
        assert!(why.contains("does not reach"), "{why}");
    }

    /// Two tasks that meet at a line are slower where it has farther to go.
    #[test]
    fn spread_tasks_are_farther_apart() {
        let mut target = shaped(Preset::FREEBSD_DI, "freebsd-96", [2, 2, 1]);
        let mut rate = |place| {
            target.conditions.place = place;
            let window = target.sample(&plan("mmap1", 2, None), Duration::from_millis(1));
            window.expect("runs").rate()
        };
        let (near, far) = (rate(Placement::Pack), rate(Placement::Spread));
        assert!(far < 0.8 * near, "{far} and {near}");
    }

    /// Of eight tasks none finds `vm_committed_as` locked, until one of them is held up while it
    /// has the lock.
    #[test]
    fn a_disturbed_warm_up_leaves_a_queue_where_there_may_be_one() {
        let mut target = shaped(Preset::LINUX_4_15, "freebsd-96", [1, 8, 1]);
        let mut rate = |tasks, disturbed| {
            target.conditions.disturbed = disturbed;
            let window = target.sample(&plan("mmap1", tasks, None), Duration::from_millis(2));
            window.expect("runs").rate()
        };
        let (calm, disturbed) = (rate(8, false), rate(8, true));
        assert!(disturbed < 0.5 * calm, "{disturbed} and {calm}");
        let (calm, disturbed) = (rate(1, false), rate(1, true));
        assert!(
            (disturbed / calm - 1.0).abs() < 0.05,
            "{disturbed} and {calm}"
        );
    }

    /// Tasks that do nothing else queue at `vm_committed_as`, at half the rate; those that take
    /// their time do not.
    #[test]
    fn a_time_is_found_at_which_tasks_do_not_queue() {
        let mut target = shaped(Preset::LINUX_4_15, "freebsd-96", [1, 8, 1]);
        target.conditions.disturbed = true;
        let (plan, span) = (plan("mmap1", 8, None), Duration::from_millis(2));
        let queued = target.sample(&plan, span).expect("runs").rate();
        let (fitted, ..) = target.fitted(&plan, span, 1.5 * queued).expect("possible");
        let reached = fitted.sample(&plan, span).expect("runs").rate();
        assert!(
            (reached / queued - 1.5).abs() < 0.03,
            "{reached} of {queued}"
        );
    }

    #[test]
    fn interrupts_and_the_bandwidth_of_memory_are_causes() {
        let mut target = four_cpus(Preset::SCALEVM);
        let interrupts = target.profile.with_broadcast(0.0);
        target.profile = interrupts.expect("no broadcast");
        let observe = |target: &Simulated, workload, mode| {
            let plan = Plan {
                mode,
                ..plan(workload, 4, None)
            };
            let seen = target.observe(&plan, Duration::from_millis(2));
            seen.expect("runs").attribution
        };
        let flushes = observe(&target, "tlb_flush1", Mode::Threads);
        assert!(
            flushes.interrupts > 0.2 && flushes.memory < 0.1,
            "{flushes:?}"
        );
        let bottleneck = flushes.bottleneck();
        assert!(bottleneck.contains("interrupts"), "{bottleneck}");
        target.profile.memory.zero_socket_gbps = 1.0;
        let zeroes = observe(&target, "page_fault1", Mode::Processes);
        assert!(
            zeroes.memory > 0.5 && zeroes.interrupts < 0.01,
            "{zeroes:?}"
        );
        assert!(zeroes.own < 0.5, "{zeroes:?}");
        let bottleneck = zeroes.bottleneck();
        assert!(bottleneck.contains("bandwidth of memory"), "{bottleneck}");
    }

    #[test]
    fn too_many_tasks_are_refused() {
        let target = four_cpus(Preset::SCALEVM);
        let crowd = plan("mmap1", 4 * MOST_PER_CPU + 1, None);
        let refused = target.sample(&crowd, Duration::from_millis(1));
        let why = refused.expect_err("too many").to_string();
        assert!(why.contains("each runs at most 32 tasks"), "{why}");
    }
}
