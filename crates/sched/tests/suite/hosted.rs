//! The scheduler on threads of the host: effects that virtual time cannot show, as its CPUs run one
//! at a time.

use crate::fifo;

use fifo::Fifo;
use hosted::Hosted;
use machine::conformance::{self, alike};
use machine::{Clock, Cpus, Execute, Pinned, Tasks, Topology};
use sched::freebsd::Ule;
use sched::linux::Cfs;
use sched::openbsd::OpenBsd;
use sched::{Best, Policy, Sched};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use sync::epoch::Domain;

const MICRO: u64 = 1_000;
const MILLI: u64 = 1_000_000;

fn machine<P: Policy<Hosted>>(cpus: usize) -> Hosted {
    let machine = Hosted::new(cpus);
    let made = machine.schedule(Sched::<Hosted, P>::new);
    made.expect("addresses for stacks");
    machine
}

/// Computes for `time` nanoseconds by the clock, and lets others run meanwhile.
fn compute(time: u64) {
    let end = Hosted::now() + time;
    while Hosted::now() < end {
        Hosted::safe_point();
    }
}

fn spin(time: u64) {
    let end = Hosted::now() + time;
    while Hosted::now() < end {
        Hosted::relax(0);
    }
}

/// The contract's own check of contexts; a slice of the policy lasts for up to `LONGER` times the
/// check's.
fn contexts<P: Policy<Hosted>, const LONGER: u64>() {
    for cpus in [1, 3] {
        let machine = machine::<P>(cpus);
        let run = |jobs| machine.execute(jobs);
        conformance::outnumber::<Hosted>(&run);
        conformance::wake_ups::<Hosted>(&run);
        let (compute, pinned) = (|time| compute(LONGER * time), |time| spin(LONGER * time));
        conformance::pins::<Hosted>(&run, compute, pinned);
    }
}

#[test]
fn contexts_of_best() {
    contexts::<Best<Hosted>, 4>();
}

#[test]
fn contexts_of_the_systems_policies() {
    contexts::<Cfs<Hosted>, 8>();
    contexts::<Ule<Hosted>, 20>();
    contexts::<OpenBsd<Hosted>, 40>();
}

/// Pairs of tasks pass a turn back and forth while other tasks only compute.
#[test]
fn no_wake_up_of_a_pair_is_lost() {
    const PAIRS: usize = 8;
    const ROUNDS: u64 = 2_000;
    let machine = machine::<Best<Hosted>>(3);
    let turns: Arc<[AtomicU64]> = (0..PAIRS).map(|_| AtomicU64::new(0)).collect();
    let names: Arc<[Mutex<Option<hosted::Task>>]> =
        (0..2 * PAIRS).map(|_| Mutex::new(None)).collect();
    let (seen, left) = (turns.clone(), AtomicUsize::new(2 * PAIRS));
    alike(&machine, 2 * PAIRS + 3, move |me| {
        if me >= 2 * PAIRS {
            while left.load(Ordering::Relaxed) > 0 {
                compute(50 * MICRO);
            }
            return;
        }
        *names[me].lock().expect("no panic") = Some(Hosted::current_task());
        let turn = &seen[me / 2];
        for round in 0..ROUNDS {
            let mine = 2 * round + me as u64 % 2;
            while turn.load(Ordering::Acquire) != mine {
                Hosted::park();
            }
            turn.store(mine + 1, Ordering::Release);
            let other = *names[me ^ 1].lock().expect("no panic");
            other.into_iter().for_each(Hosted::unpark);
        }
        left.fetch_sub(1, Ordering::Relaxed);
    });
    let all = turns
        .iter()
        .all(|turn| turn.load(Ordering::Relaxed) == 2 * ROUNDS);
    assert!(all, "{turns:?}");
}

#[test]
fn sleepers_that_outnumber_the_cpus_sleep_as_long_as_they_ask() {
    let machine = machine::<Best<Hosted>>(2);
    let slept = Arc::new(AtomicUsize::new(0));
    let count = slept.clone();
    alike(&machine, 60, move |me| {
        for round in 0..20 {
            let until = Hosted::now() + (me as u64 * 7 + round * 13) % 40 * 20 * MICRO;
            Hosted::sleep_until(until);
            assert!(Hosted::now() >= until, "woken too early");
            count.fetch_add(1, Ordering::Relaxed);
            compute(MICRO);
        }
    });
    assert_eq!(slept.load(Ordering::Relaxed), 60 * 20);
}

/// A task that never calls the scheduler makes room for the others, all the same.
#[test]
fn each_task_gets_its_turn() {
    const TASKS: usize = 9;
    let machine = machine::<Best<Hosted>>(2);
    let done: Arc<[AtomicU64]> = (0..TASKS).map(|_| AtomicU64::new(0)).collect();
    let seen = done.clone();
    let end = Hosted::now() + 400 * MILLI;
    alike(&machine, TASKS, move |me| {
        while Hosted::now() < end {
            compute(20 * MICRO);
            seen[me].fetch_add(1, Ordering::Relaxed);
        }
    });
    // The host decides how much, since it also runs other work on these CPUs.
    assert!(
        done.iter().all(|done| done.load(Ordering::Relaxed) > 0),
        "{done:?}"
    );
}

/// Readers on the move: a section is a pin, so none of them leaves its CPU within one, and an
/// object that is retired is there as long as a reader may look at it.
#[test]
fn sections_of_epochs_stay_on_their_cpus() {
    const READERS: usize = 10;
    let machine = machine::<Fifo<Hosted>>(3);
    let domain = Arc::new(Domain::<Hosted>::new(machine.cpus()));
    // An object is a word that is true while the object is alive.
    let objects: Arc<[AtomicBool]> = (0..4096).map(|_| AtomicBool::new(true)).collect();
    let current = Arc::new(AtomicUsize::new(0));
    let over = Arc::new(AtomicBool::new(false));
    let moves = Arc::new(AtomicUsize::new(0));
    let seen = moves.clone();
    alike(&machine, READERS + 2, move |me| {
        if me >= READERS {
            // Two tasks replace the object and wait for the readers of the old one.
            for _ in 0..500 {
                let old = current.fetch_add(1, Ordering::AcqRel);
                domain.wait();
                objects[old].store(false, Ordering::Release);
                compute(30 * MICRO);
            }
            over.store(true, Ordering::Release);
            return;
        }
        let mut last = None;
        while !over.load(Ordering::Acquire) {
            let section = domain.enter();
            let cpu = Hosted::pin().cpu();
            let object = current.load(Ordering::Acquire);
            spin(5 * MICRO);
            assert!(
                objects[object].load(Ordering::Acquire),
                "freed under a reader"
            );
            assert_eq!(Hosted::pin().cpu(), cpu);
            drop(section);
            seen.fetch_add(
                usize::from(last.replace(cpu) != Some(cpu)),
                Ordering::Relaxed,
            );
            Hosted::safe_point();
        }
    });
    assert!(
        moves.load(Ordering::Relaxed) > READERS,
        "no reader ever moved"
    );
}
