//! The one-byte and the adaptive mutex with their turnstile, under the checker.

mod parking;

use checked::Checked;
use parking::*;
use sync::adaptive::Adaptive;
use sync::obm::Obm;

#[test]
fn obm_2() {
    explore(None, || exclusion::<Obm<Checked, 0>>(2));
}

/// The spinning phase, of one round.
#[test]
fn obm_spins_2() {
    explore(None, || exclusion::<Obm<Checked, 1>>(2));
}

/// All schedules of three CPUs with at most two preemptions.
#[test]
fn obm_3() {
    explore(Some(2), || exclusion::<Obm<Checked, 0>>(3));
}

#[test]
fn adaptive_2() {
    explore(None, || exclusion::<Adaptive<Checked, 0>>(2));
}

/// All schedules of three CPUs with at most two preemptions.
#[test]
fn adaptive_3() {
    explore(Some(2), || exclusion::<Adaptive<Checked, 0>>(3));
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
    assert!(caught(None, || exclusion::<MutantObm<RELAXED_UNLOCK>>(2)));
}

#[test]
fn lock_without_exchange() {
    assert!(caught(None, || exclusion::<MutantObm<NO_EXCHANGE>>(2)));
}

#[test]
fn waking_never_given_back() {
    assert!(caught(Some(2), || exclusion::<MutantObm<KEEPS_WAKING>>(3)));
}
