//! Tasks as threads of this process.

use super::{Area, Gate, Mask, Slot, begin_task, born_at};
use crate::harness::{Failure, Plan, Running, interrupt};
use hosted::Hosted;
use machine::{Clock, Job, Topology};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use workloads::{Error, System, Timed, Workload};

/// The time between two checks for the end of the tasks.
const TURN: Duration = Duration::from_millis(1);

/// Tasks at work on threads; stopped and joined when dropped.
pub struct Threads {
    workload: &'static Workload,
    area: Arc<Area>,
    gate: Arc<Gate>,
    threads: Vec<JoinHandle<()>>,
    /// The machine whose scheduler deals the tasks over the threads; none if each is one.
    machine: Option<Hosted>,
}

/// Creates a thread for each task and opens the gate when all wait at it. In its thread, each task
/// gets its handle of the system from `enter`.
pub fn start<S: System>(
    plan: &Plan,
    places: &[Mask],
    area: Area,
    gate: Gate,
    enter: impl Fn(usize) -> Result<S, Error> + Send + Sync + 'static,
) -> Result<Threads, Failure> {
    let mut running = Threads::none(plan, area, gate, None)?;
    let enter = Arc::new(enter);
    for task in 0..plan.tasks {
        let body = running.body(plan, task, &enter, Gate::pass);
        running.create(places, task, "task", body)?;
    }
    running.begin(enter)
}

/// Starts the tasks on a thread for each CPU of a machine; its scheduler deals the tasks over
/// these.
pub fn start_on<S: System>(
    machine: &Hosted,
    plan: &Plan,
    places: &[Mask],
    area: Area,
    gate: Gate,
    enter: impl Fn(usize) -> Result<S, Error> + Send + Sync + 'static,
) -> Result<Threads, Failure> {
    /// Nanoseconds between two looks at the gate.
    const LOOK: u64 = 100_000;
    let mut running = Threads::none(plan, area, gate, Some(machine.clone()))?;
    let enter = Arc::new(enter);
    let pass = |gate: &Gate| {
        while !gate.is_open() {
            Hosted::sleep_until(Hosted::now() + LOOK);
        }
    };
    let begun = Arc::new(Gate::new().map_err(Failure::start("pipe"))?);
    let created = (0..machine.cpus().len()).try_for_each(|cpu| {
        let (machine, begun) = (machine.clone(), Arc::clone(&begun));
        let body = move || {
            begun.pass();
            machine.work(cpu);
        };
        running.create(places, cpu, "cpu", body)
    });
    if created.is_ok() {
        let body = |task| -> Job { Box::new(running.body(plan, task, &enter, pass)) };
        machine.deal((0..plan.tasks).map(body).collect());
    }
    // Threads that find no task end.
    begun.open().map_err(Failure::start("pipe"))?;
    created?;
    running.begin(enter)
}

/// Leaves all signals to the main thread, whose sleep they end.
fn block_signals() {
    // SAFETY: a zeroed set is filled before use; the pointer to the old one may be null.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
    }
}

/// Reports that a page of a file cannot be supplied. Such an access ends the whole process, so
/// there is nothing to measure any more.
fn report_bus_errors() {
    extern "C" fn report(_: libc::c_int) {
        const TEXT: &str = "scalevm: a page of a temporary file could not be supplied; \
                            is the file system of TMPDIR full?\n";
        // SAFETY: both calls may be made in a signal handler.
        unsafe {
            libc::write(2, TEXT.as_ptr().cast(), TEXT.len());
            libc::_exit(4);
        }
    }
    // SAFETY: the handler makes only calls that are safe in one.
    unsafe { libc::signal(libc::SIGBUS, report as *const () as libc::sighandler_t) };
}

impl Threads {
    fn none(plan: &Plan, area: Area, gate: Gate, machine: Option<Hosted>) -> Result<Self, Failure> {
        report_bus_errors();
        Ok(Threads {
            workload: plan.workload.known()?,
            area: Arc::new(area),
            gate: Arc::new(gate),
            threads: Vec::new(),
            machine,
        })
    }

