//! The seam costs nothing: through the machine contract an algorithm takes exactly
//! the instructions it takes when written straight on `core::sync::atomic`.

// Instructions are those of optimised code.
#![cfg(not(debug_assertions))]

mod callgrind;

use callgrind::per_iteration;

fn same(algorithm: &str) {
    let machine = per_iteration("seam", &format!("{algorithm}-machine"));
    let core = per_iteration("seam", &format!("{algorithm}-core"));
    assert_eq!(machine, core, "{algorithm}");
}

#[test]
fn mcs_costs_nothing() {
    same("mcs");
}

#[test]
fn epoch_costs_nothing() {
    same("epoch");
}

#[test]
fn hazard_sections_cost_no_more_than_epochs() {
    let epoch = per_iteration("seam", "epoch-machine");
    let enter = per_iteration("seam", "hazard-enter");
    assert!(enter <= epoch, "{enter} and {epoch}");
    // With a slot taken, stored, checked and returned; no locked instruction is among them.
    let protect = per_iteration("seam", "hazard-protect");
    assert!(protect <= 2 * epoch, "{protect} and {epoch}");
}
