//! Threads that are the CPUs of a machine, and do one job at a time.

use hosted::Hosted;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

type Job = Box<dyn FnOnce() + Send>;

/// How long a job may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// The CPUs. A thread that does not come to an end stays when this is dropped.
pub struct Crew(Vec<Sender<Job>>);

impl Crew {
    /// All CPUs of `machine`, of which there are `count`.
    pub fn new(machine: &Hosted, count: usize) -> Self {
        let cpus = (0..count).map(|cpu| {
            let (jobs, work): (_, Receiver<Job>) = channel();
            let machine = machine.clone();
            thread::spawn(move || {
                machine.attach(cpu);
                work.into_iter().for_each(|job| job());
            });
            jobs
        });
        Crew(cpus.collect())
    }

    /// Does a job on a CPU, and waits for it.
    ///
    /// # Errors
    /// How it failed: it panicked, or has not ended.
    pub fn run<R: Send + 'static>(
        &self,
        cpu: usize,
        job: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, String> {
        let (done, result) = channel();
        let job = move || {
            let outcome = catch_unwind(AssertUnwindSafe(job));
            let _ = done.send(outcome.map_err(|panic| message(panic.as_ref())));
        };
        // An error means that the thread is gone; then there is no result either.
        let _ = self.0[cpu].send(Box::new(job));
        match result.recv_timeout(PATIENCE) {
            Ok(outcome) => outcome,
            Err(RecvTimeoutError::Timeout) => Err("it does not come to an end".into()),
            Err(RecvTimeoutError::Disconnected) => Err("its CPU is gone".into()),
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("panicked: {}", text.unwrap_or("without a message"))
}
