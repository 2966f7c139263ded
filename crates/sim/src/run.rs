//! Construction of a machine, and running jobs on it.

use crate::arena::{Arena, MOST_MEMORY};
use crate::coherence::Directory;
use crate::engine::agenda::{Agenda, NEVER};
use crate::engine::context::Context;
use crate::engine::cpu::Cpu;
use crate::engine::preempt::Preempt;
use crate::engine::watch::{Delays, Watch};
use crate::engine::{self, Counts, Engine, Off, Outcome, Running, Time};
use crate::label::Labels;
use crate::profile::MachineProfile;
use crate::{Inner, Sim, Times};
use core::cell::UnsafeCell;
use core::mem::ManuallyDrop;
use core::ptr;
use machine::soft::Oracle;
use machine::{Anchor, CpuRange, Execute, Job, PAGE_SIZE, Scheduler, Topology};
use std::io;
use std::panic::resume_unwind;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

/// The shape and the settings of a machine.
#[derive(Clone, Debug)]
pub struct Options {
    /// The computer that is simulated.
    pub profile: MachineProfile,
    /// Bytes of physical memory, rounded up to frames.
    pub memory: usize,
    /// The random seed.
    pub seed: u64,
    /// Jobs start within this many nanoseconds of each other, at random.
    pub spread: u64,
    /// True if CPUs may compute ahead of each other where that does not change the result. This is
    /// faster.
    pub lookahead: bool,
    /// Delays at random accesses: to find races, or to disturb a warm-up ([`Sim::calm`]).
    pub delays: Option<Delays>,
    /// Preemption at random accesses, with a scheduler: to find races, not to predict.
    pub preempt: Option<Preempt>,
}

impl Options {
    /// The options for a machine of this profile: no memory, seed 0, and all jobs start at the same
    /// time.
    pub fn new(profile: MachineProfile) -> Self {
        Options {
            profile,
            memory: 0,
            seed: 0,
            spread: 0,
            lookahead: true,
            delays: None,
            preempt: None,
        }
    }
}

/// The state of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// All jobs have ended.
    Finished,
    /// The time is over, and jobs are still running.
    Running,
    /// No job can go on; the text says what each CPU does.
    Deadlock(String),
}

