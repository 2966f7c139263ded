//! The one-byte and the adaptive mutex with their turnstile, under the checker.

use crate::parking;

use loomed::Loomed;
use loomed::flaw::{Flaw, Site, must_be_found};
use parking::*;
use sync::adaptive::Adaptive;
use sync::obm::{Obm, RestrictedObm};

#[test]
fn obm_2() {
    explore(None, || exclusion::<Obm<Loomed, 0>>(2));
}

/// The spinning phase, of one round.
#[test]
fn obm_spins_2() {
    explore(None, || exclusion::<Obm<Loomed, 1>>(2));
}

/// All schedules of three CPUs with at most two preemptions.
#[test]
fn obm_3() {
    explore(Some(2), || exclusion::<Obm<Loomed, 0>>(3));
}

#[test]
fn restricted_2() {
    explore(None, || exclusion::<RestrictedObm<Loomed, 0>>(2));
}

/// A spinner that waits for long, so that no other task acquires the lock before it. Of two CPUs,
/// all schedules with at most three preemptions.
#[test]
fn restricted_spins_2() {
    explore(Some(3), || exclusion::<RestrictedObm<Loomed, 1>>(2));
}

/// All schedules of three CPUs with at most two preemptions.
#[test]
fn restricted_3() {
    explore(Some(2), || exclusion::<RestrictedObm<Loomed, 0>>(3));
}

/// A release after which one task is parked and another spins.
#[test]
fn the_next_owner_sees_what_the_last_one_wrote() {
    let text = include_str!("../../src/obm/restricted.rs");
    let comments = [
        "// Release: pairs with the acquire of the next owner.",
        "// Acquire: pairs with the release in `unlock`.\n            let claimed",
    ];
    for comment in comments {
        let site = Site::after("obm/restricted.rs", text, comment);
        must_be_found(Flaw::Relaxed, site, || {
            explore(Some(1), || exclusion::<RestrictedObm<Loomed, 1>>(3));
        });
    }
}

#[test]
fn adaptive_2() {
    explore(None, || exclusion::<Adaptive<Loomed, 0>>(2));
}

/// All schedules of three CPUs with at most two preemptions.
#[test]
fn adaptive_3() {
    explore(Some(2), || exclusion::<Adaptive<Loomed, 0>>(3));
}

/// The mutants are made from this one, so it has to pass.
#[test]
fn faithful() {
    explore(None, || exclusion::<MutantObm<FAITHFUL>>(2));
    explore(Some(2), || exclusion::<MutantObm<FAITHFUL>>(3));
}

#[test]
fn lost_wake_up_between_byte_and_turnstile() {
    assert!(caught(None, || exclusion::<MutantObm<NO_RECHECK>>(2)));
}

#[test]
fn contested_bit_dropped() {
    assert!(caught(None, || exclusion::<MutantObm<DROPS_CONTESTED>>(2)));
}

#[test]
fn unlock_without_exchange() {
    assert!(caught(None, || exclusion::<MutantObm<STORES>>(2)));
}

#[test]
fn unlock_without_release() {
    let text = include_str!("../../src/blocking.rs");
    let comment = "// Release: pairs with the acquire of the next owner.";
    let site = Site::after("blocking.rs", text, comment);
    must_be_found(Flaw::Relaxed, site, || {
        explore(None, || exclusion::<Obm<Loomed, 0>>(2))
    });
}

#[test]
fn lock_without_exchange() {
    assert!(caught(None, || exclusion::<MutantObm<NO_EXCHANGE>>(2)));
}

#[test]
fn waking_never_given_back() {
    assert!(caught(Some(2), || exclusion::<MutantObm<KEEPS_WAKING>>(3)));
}
