//! A walk shares a slot while another task changes it, under all interleavings.

extern crate std;

use crate::best::Best;
use crate::pv::Table;
use crate::tree::Slot;
use crate::tree::lock::{Watch, lock, lock_beside_walks, unlock};
use alloc::boxed::Box;
use alloc::vec;
use loomed::Loomed;
use loomed::flaw::{Flaw, Site, must_be_found};
use loomed::loom::model::Builder;
use machine::{Execute, Frame, Job};

type TestSlot = Slot<Best<Loomed>>;

fn read(slot: &TestSlot) {
    let held = lock_beside_walks(slot, Watch::Watched);
    assert!(slot.join());
    unlock(slot, held);
    // SAFETY: the walk shares the slot.
    let _ = unsafe { (*slot.look_inside()).leaf };
    slot.leave();
}

/// A walk that need not wait for the lock if others share the slot.
fn read_beside(slot: &TestSlot) {
    if slot.join_others() {
        // SAFETY: the walk shares the slot.
        let _ = unsafe { (*slot.look_inside()).leaf };
        slot.leave();
    }
}

fn change(slot: &TestSlot) {
    let held = lock(slot, Watch::Watched);
    // SAFETY: the lock is held, and no walk shares the slot.
    unsafe { (*slot.inside()).leaf = Table::of(Frame(1)) };
    unlock(slot, held);
}

/// The checker sees a read that races with a write. (A slot in which it has seen one cannot be
/// dropped.)
fn model<const N: usize>(jobs: [fn(&TestSlot); N]) -> impl FnOnce() {
    move || {
        let mut builder = Builder::new();
        // All interleavings of two; three are too many.
        builder.preemption_bound = (N > 2).then_some(2);
        builder.check(move || {
            let slot: &TestSlot = Box::leak(Box::new(Slot::new()));
            let jobs = jobs.map(|job| Box::new(move || job(slot)) as Job);
            Loomed::new(N).execute(vec::Vec::from(jobs));
        });
    }
}

#[test]
fn a_task_that_changes_a_slot_waits_for_a_walk() {
    model([read, change])();
}

#[test]
fn walks_share_a_slot() {
    model([read, read])();
}

#[test]
fn a_walk_comes_without_the_lock_beside_another() {
    model([change, read, read_beside])();
}

#[test]
fn a_walk_that_comes_without_the_lock_unordered_is_found() {
    for comment in [
        "// Acquire: pairs with the release in `join`,",
        "// Release: pairs with the acquire in `join_others`.",
    ] {
        let site = Site::after("tree/slot.rs", include_str!("../slot.rs"), comment);
        must_be_found(Flaw::Relaxed, site, model([change, read, read_beside]));
    }
}

#[test]
fn a_task_that_does_not_wait_is_found() {
    for (flaw, comment) in [
        (Flaw::Blind, "// Acquire: pairs with the release in `leave`"),
        (
            Flaw::Relaxed,
            "// Acquire: pairs with the release in `leave`",
        ),
        (
            Flaw::Relaxed,
            "// Release: pairs with the acquire in `is_shared`.",
        ),
    ] {
        let site = Site::after("tree/slot.rs", include_str!("../slot.rs"), comment);
        must_be_found(flaw, site, model([read, change]));
    }
}
