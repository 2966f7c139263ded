//! One run on one machine.

use super::attribution::Attribution;
use super::conditions::{Conditions, DISTURBANCES};
use super::window::Window;
use super::{Simulated, cause};
use crate::harness::{Failure, Job as Work, Plan, Times, interrupt};
use crate::ours::{Account, Common, Ledger, Ledgers, memory, scheduler, swap_space};
use machine::{Clock, Job, PAGE_SIZE, Topology};
use sim::{Options as MachineOptions, Progress, Sim};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use sync::obm::{SlowPaths, slow_paths};
use sync::watch::profile;
use vm::{Options, System, Vm};
use workloads::{Counter, Error, Timed, Workload};

/// Tasks begin within this number of nanoseconds of each other.
const SPREAD: u64 = 2_000;
/// The warm-up, as a part of the span that is measured, at least.
const WARM_UP: u64 = 4;
/// Warm-ups after which the measurement begins in any case.
const MOST_WARM_UPS: u64 = 16;
/// Iterations that each task has done when the warm-up is over.
const FIRST: u64 = 2;
/// Simulated time between two checks for the end of a run.
const STEP: u64 = 10_000_000;
/// The time between two checks for the end of all tasks' work, as a part (1/64) of the time so far:
/// a watched run's accounts include at most that much of the teardown.
const LOOK: u64 = 64;
/// That time, at least.
const SHORTEST_LOOK: u64 = 10_000;
/// Simulated time after which a run is given up.
const LIMIT: u64 = 60_000_000_000;

/// The results of a watched run.
pub struct Seen {
    /// Operations of each task.
    pub counts: Vec<u64>,
    /// The time that they took.
    pub span: Duration,
    /// Those that began after a delay.
    pub timed: Timed,
    /// True if each task did an iteration.
    pub is_whole: bool,
    /// Its times, if the plan has an end.
    pub times: Option<Times>,
    /// Where the time went, in brief.
    pub attribution: Attribution,
    /// The lock profile.
    pub rows: Vec<profile::Row>,
    /// Stacks, if requested.
    pub samples: Vec<sim::Sample>,
    /// The number of times that tasks contended for one-byte mutexes since the machine's start, if
    /// the plan has an end.
    pub slow_paths: Option<SlowPaths>,
}

