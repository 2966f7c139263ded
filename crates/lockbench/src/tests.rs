//! Locks that do not work are noticed.

use super::contended::{Stage, contended};
use super::mutex::Ours;
use super::subject::{Line, Subject, free};
use bench::Failure;
use hosted::Hosted;
use machine::CpuRange;
use std::iter;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use sync::spin::Ticket;

/// A fault of a lock.
trait Fault: Send + Sync + 'static {
    /// Returns true if its `n`-th operation runs the section.
    fn runs(n: u64) -> bool;
    /// True if the lock is free when all threads have left.
    const FREE: bool;
}

struct Faulty<F> {
    operations: AtomicU64,
    fault: std::marker::PhantomData<fn() -> F>,
}

impl<F: Fault> Subject for Faulty<F> {
    const EXCLUSIVE: bool = true;
    type Own<'a> = ();

    fn new(_: CpuRange) -> Self {
        Faulty {
            operations: AtomicU64::new(0),
            fault: std::marker::PhantomData,
        }
    }

    fn own(&self) {}

    fn operate(&self, (): &mut (), section: impl FnOnce()) {
        if F::runs(self.operations.fetch_add(1, Relaxed)) {
            section();
        }
    }

    fn verify(&self, _: u64) -> Result<(), String> {
        free(F::FREE)
    }
}

/// Loses an update, as when two threads are inside at once.
enum Loses {}

impl Fault for Loses {
    fn runs(n: u64) -> bool {
        n != 0
    }
    const FREE: bool = true;
}

/// Is never released at the end.
enum Stays {}

impl Fault for Stays {
    fn runs(_: u64) -> bool {
        true
    }
    const FREE: bool = false;
}

fn meet<S: Subject>(threads: usize) -> Result<Vec<u64>, Failure> {
    let machine = Hosted::new(threads);
    let stage = Stage {
        machine: &machine,
        places: &[],
        threads,
        span: Duration::from_millis(5),
    };
    contended::<S>("planted", &stage).map(|sums| sums.operations)
}

fn complaint<S: Subject>() -> String {
    // On a busy computer the thread may have run too late to do anything.
    let has_run = |met: &Result<Vec<u64>, _>| met.as_ref().map_or(true, |sums| sums[0] > 0);
    let met = iter::repeat_with(|| meet::<S>(1)).find(has_run);
    let failure = met.and_then(Result::err).expect("the fault is found");
    assert!(matches!(failure, Failure::Wrong { .. }), "{failure:?}");
    failure.to_string()
}

#[test]
fn a_lost_update_is_found() {
    let text = complaint::<Faulty<Loses>>();
    assert!(
        text.starts_with("planted does not work (1 thread): "),
        "{text}"
    );
    assert!(text.contains("critical sections left"), "{text}");
}

#[test]
fn a_lock_left_locked_is_found() {
    let text = complaint::<Faulty<Stays>>();
    assert!(text.contains("still locked"), "{text}");
}

#[test]
fn a_sound_lock_passes_and_each_thread_counts() {
    let operations = meet::<Ours<Hosted, Ticket<Hosted>>>(2).expect("it works");
    assert_eq!(operations.len(), 2);
    assert!(operations.iter().sum::<u64>() > 0);
}

#[test]
fn both_words_are_verified() {
    let line = Line::default();
    line.write();
    line.read();
    assert_eq!(line.verify(1), Ok(()));
    assert!(line.verify(2).is_err());
}
