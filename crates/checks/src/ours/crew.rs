//! The CPUs of a machine, which do one job at a time.

use hosted::Hosted;
use machine::Platform;
use oracle::outcome::Outcome;
use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Instant;

type Job = Box<dyn FnOnce() + Send>;

/// The threads' name.
const NAME: &str = "scalevm CPU";

/// Makes panics of these threads outcomes that print no message.
pub fn quieten() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if thread::current().name() != Some(NAME) {
            before(panic);
        }
    }));
}

/// A machine whose CPUs do jobs.
pub trait Crew: Sized {
    type Machine: Platform + Clone;

    /// A machine of `cpus` CPUs and `memory` bytes.
    fn new(cpus: usize, memory: usize) -> io::Result<Self>;

    fn machine(&self) -> &Self::Machine;

    /// Runs a job on a CPU, and waits for it until `deadline`. Its result is copied, as what a CPU
    /// allocates may lie in its machine.
    ///
    /// # Errors
    /// How it failed: it panicked, or has not ended.
    fn run<R: Clone + Send + 'static>(
        &self,
        cpu: usize,
        deadline: Instant,
        job: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, Outcome>;
}

/// Threads that are the CPUs. One whose job does not end remains when this is dropped.
pub struct Threads {
    machine: Hosted,
    cpus: Vec<Sender<Job>>,
}

impl Crew for Threads {
    type Machine = Hosted;

    fn new(cpus: usize, memory: usize) -> io::Result<Self> {
        let machine = Hosted::with_memory(cpus, memory)?;
        let cpus = (0..cpus).map(|cpu| {
            let (jobs, work): (_, Receiver<Job>) = channel();
            let machine = machine.clone();
            let serve = move || {
                machine.attach(cpu);
                work.into_iter().for_each(|job| job());
            };
            // If there is no thread, jobs find that their CPU does not exist.
            let _ = thread::Builder::new().name(NAME.into()).spawn(serve);
            jobs
        });
        let cpus = cpus.collect();
        Ok(Threads { machine, cpus })
    }

    fn machine(&self) -> &Hosted {
        &self.machine
    }

    fn run<R: Clone + Send + 'static>(
        &self,
        cpu: usize,
        deadline: Instant,
        job: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, Outcome> {
        let (done, result) = channel();
        let job = move || {
            let outcome = catch_unwind(AssertUnwindSafe(job));
            let _ = done.send(outcome.map_err(|panic| message(panic.as_ref())));
        };
        // An error means that the thread has ended; then there is no result either.
        let _ = self.cpus[cpu].send(Box::new(job));
        match result.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(outcome) => outcome.map_err(Outcome::Crashed),
            Err(RecvTimeoutError::Timeout) => Err(Outcome::Endless),
            Err(RecvTimeoutError::Disconnected) => Err(Outcome::Crashed("its CPU is gone".into())),
        }
    }
}

/// The message of a job's panic.
pub fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("panicked: {}", text.unwrap_or("without a message"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_job_that_does_not_end_is_left_alone() {
        let crew = Threads::new(1, 1 << 20).expect("memory");
        let soon = Instant::now() + Duration::from_millis(10);
        let endless = || loop {
            thread::park();
        };
        let outcome: Result<(), _> = crew.run(0, soon, endless);
        assert_eq!(outcome, Err(Outcome::Endless));
    }
}
