//! What models of mutual exclusion share.

use checked::Checked;
use checked::loom::model::Builder;
use machine::{Atomics, Execute, Job, SharedCell};
use std::sync::Arc;
use sync::RawLock;

/// A lock and what it guards: a plain counter, which loom lets nobody touch
/// without being ordered after everybody else who did.
pub struct Shared<R> {
    pub lock: R,
    count: <Checked as Atomics>::Cell<u32>,
}

impl<R: RawLock<Checked>> Shared<R> {
    pub fn new() -> Self {
        Shared {
            lock: R::new(),
            count: SharedCell::new(0),
        }
    }

    /// Counts the caller, who holds the lock.
    pub fn add(&self) {
        // SAFETY: the lock is to give us the counter alone; loom checks that.
        unsafe { *self.count.write() += 1 };
    }

    /// The count, for who holds the lock or is alone.
    pub fn get(&self) -> u32 {
        // SAFETY: as in `add`.
        unsafe { *self.count.read() }
    }
}

/// Counts once under the lock.
pub fn increment<R: RawLock<Checked>>(shared: &Shared<R>) {
    let held = shared.lock.lock();
    shared.add();
    // SAFETY: acquired above.
    unsafe { shared.lock.unlock(held) };
}

/// A thread for each element, which counts that many times; nobody is lost.
pub fn exclusion<R: RawLock<Checked> + 'static>(acquisitions: &[u32]) {
    let shared = Arc::new(Shared::<R>::new());
    let jobs = acquisitions.iter().map(|&times| {
        let shared = shared.clone();
        Box::new(move || (0..times).for_each(|_| increment(&*shared))) as Job
    });
    Checked::new(acquisitions.len()).execute(jobs.collect());
    assert_eq!(shared.get(), acquisitions.iter().sum());
}

/// As [`exclusion`], with at most `preemptions` of a thread that could go on.
pub fn bounded<R: RawLock<Checked> + 'static>(preemptions: usize, acquisitions: &'static [u32]) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(|| exclusion::<R>(acquisitions));
}

/// Two threads: every interleaving of two acquisitions and one, and two each with
/// bounded preemption.
pub fn two_threads<R: RawLock<Checked> + 'static>() {
    checked::loom::model(|| exclusion::<R>(&[2, 1]));
    bounded::<R>(3, &[2, 2]);
}
