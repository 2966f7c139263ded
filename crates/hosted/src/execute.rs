//! One thread for each job.

use crate::Hosted;
use machine::{Execute, Job};
use std::panic::resume_unwind;
use std::thread;

impl Execute for Hosted {
    fn execute(&self, jobs: Vec<Job>) {
        let threads: Vec<_> = jobs
            .into_iter()
            .enumerate()
            .map(|(cpu, job)| {
                let machine = self.clone();
                thread::spawn(move || {
                    machine.attach(cpu);
                    job();
                })
            })
            .collect();
        let results: Vec<_> = threads.into_iter().map(|t| t.join()).collect();
        if let Some(panic) = results.into_iter().find_map(Result::err) {
            resume_unwind(panic);
        }
    }
}
