//! One thread at a subject, without contention.

use super::subject::Subject;
use machine::CpuRange;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// A subject and one thread.
pub trait Alone {
    /// The time that `operations` take.
    fn time(&mut self, operations: u64) -> Duration;

    /// Fails unless the subject is in the right state.
    ///
    /// # Errors
    /// The error.
    fn verify(&self) -> Result<(), String>;
}

struct One<S> {
    subject: S,
    operations: u64,
}

/// A new subject.
pub fn alone<S: Subject>(cpus: CpuRange) -> Box<dyn Alone> {
    Box::new(One {
        subject: S::new(cpus),
        operations: 0,
    })
}

impl<S: Subject> Alone for One<S> {
    fn time(&mut self, operations: u64) -> Duration {
        let subject = black_box(&self.subject);
        let mut own = subject.own();
        let start = Instant::now();
        for _ in 0..operations {
            subject.operate(&mut own, || ());
        }
        let time = start.elapsed();
        self.operations += operations;
        time
    }

    fn verify(&self) -> Result<(), String> {
        self.subject.verify(self.operations)
    }
}
