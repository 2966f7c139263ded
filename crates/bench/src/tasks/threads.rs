//! Tasks as threads of this process.

use super::{Area, Gate, Mask, Slot, begin_task, born_at};
use crate::harness::{Failure, Plan, Running, interrupt};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use workloads::{Error, System, Workload};

/// How often one looks whether they have ended.
const TURN: Duration = Duration::from_millis(1);

/// Threads at work; stopped and joined when dropped.
pub struct Threads {
    workload: &'static Workload,
    area: Arc<Area>,
    gate: Arc<Gate>,
    threads: Vec<JoinHandle<()>>,
}

/// Creates a thread for each task and opens the gate when all stand before it. In its
/// thread, each task gets its handle of the system from `enter`.
pub fn start<S: System>(
    plan: &Plan,
    places: &[Mask],
    area: Area,
    gate: Gate,
    enter: impl Fn(usize) -> Result<S, Error> + Send + Sync + 'static,
) -> Result<Threads, Failure> {
    let workload = plan.workload.known()?;
    report_bus_errors();
    let mut running = Threads {
        workload,
        area: Arc::new(area),
        gate: Arc::new(gate),
        threads: Vec::with_capacity(plan.tasks),
    };
    let enter = Arc::new(enter);
    for task in 0..plan.tasks {
        let (area, gate) = (Arc::clone(&running.area), Arc::clone(&running.gate));
        let enter = Arc::clone(&enter);
        let (job, is_last) = (plan.workload, task + 1 == plan.tasks);
        let body = move || {
            block_signals();
            let slot = &area.slots()[task];
            let system = enter(task);
            slot.ready();
            gate.pass();
            let run = |mut system| begin_task(|| job.run(is_last, &mut system, &slot.counter));
            if let Err(error) = system.and_then(run) {
                slot.fail(error);
            }
        };
        let builder = thread::Builder::new().name(format!("task {task}"));
        let thread =
            born_at(places, task, || builder.spawn(body)).map_err(Failure::start("thread"))?;
        running.threads.push(thread);
    }
    while !running.area.slots().iter().all(Slot::is_ready) {
        running.check()?;
        thread::sleep(Duration::from_millis(1));
    }
    // What tasks share goes with the last of them, where it runs: not here.
    drop(enter);
    running.gate.open().map_err(Failure::start("pipe"))?;
    Ok(running)
}

/// Leaves all signals to the main thread, whose sleep they shall end.
fn block_signals() {
    // SAFETY: a zeroed set is filled before use; the old one is not asked for.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
    }
}

/// Says why when a page of a file cannot be supplied. Such an access ends the
/// whole process, so there is nothing to measure any more.
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
    /// Waits until all tasks have ended, each at its limit.
    pub fn join(mut self) -> Result<(), Failure> {
        while !self.threads.iter().all(JoinHandle::is_finished) {
            interrupt::check()?;
            thread::sleep(TURN);
        }
        for (task, thread) in std::mem::take(&mut self.threads).into_iter().enumerate() {
            let panicked = thread.join().is_err();
            if panicked || self.area.slots()[task].error().is_some() {
                return Err(self.failure(task));
            }
        }
        Ok(())
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

    /// Why a task has ended.
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

    fn check(&mut self) -> Result<(), Failure> {
        match self.threads.iter().position(JoinHandle::is_finished) {
            Some(task) => Err(self.failure(task)),
            None => Ok(()),
        }
    }

    fn pids(&self) -> Vec<u32> {
        vec![std::process::id()]
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
