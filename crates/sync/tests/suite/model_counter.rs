//! The limited counter under the exhaustive checker.

use loomed::Loomed;
use loomed::loom::model::Builder;
use machine::{Atomic, Atomics, Execute, Job, Ordering, SharedCell, Topology};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use sync::counter::Limited;

type Flag = <Loomed as Atomics>::AtomicU32;

fn explore(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// Two CPUs compete for the same last unit: exactly one gets it.
#[test]
fn last_unit_goes_to_one() {
    explore(5, || {
        let machine = Loomed::new(2);
        let counter = Arc::new(Limited::<Loomed>::with_stock(machine.cpus(), 1, 1));
        let data: Arc<<Loomed as Atomics>::Cell<u32>> = Arc::new(SharedCell::new(0));
        let job = || {
            let (counter, data) = (counter.clone(), data.clone());
            Box::new(move || {
                if counter.reserve(1) {
                    data.write(); // alone, or a race
                    counter.release(1);
                }
            }) as Job
        };
        machine.execute(vec![job(), job()]);
        assert_eq!(counter.used(), 0);
    });
}

/// With two units and one wanted by each of two CPUs, no request is refused, wherever
/// the units lie.
#[test]
fn nobody_is_refused_while_room_is_left() {
    explore(5, || {
        let machine = Loomed::new(2);
        let counter = Arc::new(Limited::<Loomed>::with_stock(machine.cpus(), 2, 1));
        let job = || {
            let counter = counter.clone();
            Box::new(move || {
                for _ in 0..2 {
                    assert!(counter.reserve(1), "a unit was free");
                    counter.release(1);
                }
            }) as Job
        };
        machine.execute(vec![job(), job()]);
        assert_eq!(counter.used(), 0);
    });
}

/// A unit is released on a CPU whose stock was emptied already, then another is
/// reserved from a stock not emptied yet: at each instant one is free, so the third
/// CPU must get one.
fn unit_moves_behind_the_gatherer<const ROUNDS: usize>() {
    explore(3, || {
        let machine = Loomed::new(3);
        let counter = Limited::<Loomed, ROUNDS>::with_rounds(machine.cpus(), 2, 1);
        let counter = Arc::new(counter);
        let c = counter.clone();
        machine.execute(vec![Box::new(move || assert!(c.reserve(2)))]);

        let (first, second) = (Arc::new(Flag::new(0)), Arc::new(Flag::new(0)));
        let mut jobs: Vec<Job> = Vec::new();
        let (c, released) = (counter.clone(), first.clone());
        jobs.push(Box::new(move || {
            c.release(1); // to stock 0
            released.store(1, Ordering::Release);
        }));
        let (c, released) = (counter.clone(), second.clone());
        jobs.push(Box::new(move || {
            c.release(1); // to stock 1: from here on a unit is free
            released.store(1, Ordering::Release);
            if first.load(Ordering::Acquire) == 1 {
                assert!(c.reserve(1)); // two were free, and the third CPU takes one
            }
        }));
        jobs.push(Box::new(move || {
            if second.load(Ordering::Acquire) == 1 {
                assert!(counter.reserve(1), "refused while a unit was free");
            }
        }));
        machine.execute(jobs);
    });
}

#[test]
fn refusal_is_exact() {
    unit_moves_behind_the_gatherer::<2>();
}

#[test]
fn refusal_without_second_round_is_caught() {
    let run = AssertUnwindSafe(unit_moves_behind_the_gatherer::<1>);
    assert!(catch_unwind(run).is_err(), "a broken counter passed");
}
