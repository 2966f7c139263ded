//! The checked machine keeps the contract on every schedule loom finds, and a
//! machine with one weak spot does not.

mod weak;

use loomed::Loomed;
use loomed::loom::model::Builder;
use machine::conformance::{self as suite, FRAMES};
use std::panic::{AssertUnwindSafe, catch_unwind};
use weak::{Flaw, Weak};

/// Runs a check under loom with this many preemptions.
fn model(preemptions: usize, check: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(check);
}

fn machine() -> Loomed {
    Loomed::with_memory(2, FRAMES)
}

#[test]
fn atomics() {
    model(2, || suite::atomics(&machine()));
    model(2, || suite::cells(&machine()));
}

#[test]
fn orders() {
    model(3, || suite::message_passing(&machine(), 1));
    model(3, || suite::store_buffer(&machine(), 1));
}

#[test]
fn cpus() {
    model(2, || suite::cpus(&machine()));
    model(2, || suite::spinning(&machine()));
}

#[test]
fn tasks() {
    model(3, || suite::parking(&machine()));
    model(3, || suite::permits(&machine()));
    model(2, || suite::locals(&machine()));
    model(2, || suite::anchor(&machine()));
    model(1, || suite::clock(&machine()));
}

#[test]
fn memory() {
    model(2, || suite::memory(&machine()));
    model(2, || suite::usable(&machine()));
}

#[test]
fn one_cpus_translation() {
    model(2, || suite::translation(&machine()));
    model(2, || suite::execution(&machine()));
    model(2, || suite::accessed_dirty(&machine()));
    model(2, || suite::flushes(&machine()));
    model(2, || suite::asids(&machine()));
    model(2, || suite::exact_tlb(&machine()));
}

#[test]
fn large_pages() {
    let machine = || Loomed::with_memory(2, 2 * machine::pte::ENTRIES);
    model(2, move || suite::large_pages(&machine()));
    model(2, move || suite::large_flushes(&machine()));
    model(2, move || suite::large_changes(&machine()));
    model(2, move || suite::large_harvest(&machine(), 1));
    model(2, move || suite::exact_large_tlb(&machine()));
    model(1, move || suite::large_shootdown(&machine()));
}

#[test]
fn the_walker_against_a_kernel() {
    model(2, || suite::harvest(&machine(), 1));
}

#[test]
fn shootdown() {
    model(1, || suite::shootdown(&machine()));
}

#[test]
fn stores_through_stale_entries() {
    model(2, || suite::stale_stores(&machine(), 1, 2));
}

#[test]
fn shooting_at_each_other() {
    model(2, || suite::mutual_shootdown(&machine(), 1));
}

/// Returns true if loom finds a schedule on which a check fails on a machine with a flaw.
fn finds<const FLAW: Flaw>(check: fn(&Weak<FLAW>)) -> bool {
    let run = move || model(3, move || check(&Weak::new(Loomed::new(2))));
    catch_unwind(AssertUnwindSafe(run)).is_err()
}

#[test]
fn a_weak_machine_is_found_out() {
    assert!(finds::<{ weak::PUBLISHES_WITHOUT_FENCE }>(|m| {
        suite::store_buffer(m, 1);
    }));
    assert!(finds::<{ weak::PINGS_NOBODY }>(|m| {
        suite::asymmetric_store_buffer(m, 1);
    }));
    assert!(finds::<{ weak::RELEASES_NOTHING }>(|m| {
        suite::message_passing(m, 1);
    }));
    assert!(finds::<{ weak::ADDS_IN_TWO_STEPS }>(suite::atomics));
    assert!(finds::<{ weak::LOSES_WAKE_UPS }>(suite::parking));
    assert!(finds::<{ weak::LOSES_WAKE_UPS }>(suite::permits));
}

#[test]
fn its_wrapper_is_not_what_is_found() {
    assert!(!finds::<{ weak::NONE }>(|m| suite::store_buffer(m, 1)));
    assert!(!finds::<{ weak::NONE }>(|m| suite::message_passing(m, 1)));
    assert!(!finds::<{ weak::NONE }>(suite::atomics));
    assert!(!finds::<{ weak::NONE }>(suite::parking));
    assert!(!finds::<{ weak::NONE }>(suite::permits));
}
