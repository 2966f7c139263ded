//! The hosted machine keeps the contract; a machine that breaks it is caught.

use crate::broken;

use broken::{Broken, Flaw};
use hosted::{Hosted, Options};
use machine::conformance as suite;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Room for a 2 MiB page behind the suite's own frames.
const MEMORY: usize = 4 << 20;

fn machine() -> Hosted {
    Hosted::with_memory(2, MEMORY).expect("4 MiB of address space")
}

#[test]
fn keeps_the_contract() {
    suite::all(&machine());
}

#[test]
fn keeps_it_when_asked_again() {
    let machine = machine();
    for _ in 0..3 {
        suite::all(&machine);
        suite::exact_tlb(&machine);
        suite::exact_large_tlb(&machine);
    }
}

#[test]
fn larger_machines_keep_it_too() {
    suite::all(&Hosted::with_memory(64, MEMORY).expect("4 MiB of address space"));
}

/// An embedder's machine: holes behind the suite's frames, a kernel's half, few tags.
fn embedded() -> Hosted {
    Hosted::with_options(Options {
        reserved: [1024..1100, 1101..1200].into(),
        asids: 3,
        kernel_half: true,
        watched: false,
        ..Options::new(2, 2 * MEMORY)
    })
    .expect("8 MiB of address space")
}

#[test]
fn machines_of_kernels_keep_it_too() {
    suite::all(&embedded());
    suite::exact_tlb(&embedded());
    suite::all(&Broken::<{ broken::NONE }>::new(embedded()));
}

/// Returns true if a check fails on an embedded machine with a flaw.
fn catches_embedded<const FLAW: Flaw>(check: impl Fn(&Broken<FLAW>)) -> bool {
    let broken = Broken::<FLAW>::new(embedded());
    catch_unwind(AssertUnwindSafe(|| check(&broken))).is_err()
}

#[test]
fn memory_that_is_handed_over_twice_is_caught() {
    assert!(catches_embedded::<{ broken::MEMORY_TWICE }>(suite::usable));
    assert!(catches::<{ broken::MEMORY_TWICE }>(suite::usable));
}

#[test]
fn a_kernel_in_the_way_is_caught() {
    assert!(catches_embedded::<{ broken::KERNEL_AMONG_USERS }>(
        suite::kernel_entries
    ));
    assert!(catches_embedded::<{ broken::KERNEL_HANDED_OVER }>(
        suite::kernel_entries
    ));
}

#[test]
fn a_machine_without_tags_is_caught() {
    assert!(catches::<{ broken::NO_ASIDS }>(suite::asids));
}

/// Returns true if a check fails on a machine with a flaw.
fn catches<const FLAW: Flaw>(check: impl Fn(&Broken<FLAW>)) -> bool {
    let broken = Broken::<FLAW>::new(machine());
    catch_unwind(AssertUnwindSafe(|| check(&broken))).is_err()
}

#[test]
fn the_wrapper_itself_breaks_nothing() {
    let sound = Broken::<{ broken::NONE }>::new(machine());
    suite::all(&sound);
    suite::exact_tlb(&sound);
    suite::exact_large_tlb(&sound);
}

#[test]
fn a_shootdown_that_flushes_nothing_is_caught() {
    assert!(catches::<{ broken::NO_SHOOTDOWN }>(suite::shootdown));
    assert!(catches::<{ broken::NO_SHOOTDOWN }>(suite::many_requests));
}

/// Stores and a shootdown overlap only if the scheduler lets them, so it may take some tries.
#[test]
fn stale_stores_are_caught() {
    let caught = || catches::<{ broken::NO_SHOOTDOWN }>(|m| suite::stale_stores(m, 1_000, 20_000));
    assert!((0..200).any(|_| caught()));
}

#[test]
fn a_shootdown_that_spares_the_initiator_is_caught() {
    assert!(catches::<{ broken::SPARES_ITSELF }>(suite::shootdown));
}

#[test]
fn a_mailbox_that_overflows_silently_is_caught() {
    assert!(catches::<{ broken::LOSES_REQUESTS }>(suite::many_requests));
}

#[test]
fn flushes_that_forget_too_little_are_caught() {
    assert!(catches::<{ broken::NO_LOCAL_FLUSH }>(suite::flushes));
    assert!(catches::<{ broken::NO_LOCAL_FLUSH }>(suite::large_pages));
    assert!(catches::<{ broken::FLUSHES_ONE_PAGE }>(suite::flushes));
}

/// The contract: a flush that names a part of a large page drops all of it.
#[test]
fn large_pages_that_outlive_a_flush_are_caught() {
    assert!(catches::<{ broken::KEEPS_LARGE }>(suite::large_flushes));
    assert!(catches::<{ broken::KEEPS_LARGE }>(suite::large_shootdown));
    assert!(catches::<{ broken::KEEPS_LARGE }>(suite::large_changes));
    assert!(!catches::<{ broken::KEEPS_LARGE }>(suite::large_pages));
}

#[test]
fn a_tlb_without_tags_is_caught() {
    assert!(catches::<{ broken::ONE_ASID }>(suite::asids));
}

#[test]
fn a_tlb_that_forgets_by_itself_is_not_exact() {
    assert!(catches::<{ broken::FORGETFUL_TLB }>(suite::exact_tlb));
    assert!(catches::<{ broken::FORGETFUL_TLB }>(suite::exact_large_tlb));
    assert!(!catches::<{ broken::FORGETFUL_TLB }>(suite::all));
}

#[test]
fn a_walker_that_loses_dirty_bits_is_caught() {
    assert!(catches::<{ broken::LOSES_DIRTY }>(suite::accessed_dirty));
    assert!(catches::<{ broken::LOSES_DIRTY }>(|m| suite::harvest(
        m, 300
    )));
    assert!(catches::<{ broken::LOSES_DIRTY }>(suite::large_pages));
    assert!(catches::<{ broken::LOSES_DIRTY }>(suite::large_changes));
    assert!(catches::<{ broken::LOSES_DIRTY }>(
        |m| suite::large_harvest(m, 300)
    ));
}

#[test]
fn a_walker_that_ignores_rights_is_caught() {
    assert!(catches::<{ broken::IGNORES_RIGHTS }>(suite::translation));
    assert!(catches::<{ broken::IGNORES_RIGHTS }>(suite::large_pages));
}

#[test]
fn a_walker_that_executes_data_is_caught() {
    assert!(catches::<{ broken::EXECUTES_DATA }>(suite::execution));
    assert!(catches::<{ broken::EXECUTES_DATA }>(suite::large_pages));
}

#[test]
fn memory_that_is_not_zeroed_or_copied_is_caught() {
    assert!(catches::<{ broken::NO_ZERO }>(suite::memory));
    assert!(catches::<{ broken::NO_COPY }>(suite::memory));
}

#[test]
fn jobs_on_the_wrong_cpus_are_caught() {
    assert!(catches::<{ broken::WRONG_CPU }>(suite::cpus));
}

#[test]
fn broken_tasks_are_caught() {
    assert!(catches::<{ broken::CLOCK_GOES_BACK }>(suite::clock));
    assert!(catches::<{ broken::CLOCK_STANDS_STILL }>(suite::clock));
    assert!(catches::<{ broken::MANY_ANCHORS }>(suite::anchor));
    assert!(catches::<{ broken::FORGETS_LOCALS }>(suite::locals));
}
