//! CPUs that follow a script.

use hosted::Hosted;
use machine::Cpus;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;
use sync::epoch::{Domain, Protocol};

type Job = Box<dyn FnOnce() + Send>;

/// A CPU that does its jobs, one after the other.
pub struct Actor {
    jobs: Sender<Job>,
    done: Receiver<()>,
}

impl Actor {
    pub fn new(machine: &Hosted, cpu: usize) -> Self {
        let (jobs, todo) = channel::<Job>();
        let (finished, done) = channel();
        let machine = machine.clone();
        thread::spawn(move || {
            machine.attach(cpu);
            for job in todo {
                job();
                let _ = finished.send(());
            }
        });
        Actor { jobs, done }
    }

    pub fn start(&self, job: impl FnOnce() + Send + 'static) {
        self.jobs.send(Box::new(job)).expect("the actor lives");
    }

    pub fn finish(&self) {
        self.done.recv().expect("the job does not panic");
    }

    pub fn finished_within(&self, millis: u64) -> bool {
        self.done
            .recv_timeout(Duration::from_millis(millis))
            .is_ok()
    }

    pub fn run<R: Send + 'static>(&self, job: impl FnOnce() -> R + Send + 'static) -> R {
        let (send, result) = channel();
        self.start(move || send.send(job()).expect("the test waits"));
        self.finish();
        result.recv().expect("the job ended")
    }

    pub fn enter<P: Protocol>(&self, domain: &Arc<Domain<Hosted, P>>) {
        let domain = domain.clone();
        // SAFETY: the actor's thread is the CPU for good, and scripts pair enter
        // with exit.
        self.run(move || unsafe { domain.enter_raw(&Hosted::pin()) });
    }

    pub fn exit<P: Protocol>(&self, domain: &Arc<Domain<Hosted, P>>) -> bool {
        let domain = domain.clone();
        // SAFETY: the actor's thread is the CPU for good, each exit has its enter, and scripts use
        // nothing under the section.
        self.run(move || unsafe { domain.exit_raw(&Hosted::pin()) })
    }
}

pub fn actors<const N: usize>(machine: &Hosted) -> [Actor; N] {
    std::array::from_fn(|cpu| Actor::new(machine, cpu))
}