impl Sim {
    /// A machine.
    ///
    /// # Errors
    /// If the host refuses the address space, or the memory is more than 384 GiB.
    pub fn new(options: Options) -> io::Result<Self> {
        let engine = Engine::new(options.clone())?;
        let frame_count = options.memory.div_ceil(PAGE_SIZE);
        if options.memory > MOST_MEMORY {
            let text = format!(
                "{} bytes of memory: a simulated machine has {MOST_MEMORY} at most",
                options.memory
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        Ok(Sim {
            inner: Arc::new(Inner {
                range: engine.range,
                sockets: engine.profile.topology.sockets,
                frames: engine.arena.frames(),
                frame_count,
                owned: AtomicBool::new(false),
                busy: AtomicBool::new(false),
                engine: UnsafeCell::new(ManuallyDrop::new(engine)),
            }),
        })
    }

    /// Gives the machine a scheduler, which `make` makes for its CPUs, on CPU 0. From now on jobs
    /// are tasks: there may be more of them than CPUs.
    ///
    /// # Panics
    /// If the machine has a scheduler, or a CPU has a job.
    pub fn schedule<S: Scheduler + 'static>(
        &self,
        make: impl FnOnce(CpuRange) -> S + Send + 'static,
    ) {
        let range = self.cpus();
        let scheduler: Arc<dyn Scheduler> = self.on_cpu(0, move || Arc::new(make(range)));
        self.with_engine(|engine| engine.boot(scheduler));
    }

    /// Returns true if it has a scheduler.
    pub fn is_scheduled(&self) -> bool {
        self.with_engine(|engine| engine.scheduler.is_some())
    }

    /// Gives job *i* to CPU *i*, to start about now; [`Sim::run`] runs them. With a scheduler, jobs
    /// are distributed over the CPUs in turn.
    ///
    /// # Panics
    /// Without a scheduler, if there are more jobs than CPUs, or a CPU still has a job.
    pub fn start(&self, jobs: Vec<Job>) {
        let turns = if self.is_scheduled() {
            self.cpus().len()
        } else {
            usize::MAX
        };
        let jobs = jobs.into_iter().enumerate();
        self.start_on(jobs.map(|(index, job)| (index % turns, job)).collect());
    }

    /// Gives each job to the CPU named with it, to start about now; [`Sim::run`] runs them.
    pub fn start_on(&self, jobs: Vec<(usize, Job)>) {
        self.with_engine(|engine| engine.start(jobs));
    }

    /// Runs the jobs until all have ended, or the machine's clock reads `until`
    /// nanoseconds.
    ///
    /// # Panics
    /// If a job panicked.
    pub fn run(&self, until: u64) -> Progress {
        let _busy = self.claim();
        // SAFETY: this thread has claimed `busy`, so no other uses the engine.
        match unsafe { Engine::run(self.engine(), until.saturating_mul(1000)) } {
            Outcome::Finished => Progress::Finished,
            Outcome::Reached => Progress::Running,
            Outcome::Stuck(why) => Progress::Deadlock(why),
            Outcome::Panicked(panic) => resume_unwind(panic),
        }
    }

    /// The machine's clock in nanoseconds: the time that all CPUs with jobs have passed.
    pub fn time(&self) -> u64 {
        self.with_engine(|engine| engine.time / 1000)
    }

    /// The machine's anchor ([`Tasks::anchor`](machine::Tasks::anchor)), for code outside its CPUs.
    pub fn own_anchor(&self) -> &Anchor {
        let anchor = self.with_engine(|engine| ptr::from_ref(&engine.anchor));
        // SAFETY: the anchor stays in place while the machine exists, and synchronizes its own
        // accesses.
        unsafe { &*anchor }
    }

    /// Delays accesses at random from now on.
    pub fn disturb(&self, delays: Delays) {
        self.with_engine(|engine| engine.watch.disturb(delays));
    }

    /// Delays no access and preempts no task at random from now on.
    pub fn calm(&self) {
        self.with_engine(|engine| engine.watch.calm());
    }

    /// From now on the lines of these objects ([`crate::LineUse::object`]) are at hand wherever
    /// they are used: no transfer of them takes time.
    pub fn keep_at_hand(&self, objects: Vec<String>) {
        self.with_engine(|engine| engine.at_hand = objects);
    }

    /// Counts of the engine's work since the machine was created.
    pub fn counts(&self) -> Counts {
        self.with_engine(|engine| engine.counts)
    }

    /// The activity of each CPU and each task, in a few words.
    pub fn doing(&self) -> String {
        self.with_engine(|engine| engine.doing())
    }

    /// How each CPU spent its time since the accounts were cleared.
    pub fn times(&self) -> Vec<Times> {
        self.with_engine(|engine| engine.times())
    }

    /// The time that tasks of a scheduler were off CPUs since the accounts were cleared. A task
    /// that was ready when the time ended, and had been blocked before, counts as blocked.
    pub fn off(&self) -> Off {
        self.with_engine(|engine| engine.off_now())
    }

    /// Nanoseconds that tasks have waited in refunded sections and not made up for, since the
    /// accounts were cleared.
    pub fn lost(&self) -> u64 {
        self.with_engine(|engine| engine.lost() / 1000)
    }

    /// Runs `job` on CPU `index` to its end, and returns its result.
    ///
    /// # Panics
    /// If `job` panics, or waits for an event that never comes.
    pub fn on_cpu<R: Send + 'static>(
        &self,
        index: usize,
        job: impl FnOnce() -> R + Send + 'static,
    ) -> R {
        let place = Arc::new(Mutex::new(None));
        let result = place.clone();
        let job = move || {
            let value = job();
            *result.lock().expect("no job panics here") = Some(value);
        };
        self.start_on(vec![(index, Box::new(job))]);
        self.finish();
        let result = place.lock().expect("no job panics here").take();
        result.expect("the job has ended")
    }

    fn finish(&self) {
        match self.run(NEVER / 1000) {
            Progress::Finished => {}
            Progress::Running => panic!("a simulated run takes longer than a simulated hour"),
            Progress::Deadlock(why) => panic!("deadlock: {why}"),
        }
    }
}

impl Execute for Sim {
    fn execute(&self, jobs: Vec<Job>) {
        self.start(jobs);
        self.finish();
    }
}

impl Engine {
    fn new(options: Options) -> io::Result<Self> {
        let Options { profile, seed, .. } = options;
        let cpus = profile.cpus();
        let arena = Arena::new(cpus)?;
        let directory = Directory::new(&profile, arena.base())?;
        let cpu = |index| {
            let dice = oorandom::Rand64::new(u128::from(seed) << 64 | index as u128);
            Cpu::new(index, dice, profile.core.store_buffer)
        };
        Ok(Engine {
            range: CpuRange::claim(cpus),
            cpus: (0..cpus).map(cpu).collect(),
            contexts: (0..cpus).map(|_| Box::new(Context::new())).collect(),
            unused: Vec::new(),
            scheduler: None,
            off: Off::default(),
            left: engine::refund::Left::new(),
            forfeited: 0,
            owed: 0,
            cleared: 0,
            agenda: Agenda::new(2 * cpus),
            running: 0,
            current: 0,
            turn: 0,
            ahead: 0,
            until: 0,
            time: 0,
            lookahead: if options.lookahead {
                directory.warnings()
            } else {
                (0, 0)
            },
            idle: 0,
            zeroing: vec![0; profile.topology.sockets].into(),
            watch: Watch::new(options.delays, options.preempt),
            oracle: Oracle::new(options.memory.div_ceil(PAGE_SIZE)),
            labels: Labels::default(),
            at_hand: Vec::new(),
            counts: Counts::default(),
            anchor: Anchor::new(),
            heap: arena.heap().as_ptr(),
            spread: options.spread * 1000,
            directory,
            profile,
            arena,
        })
    }

