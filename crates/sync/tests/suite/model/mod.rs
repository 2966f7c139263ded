//! Shared parts of models of mutual exclusion.

use loomed::Loomed;
use loomed::loom::model::Builder;
use machine::{Atomics, Cpus, Execute, Job, SharedCell};
use std::sync::Arc;
use sync::RawLock;

/// A lock and its data: a plain counter, which loom lets no thread touch
/// without being ordered after all earlier accesses.
pub struct Shared<R> {
    pub lock: R,
    count: <Loomed as Atomics>::Cell<u32>,
}

impl<R: RawLock<Loomed>> Shared<R> {
    pub fn new() -> Self {
        Shared {
            lock: R::new(),
            count: SharedCell::new(0),
        }
    }

    /// Counts the caller, which holds the lock.
    pub fn add(&self) {
        // SAFETY: the lock is to give this task exclusive access to the counter; loom checks that.
        unsafe { *self.count.write() += 1 };
    }

    /// The count, for a caller that holds the lock or is alone.
    pub fn get(&self) -> u32 {
        // SAFETY: the caller holds the lock, or is alone; loom checks that.
        unsafe { *self.count.read() }
    }
}

/// Counts once under the lock.
pub fn increment<R: RawLock<Loomed>>(shared: &Shared<R>) {
    let held = shared.lock.lock();
    shared.add();
    // SAFETY: acquired above.
    unsafe { shared.lock.unlock(held) };
}

/// Counts once, and lets others run while it holds the lock.
fn increment_slowly<R: RawLock<Loomed>>(shared: &Shared<R>) {
    let held = shared.lock.lock();
    shared.add();
    Loomed::relax(0);
    // SAFETY: acquired above.
    unsafe { shared.lock.unlock(held) };
}

/// A thread for each element, which counts that many times; no count is lost.
pub fn exclusion<R: RawLock<Loomed> + 'static>(acquisitions: &[u32]) {
    let shared = Arc::new(Shared::<R>::new());
    let jobs = acquisitions.iter().map(|&times| {
        let shared = shared.clone();
        Box::new(move || (0..times).for_each(|_| increment(&*shared))) as Job
    });
    Loomed::new(acquisitions.len()).execute(jobs.collect());
    assert_eq!(shared.get(), acquisitions.iter().sum());
}

/// A thread for each element counts that many times, with at most `preemptions` of a thread that
/// could go on; no count is lost.
pub fn bounded<R: RawLock<Loomed> + 'static>(preemptions: usize, acquisitions: &'static [u32]) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(|| exclusion::<R>(acquisitions));
}

/// `others` run concurrently with a `try_lock` of a lock that was taken and released before: one
/// job for each, with that many acquisitions.
///
/// A queue lock whose nodes are used again can be fooled here: between `try_lock`'s read of the
/// last node, which is free, and its exchange, two acquisitions of another task put the same node
/// there again, held. A third task then queues behind the attempt.
pub fn reused_node<R: RawLock<Loomed> + 'static>(
    preemptions: Option<usize>,
    others: &'static [u32],
) {
    let mut builder = Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(move || {
        let shared = Arc::new(Shared::<R>::new());
        let first = shared.clone();
        Loomed::new(1).execute(vec![Box::new(move || increment(&*first)) as Job]);
        let trier = shared.clone();
        let mut jobs = vec![Box::new(move || {
            if let Some(held) = trier.lock.try_lock() {
                trier.add();
                // SAFETY: just acquired.
                unsafe { trier.lock.unlock(held) };
            }
        }) as Job];
        jobs.extend(others.iter().map(|&times| {
            let shared = shared.clone();
            Box::new(move || (0..times).for_each(|_| increment_slowly(&*shared))) as Job
        }));
        Loomed::new(jobs.len()).execute(jobs);
        Loomed::new(1).execute(vec![Box::new(move || {
            assert!(!shared.lock.is_locked());
            let expected = 1 + others.iter().sum::<u32>();
            assert!((expected..=expected + 1).contains(&shared.get()));
        })]);
    });
}

/// Two threads: every interleaving of two acquisitions and one, and two each with
/// bounded preemption.
pub fn two_threads<R: RawLock<Loomed> + 'static>() {
    loomed::loom::model(|| exclusion::<R>(&[2, 1]));
    bounded::<R>(3, &[2, 2]);
}
