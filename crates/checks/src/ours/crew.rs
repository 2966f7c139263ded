//! Threads that are the CPUs of a machine and do one job at a time.

use hosted::Hosted;
use oracle::outcome::Outcome;
use std::any::Any;
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

/// The CPUs. A thread whose job does not end remains when this is dropped.
pub struct Crew(Vec<Sender<Job>>);

impl Crew {
    /// All `count` CPUs of `machine`.
    pub fn new(machine: &Hosted, count: usize) -> Self {
        let cpus = (0..count).map(|cpu| {
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
        Crew(cpus.collect())
    }

    /// Runs a job on a CPU, and waits for it until `deadline`.
    ///
    /// # Errors
    /// How it failed: it panicked, or has not ended.
    pub fn run<R: Send + 'static>(
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
        let _ = self.0[cpu].send(Box::new(job));
        match result.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(outcome) => outcome.map_err(Outcome::Crashed),
            Err(RecvTimeoutError::Timeout) => Err(Outcome::Endless),
            Err(RecvTimeoutError::Disconnected) => Err(Outcome::Crashed("its CPU is gone".into())),
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
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
        let machine = Hosted::with_memory(1, 1 << 20).expect("memory");
        let crew = Crew::new(&machine, 1);
        let soon = Instant::now() + Duration::from_millis(10);
        let endless = || loop {
            thread::park();
        };
        let outcome: Result<(), _> = crew.run(0, soon, endless);
        assert_eq!(outcome, Err(Outcome::Endless));
    }
}
