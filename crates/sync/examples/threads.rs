//! `sync` in a program with threads: `cargo run --release -p scalevm-sync --example threads`.
//!
//! The machine is `hosted`'s: each thread that uses epochs or counters becomes one of its CPUs.
//! Locks need no more than the machine's type.

use hosted::Hosted;
use machine::Topology;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::thread;
use sync::counter::Limited;
use sync::epoch::Domain;
use sync::obm::Threads;

const THREADS: usize = 4;
const ROUNDS: u64 = 10_000;

/// A mutex of one byte, with `lock_api`'s guards, in a `static`.
static TOTAL: lock_api::Mutex<Threads<Hosted>, u64> = lock_api::Mutex::new(0);

fn main() {
    let machine = Hosted::new(THREADS);
    let domain = Domain::<Hosted>::new(machine.cpus());
    let tickets = Limited::<Hosted>::new(machine.cpus(), 1_000);
    let current = AtomicPtr::new(Box::into_raw(Box::new(0u64)));
    thread::scope(|scope| {
        for cpu in 0..THREADS {
            let (machine, domain, tickets, current) = (&machine, &domain, &tickets, &current);
            scope.spawn(move || {
                machine.attach(cpu);
                for round in 0..ROUNDS {
                    *TOTAL.lock() += 1;
                    assert!(read(domain, current) < ROUNDS);
                    if round % 16 == 0 && tickets.reserve(1) {
                        replace(domain, current, round);
                    }
                }
            });
        }
    });
    // The threads have ended, so this one may be a CPU.
    machine.on_cpu(0, || domain.barrier());
    // SAFETY: no thread is left that could read it.
    drop(unsafe { Box::from_raw(current.into_inner()) });
    assert_eq!(*TOTAL.lock(), THREADS as u64 * ROUNDS);
    println!(
        "{} additions, {} values replaced",
        *TOTAL.lock(),
        machine.on_cpu(0, || tickets.used())
    );
}

/// Reads the value, which another thread may be replacing.
fn read(domain: &Domain<Hosted>, current: &AtomicPtr<u64>) -> u64 {
    let _section = domain.enter();
    // Acquire: pairs with the release in `replace`.
    // SAFETY: what the pointer names is dropped after this section.
    unsafe { *current.load(Ordering::Acquire) }
}

/// Replaces the value; the old one is dropped when no section can see it.
fn replace(domain: &Domain<Hosted>, current: &AtomicPtr<u64>, value: u64) {
    let new = Box::into_raw(Box::new(value));
    // Release: pairs with the acquire in `read`.
    let old = current.swap(new, Ordering::AcqRel);
    // SAFETY: it was made from a box, and only this thread has taken it out.
    domain.defer_drop(unsafe { Box::from_raw(old) });
}
