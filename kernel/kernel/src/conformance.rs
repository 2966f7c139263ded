//! The command-line word `conformance`: checks that the machine keeps its contract.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};
use machine::conformance::{self, Smallest};
use machine::{Clock, Cpus, Job, Scheduler, Tasks, Topology};
use metal::Metal;
use metal::report::{end, report};

/// Checks everything, and ends the machine.
pub fn run(machine: Metal) -> ! {
    match machine.cpus().len() {
        1 => conformance::single(&machine),
        _ => conformance::all(&machine),
    }
    let scheduler: &'static Smallest<Metal> = Box::leak(Box::new(Smallest::new(machine.cpus())));
    metal::schedule(scheduler, Box::new(move || contexts(scheduler)))
}

/// The checks of contexts and interrupts, in a task.
fn contexts(scheduler: &'static Smallest<Metal>) {
    let run = |jobs| run_all(scheduler, jobs);
    conformance::outnumber::<Metal>(&run);
    conformance::pins::<Metal>(&run, compute, compute);
    conformance::wake_ups::<Metal>(&run);
    report(format_args!("exit 0"));
    end(0)
}

/// Runs jobs to their ends.
fn run_all(scheduler: &'static Smallest<Metal>, jobs: Vec<Job>) {
    let left = Arc::new(AtomicUsize::new(jobs.len()));
    for job in jobs {
        let left = left.clone();
        scheduler.start(Box::new(move || {
            job();
            left.fetch_sub(1, Ordering::Release);
        }));
    }
    while left.load(Ordering::Acquire) > 0 {
        Metal::sleep_until(Metal::now() + 1_000_000);
    }
}

/// Computes for `time` nanoseconds, with safe points at which the scheduler may take the CPU.
fn compute(time: u64) {
    let end = Metal::now() + time;
    while Metal::now() < end {
        if Metal::pins() == 0 {
            Metal::safe_point();
        }
    }
}
