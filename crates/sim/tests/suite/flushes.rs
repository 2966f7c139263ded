//! What flushing other CPUs' TLBs costs: more to another socket, once for requests that meet, and
//! no interrupt on a machine that broadcasts.

use crate::support;

use machine::{Asid, AtomicInt, Clock, CpuSet, Flush, Mmu};
use sim::Sim;
use sim::profile::MachineProfile;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use support::{Jobs, Line, compute_until, finish, machine, profile, shared};

const ASID: Asid = Asid(1);
/// Nanoseconds after which senders flush, and for which the target computes.
const BEGIN: u64 = 1_000;
const END: u64 = 50_000;

/// What happens on `profile` if each of `senders` flushes the TLB of CPU `target`, which computes,
/// at the same moment: the longest that a sender waits, and how much later the target is than
/// alone, in nanoseconds.
fn flush(profile: &MachineProfile, senders: &[usize], target: usize) -> (u64, u64) {
    let (_, alone) = run(profile, &[], target);
    let (waited, end) = run(profile, senders, target);
    (waited, end - alone)
}

/// The longest that a sender waits, and when the target is done.
fn run(profile: &MachineProfile, senders: &[usize], target: usize) -> (u64, u64) {
    let sim = machine(profile, 1);
    let [waited, done] = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
    let mut jobs: Jobs = Vec::new();
    for &sender in senders {
        let (waited, sim) = (waited.clone(), sim.clone());
        let job = move || {
            let mut targets = CpuSet::EMPTY;
            targets.insert(target);
            compute_until(BEGIN);
            let begin = Sim::now();
            sim.shootdown(&targets, ASID, Flush::All);
            waited.fetch_max(Sim::now() - begin, Ordering::Relaxed);
        };
        jobs.push((sender, Box::new(job)));
    }
    let (end, line) = (done.clone(), shared::<Line>(&sim));
    let computes = move || {
        sim::compute(END as f64);
        // Interrupts are taken before an access.
        line.0.fetch_add(1, Ordering::Relaxed);
        end.store(Sim::now(), Ordering::Relaxed);
    };
    jobs.push((target, Box::new(computes)));
    finish(&sim, jobs);
    let [waited, done] = [waited, done].map(|time| time.load(Ordering::Relaxed));
    (waited, done)
}

#[test]
fn another_socket_is_further_there_and_back() {
    let profile = profile("freebsd-96");
    let [near, far] = [1, 24].map(|target| flush(&profile, &[0], target).0);
    let beyond = profile.latency(0, 24) - profile.latency(0, 1);
    assert_eq!((far - near) * 1000, 2 * beyond);
}

#[test]
fn a_handler_serves_all_that_arrive_before_it_begins() {
    let profile = profile("freebsd-96");
    let handler = profile.ipi.handler / 1000;
    let (alone, late) = flush(&profile, &[1], 0);
    assert_eq!(late, handler);
    // The first begins at once; the others have all come when the second begins.
    let (together, late) = flush(&profile, &[1, 2, 3, 4, 5, 6, 7, 8], 0);
    assert!((1..=2).contains(&(late / handler)), "{late}");
    assert!(together <= alone + 2 * handler, "{together} after {alone}");
}

#[test]
fn a_broadcast_interrupts_no_cpu() {
    let mut profile = profile("freebsd-96");
    profile.ipi.broadcast = 700.0;
    assert_eq!(flush(&profile, &[0], 24), (700, 0));
    assert_eq!(flush(&profile, &[0, 1, 2], 24), (700, 0));
}