    /// Gives each job to the CPU named with it.
    fn start(&mut self, jobs: Vec<(usize, Job)>) {
        let mut has_job = vec![false; self.cpus.len()];
        for (cpu, _) in &jobs {
            assert!(*cpu < has_job.len(), "no CPU {cpu} among {}", has_job.len());
            has_job[*cpu] = true;
        }
        if self.scheduler.is_none() {
            self.set_speeds(jobs.iter().map(|(cpu, _)| *cpu), |_, cpu| has_job[cpu]);
        }
        for (cpu, job) in jobs {
            let late = self.cpus[cpu].below(self.spread + 1);
            let start = self.time + late;
            if self.scheduler.is_some() {
                self.arrive(cpu, start, job);
            } else {
                self.begin(cpu, start, job);
            }
        }
    }

    /// Lets each CPU run `scheduler` from now on.
    fn boot(&mut self, scheduler: Arc<dyn Scheduler>) {
        assert!(self.scheduler.is_none(), "a machine has one scheduler");
        let run = || {
            let scheduler = Running::current().and_then(Running::scheduler);
            scheduler.expect("set before the CPU runs").run();
        };
        for cpu in 0..self.cpus.len() {
            self.begin(cpu, self.time, Box::new(run));
        }
        self.scheduler = Some(scheduler);
    }
}

/// Lets the calling CPU compute for `nanoseconds`: the time of surrounding code that the simulator
/// does not see. It takes longer if the core's other thread also works.
pub fn compute(nanoseconds: f64) {
    engine::advance((nanoseconds * 1000.0) as Time);
}

/// Charges the calling task for entering the kernel and leaving it again.
pub fn system_call() {
    if let Some(running) = Running::current() {
        running.with(|engine| engine.spend(engine.profile.kernel.syscall));
    }
}

/// Begins a section of the calling task whose time the task gets back at its end: as much of the
/// task's following work takes no time. Sections may nest. If the outermost one is `prompt`, others
/// notice at once what the task writes in it. No effect outside machines.
pub fn begin_refund(prompt: bool) {
    engine::refund::begin(prompt);
}

/// Ends the calling task's section.
pub fn end_refund() {
    engine::refund::end();
}

/// The calling task, which has got time back, now has the lock at this address. Returns the
/// nanoseconds for which it would have waited for it without what it has got back, and takes these.
pub fn enter(lock: usize) -> u64 {
    engine::refund::enter(lock)
}

/// The calling task is about to release the lock at this address.
pub fn leave(lock: usize) {
    engine::refund::leave(lock);
}

/// Takes what the calling task has got back and not spent yet, unless its stores are free
/// ([`free_stores`]). No effect outside machines.
pub fn forfeit() {
    engine::refund::forfeit();
}

/// Says that nobody is to wait for the calling task's stores, or no longer. Pairs may nest. No
/// effect outside machines.
pub fn free_stores(free: bool) {
    engine::refund::free_stores(free);
}

/// Starts a task on the calling CPU's machine, which has a scheduler; no effect outside machines.
///
/// # Panics
/// If the machine has no scheduler.
pub fn spawn(job: Job) {
    if let Some(running) = Running::current() {
        let scheduler = running.scheduler();
        scheduler.expect("the machine has a scheduler").start(job);
    }
}

/// Calls `wait`, which waits for another task's work. The time that the calling task is blocked
/// meanwhile is only in the other task's account.
pub fn stand_by<R>(wait: impl FnOnce() -> R) -> R {
    let mark = |stands_by| {
        if let Some(running) = Running::current() {
            running.with(|engine| engine.context().stands_by = stands_by);
        }
    };
    mark(true);
    let waited = wait();
    mark(false);
    waited
}

/// Nanoseconds that the calling task has been off CPUs so far: blocked, or ready while
/// others ran. `None` on a machine without a scheduler.
pub fn off_cpu() -> Option<u64> {
    let off = |engine: &mut Engine| {
        let off = engine.context().off / 1000;
        engine.scheduler.is_some().then_some(off)
    };
    Running::current()?.with(off)
}

/// A random number below `bound`, from the calling CPU's own sequence; 0 outside the machine's
/// CPUs.
pub fn dice(bound: u64) -> u64 {
    Running::current().map_or(0, |running| {
        running.with(|engine| engine.cpu().below(bound))
    })
}