impl Seen {
    /// Operations of all tasks.
    pub fn done(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// Lets the calling task compute for a random time, `nanoseconds` on average, whatever its core's
/// other thread does. Tasks that come at equal intervals would meet always or never.
fn spend(nanoseconds: u64) -> [u64; 2] {
    let began = Sim::now();
    let until = began + sim::dice(2 * nanoseconds + 1);
    while let left @ 1.. = until.saturating_sub(Sim::now()) {
        sim::compute((left as f64 / 2.0).max(1.0));
    }
    [began, Sim::now()]
}

/// The tasks' counters.
struct Counters {
    tasks: Vec<Counter>,
    /// The counter that they point to.
    _supply: Arc<Counter>,
}

/// Tasks at work on a simulated machine.
pub struct Run {
    workload: &'static Workload,
    conditions: Conditions,
    machine: Sim,
    counters: Arc<Counters>,
    /// The tasks' ledgers, if the plan has an end.
    ledgers: Option<Ledgers>,
    /// Tasks that have work left. A task that has none takes its space down.
    working: Arc<AtomicUsize>,
    errors: Arc<Mutex<Option<(usize, Error)>>>,
}

impl Run {
    /// Makes the machine and the VM, and starts the tasks.
    pub fn begin<S: System<Machine = Sim>>(
        plan: &Plan,
        target: &Simulated,
        mut options: Options<S>,
    ) -> Result<Self, Failure> {
        let workload = plan.workload.known()?;
        let (preset, conditions) = (target.preset, target.conditions);
        let topology = target.profile.topology.clone();
        let machine = Sim::new(MachineOptions {
            memory: memory(workload, plan.tasks),
            seed: target.seed,
            spread: SPREAD,
            ..MachineOptions::new(cause::profile(&target.profile, &target.without))
        })
        .map_err(Failure::start("simulated machine"))?;
        cause::take_away(&machine, &target.without);
        if plan.needs_scheduler(machine.cpus().len()) {
            let scheduler = scheduler::of::<Sim>(preset);
            (scheduler.install)(&machine).map_err(Failure::start("scheduler"))?;
        }
        let supply = Arc::new(plan.supply());
        // SAFETY: `Counters` keeps the supply as long as the counters.
        let counter = |task| unsafe { plan.counter(task, NonNull::from(supply.as_ref())) };
        let delayed = |task| {
            let counter = counter(task).delayed_by(spend);
            counter.delay(conditions.delay.as_nanos() as u64);
            counter
        };
        let counters = Counters {
            tasks: (0..plan.tasks).map(delayed).collect(),
            _supply: supply,
        };
        let run = Run {
            workload,
            conditions,
            machine,
            counters: Arc::new(counters),
            ledgers: plan.count.map(|_| Ledger::of_tasks(plan.tasks)),
            working: Arc::new(AtomicUsize::new(plan.tasks)),
            errors: Arc::default(),
        };
        let (maker, plan) = (run.machine.clone(), *plan);
        // All that tasks share is made on a CPU, so that it lies in the machine.
        let made = run.machine.on_cpu(0, move || {
            options.swap_space = swap_space(&maker, workload, plan.tasks)?;
            let vm = Vm::with_options(maker, options).expect("memory for the VM");
            let common = Common::new(&vm, &plan, preset);
            Ok((vm, common))
        });
        let (vm, common) = made.map_err(Failure::start("swap space"))?;
        let common = common.map_err(|error| run.failure(0, error))?;
        let job = |task| run.job(plan.workload, task, vm.clone(), common.clone());
        let jobs = (0..plan.tasks).map(job);
        if run.machine.is_scheduled() {
            run.machine.start(jobs.collect())
        } else {
            let cpus = (0..plan.tasks).map(|task| conditions.place.cpu(&topology, task));
            run.machine.start_on(cpus.zip(jobs).collect());
        }
        Ok(run)
    }

    fn job<S: System<Machine = Sim>>(
        &self,
        work: Work,
        task: usize,
        vm: Arc<Vm<S>>,
        common: Common<S>,
    ) -> Job {
        let (counters, errors) = (self.counters.clone(), self.errors.clone());
        let working = self.working.clone();
        let is_last = task + 1 == self.counters.tasks.len();
        let account = Account {
            task,
            private: self
                .conditions
                .call
                .unwrap_or_else(|| super::private(self.workload)),
            ledgers: self.ledgers.clone(),
        };
        Box::new(move || {
            let run = || {
                let mut system = common.task(&vm, account)?;
                let result = work.run(is_last, &mut system, &counters.tasks[task]);
                working.fetch_sub(1, Relaxed);
                result
            };
            if let Err(error) = run() {
                let mut first = errors.lock().unwrap_or_else(PoisonError::into_inner);
                first.get_or_insert((task, error));
            }
        })
    }

    /// Runs until all tasks have come to their limits; returns the times taken.
    pub fn complete(&mut self) -> Result<Times, Failure> {
        let began = self.machine.time();
        self.run_to(LIMIT)?;
        let times = self.times(began);
        times.ok_or_else(|| self.stuck("a task did not reach its limit".into()))
    }

    /// The times since `began` of tasks that have come to their limits.
    fn times(&self, began: u64) -> Option<Times> {
        let ledgers = self.ledgers.as_ref()?;
        let real = Ledger::end(ledgers).saturating_sub(began);
        Some(Ledger::times(ledgers, Duration::from_nanos(real)))
    }

    /// Runs until all tasks have done their work, or little longer.
    fn work(&mut self) -> Result<(), Failure> {
        let working = self.working.clone();
        let is_over = || working.load(Relaxed) == 0;
        self.look_until(is_over, |passed| (passed / LOOK).max(SHORTEST_LOOK))
    }

    /// Runs until `is_over`.
    pub fn until(&mut self, is_over: impl Fn() -> bool) -> Result<(), Failure> {
        self.look_until(is_over, |_| STEP)
    }

    /// Runs until `is_over`; looks again after the `step` that is said for the time passed.
    fn look_until(
        &mut self,
        is_over: impl Fn() -> bool,
        step: impl Fn(u64) -> u64,
    ) -> Result<(), Failure> {
        let began = self.machine.time();
        while !is_over() {
            interrupt::check()?;
            let now = self.machine.time();
            self.run_to(now + step(now - began))?;
        }
        Ok(())
    }

    /// Warms up, then counts.
    pub fn measure(&mut self, span: Duration) -> Result<Window, Failure> {
        let span = u64::try_from(span.as_nanos()).unwrap_or(LIMIT);
        let from = self.warm_up(span)?;
        self.count(from, span)
    }

    /// Counts from `from`, which is now, for `span` or until each task has done an iteration.
    fn count(&mut self, from: u64, span: u64) -> Result<Window, Failure> {
        match self.whole_rounds() {
            Some(round) => self.count_whole(from, span, round),
            None => self.count_for(from, span),
        }
    }

    /// The number of operations that a task counts in an iteration.
    pub(super) fn round(&self) -> u64 {
        self.workload.round(PAGE_SIZE)
    }

    /// The number of operations in an iteration, if windows hold whole iterations and these have
    /// several operations.
    fn whole_rounds(&self) -> Option<u64> {
        (self.conditions.whole && self.round() > 1).then_some(self.round())
    }

    /// Runs to the plan's end, if it has one, or else measures for `span`, and records where the
    /// time goes, with a stack for each `period` nanoseconds, if that is given.
    pub fn watch(&mut self, span: Duration, period: Option<u64>) -> Result<Seen, Failure> {
        let out_of_memory =
            |_| Failure::start("lock profile")(std::io::ErrorKind::OutOfMemory.into());
        let span = u64::try_from(span.as_nanos()).unwrap_or(LIMIT);
        let machine = self.machine.clone();
        let locks = profile::of(machine.own_anchor());
        // Waits that begin in the warm-up may go on in the window.
        locks
            .start(self.counters.tasks.len())
            .map_err(out_of_memory)?;
        let from = match self.ledgers {
            Some(_) => self.machine.time(),
            None => self.warm_up(span)?,
        };
        self.machine.clear_accounts();
        locks.reset_at(from);
        if let Some(period) = period {
            self.machine.sample(period);
        }
        let timed = self.timed();
        let outcome = match self.ledgers {
            Some(_) => self.work().map(|()| None),
            None => self.count(from, span).map(Some),
        };
        locks.stop();
        let window = outcome?;
        let rows = locks.report_at(self.machine.time());
        let lasted = match &window {
            None => Duration::from_nanos(self.machine.time() - from),
            Some(window) => window.span,
        };
        let tasks = match self.workload.replay() {
            Some(_) => None,
            None => Some(self.counters.tasks.len()),
        };
        let nanoseconds = lasted.as_nanos() as u64;
        let timed = self.timed() - timed;
        let attribution = Attribution::of(&self.machine, &rows, tasks, nanoseconds);
        let samples = self.machine.sampled();
        if self.ledgers.is_some() {
            self.run_to(LIMIT)?;
        }
        let times = self.times(from);
        Ok(Seen {
            is_whole: window.as_ref().is_none_or(|window| window.is_whole),
            counts: window.map_or_else(|| self.counts(), |window| window.counts),
            span: lasted,
            timed,
            times,
            attribution,
            rows,
            samples,
            // The machine's own count, and no task is left.
            slow_paths: times.map(|_| self.machine.on_cpu(0, slow_paths::<Sim>)),
        })
    }

    /// Runs until every task is in its loop, and some time more; when that was. A task
    /// that a lock starves is not waited for endlessly.
    fn warm_up(&mut self, span: u64) -> Result<u64, Failure> {
        let step = (span / WARM_UP).max(1);
        let mut now = self.machine.time();
        let enough = now + MOST_WARM_UPS * step;
        if self.conditions.disturbed && self.round() == 1 {
            self.machine.disturb(DISTURBANCES);
        }
        loop {
            now += step;
            self.run_to(now)?;
            if now >= enough || self.counts().iter().all(|&count| count >= FIRST) {
                break;
            }
        }
        self.machine.calm();
        match self.whole_rounds() {
            Some(round) => self.pass_round(now, span, round),
            None => Ok(now),
        }
    }

    /// Each task's count.
    pub fn counts(&self) -> Vec<u64> {
        self.counters.tasks.iter().map(Counter::get).collect()
    }

    /// The operations of all tasks so far that began after a delay.
    fn timed(&self) -> Timed {
        self.counters.tasks.iter().map(Counter::timed).sum()
    }

    pub(super) fn run_to(&mut self, time: u64) -> Result<(), Failure> {
        match self.machine.run(time.min(LIMIT)) {
            Progress::Deadlock(why) => return Err(self.stuck(format!("deadlock: {why}"))),
            Progress::Running if time >= LIMIT => {
                let doing = self.machine.doing();
                return Err(self.stuck(format!("no end within a simulated minute: {doing}")));
            }
            _ => {}
        }
        let error = *self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        match error {
            Some((task, error)) => Err(self.failure(task, error)),
            None => Ok(()),
        }
    }

    fn stuck(&self, why: String) -> Failure {
        let workload = self.workload.name;
        Failure::Simulation { workload, why }
    }

    fn failure(&self, task: usize, error: Error) -> Failure {
        let workload = self.workload.name;
        Failure::Task {
            workload,
            task,
            error,
        }
    }

    /// Lets the tasks finish their current operations.
    pub fn end(mut self) -> Result<(), Failure> {
        self.counters.tasks.iter().for_each(Counter::stop);
        self.run_to(LIMIT - 1)
    }
}