    /// A task's work.
    fn body<S: System>(
        &self,
        plan: &Plan,
        task: usize,
        enter: &Arc<impl Fn(usize) -> Result<S, Error> + Send + Sync + 'static>,
        pass: impl FnOnce(&Gate) + Send + 'static,
    ) -> impl FnOnce() + Send + 'static {
        let (area, gate, enter) = (self.area.clone(), self.gate.clone(), enter.clone());
        let (job, is_last) = (plan.workload, task + 1 == plan.tasks);
        move || {
            let slot = &area.slots()[task];
            let _living = slot.living();
            let system = enter(task);
            slot.ready();
            pass(&gate);
            let run = |mut system| begin_task(|| job.run(is_last, &mut system, &slot.counter));
            if let Err(error) = system.and_then(run) {
                slot.fail(error);
            }
        }
    }

    /// Creates a thread.
    fn create(
        &mut self,
        places: &[Mask],
        index: usize,
        what: &str,
        body: impl FnOnce() + Send + 'static,
    ) -> Result<(), Failure> {
        let body = move || {
            block_signals();
            body();
        };
        let builder = thread::Builder::new().name(format!("{what} {index}"));
        let thread = born_at(places, index, || builder.spawn(body));
        self.threads.push(thread.map_err(Failure::start("thread"))?);
        Ok(())
    }

    /// Opens the gate when all tasks wait at it.
    fn begin<T>(mut self, enter: Arc<T>) -> Result<Self, Failure> {
        while !self.area.slots().iter().all(Slot::is_ready) {
            self.check()?;
            thread::sleep(Duration::from_millis(1));
        }
        // The objects that tasks share go with the last task, where it runs: not here.
        drop(enter);
        self.gate.open().map_err(Failure::start("pipe"))?;
        Ok(self)
    }

    /// Waits until all tasks have ended, each at its limit.
    pub fn join(mut self) -> Result<(), Failure> {
        while !self.threads.iter().all(JoinHandle::is_finished) {
            interrupt::check()?;
            thread::sleep(TURN);
        }
        for thread in std::mem::take(&mut self.threads) {
            // A panic has been printed by the thread; the task's slot says so.
            let _ = thread.join();
        }
        match self.area.slots().iter().position(Slot::has_failed) {
            Some(task) => Err(self.failure(task)),
            None => Ok(()),
        }
    }

    /// Waits until `is_over`; a task that ends before has failed.
    pub fn until(mut self, is_over: impl Fn() -> bool) -> Result<(), Failure> {
        while !is_over() {
            interrupt::check()?;
            match self.check() {
                Err(failure) if !is_over() => return Err(failure),
                _ => thread::sleep(TURN),
            }
        }
        Ok(())
    }

    /// The failure of a task that has ended.
    fn failure(&self, task: usize) -> Failure {
        self.area.failure(self.workload.name, task, None)
    }

    fn end(&mut self) {
        for slot in self.area.slots() {
            slot.counter.stop();
        }
        // Threads that still wait do one iteration and leave. If the pipe should be
        // broken they cannot be told; then they go when the process does.
        if self.gate.open().is_ok() {
            for thread in self.threads.drain(..) {
                // A panic has been printed by the thread; `check` reports it.
                let _ = thread.join();
            }
        }
    }
}

impl Running for Threads {
    fn counts(&self, into: &mut [u64]) {
        self.area.counts(into);
    }

    fn delay(&mut self, time: Duration) -> bool {
        self.area.delay(time);
        true
    }

    fn timed(&self) -> Timed {
        self.area.timed()
    }

    fn check(&mut self) -> Result<(), Failure> {
        match self.area.slots().iter().position(Slot::has_ended) {
            Some(task) => Err(self.failure(task)),
            None => Ok(()),
        }
    }

    fn pids(&self) -> Vec<u32> {
        vec![std::process::id()]
    }

    fn scheduled(&self) -> Option<&Hosted> {
        self.machine.as_ref()
    }

    fn stop(mut self: Box<Self>) -> Result<(), Failure> {
        self.check()
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.end();
    }
}
