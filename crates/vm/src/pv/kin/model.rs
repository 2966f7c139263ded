//! Members leave, come and let go of pages, concurrently with a walk and with each other, under all
//! interleavings.

extern crate std;

use super::*;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use core::ptr::without_provenance;
use loomed::Loomed;
use loomed::flaw::{Flaw, Site, must_be_found};
use loomed::loom::model::Builder;
use machine::{Atomics, Execute, Job};

struct World {
    seats: Seats<Loomed>,
    /// The pmaps of three members, and a page: a use of one that is gone races with the task that
    /// took it.
    pmaps: [<Loomed as Atomics>::Cell<u64>; 3],
    page: <Loomed as Atomics>::Cell<u64>,
}

/// The seat of the first member.
const FIRST: usize = 0;

fn owner(pmap: usize) -> Owner {
    Owner {
        pmap: without_provenance(pmap),
        slot: without_provenance(pmap),
    }
}

impl World {
    /// A walk, which uses the pmaps of the members that it finds in the first three seats.
    fn walk(&self) {
        self.seats.begin_walk();
        for seat in [0, 1, 2] {
            if self.seats.leaf(seat).is_some() {
                // SAFETY: a walk is under way, and the seat has a leaf table.
                let owner = unsafe { self.seats.owner(seat) };
                self.pmaps[owner.pmap.addr()].read();
            }
        }
        self.seats.end_walk();
    }

    /// The first member leaves, and frees its pmap.
    fn leave(&self) {
        let is_last = self.seats.leave(FIRST as u8);
        self.pmaps[FIRST].write();
        assert!(!is_last, "the other stays");
    }

    /// One more comes, and may get the first member's seat.
    fn join(&self) {
        self.pmaps[2].write();
        let seat = self.seats.join(owner(2), Frame(2));
        assert!(seat.is_some_and(|seat| seat != 1), "the other has its seat");
    }

    /// A member uses the page, and lets go of it; the last one takes the page.
    fn let_go(&self) {
        self.page.read();
        if self.seats.take(0, 1) != 0 {
            self.page.write();
        }
    }

    /// A member that has the page alone writes it.
    fn write(&self) {
        if self.seats.count(0) == 1 {
            self.page.write();
        }
    }
}

/// Runs the jobs concurrently, with two members that both have a page.
fn model<const CPUS: usize>(jobs: [fn(&World); CPUS]) -> impl FnOnce() {
    move || {
        let mut builder = Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let world = Arc::new(World {
                seats: Seats::of(owner(FIRST)),
                pmaps: array::from_fn(|_| SharedCell::new(0)),
                page: SharedCell::new(0),
            });
            world.seats.begin(FIRST as u8, Frame(0));
            assert_eq!(world.seats.join(owner(1), Frame(1)), Some(1));
            world.seats.add(0, 1);
            world.seats.add(0, 1);
            let start = |job: fn(&World)| {
                let world = world.clone();
                Box::new(move || job(&world)) as Job
            };
            Loomed::new(CPUS).execute(vec::Vec::from(jobs.map(start)));
        });
    }
}

fn leaving() -> impl FnOnce() {
    model([World::walk, World::leave])
}

fn coming() -> impl FnOnce() {
    model([World::walk, World::join])
}

fn changing() -> impl FnOnce() {
    model([World::walk, World::leave, World::join])
}

fn taking() -> impl FnOnce() {
    model([World::let_go, World::let_go])
}

fn writing() -> impl FnOnce() {
    model([World::let_go, World::write])
}

#[test]
fn a_member_is_there_as_long_as_a_walk_uses_it() {
    leaving()();
}

#[test]
fn a_walk_finds_whole_members() {
    coming()();
}

#[test]
fn a_seat_changes_hands_beside_a_walk() {
    changing()();
}

#[test]
fn the_last_has_the_page() {
    taking()();
}

#[test]
fn who_is_left_alone_writes_the_page() {
    writing()();
}

fn site(comment: &str) -> Site {
    Site::after("pv/kin.rs", include_str!("../kin.rs"), comment)
}

#[test]
fn missing_orders_are_found() {
    for (comment, model) in [
        (
            "// Pairs with the fence in `begin_walk`.",
            Box::new(leaving()) as Box<dyn FnOnce()>,
        ),
        ("// Pairs with the fence in `leave`.", Box::new(leaving())),
        (
            "// AcqRel: with the release in `end_walk`",
            Box::new(leaving()),
        ),
        (
            "// Release: pairs with the exchange in `leave`.",
            Box::new(leaving()),
        ),
        (
            "// Acquire: pairs with the release of the member",
            Box::new(changing()),
        ),
        (
            "// Release: pairs with the acquire in `leaf`.",
            Box::new(coming()),
        ),
        (
            "// Acquire: pairs with the release in `join`.",
            Box::new(coming()),
        ),
        (
            "// Acquire: pairs with the release in `take`.",
            Box::new(writing()),
        ),
        (
            "// Release: pairs with the acquire in `count`;",
            Box::new(taking()),
        ),
    ] {
        must_be_found(Flaw::Relaxed, site(comment), model);
    }
}

#[test]
fn a_member_that_does_not_wait_for_a_walk_is_found() {
    let waits = site("// Relaxed: the exchange acquires.");
    must_be_found(Flaw::Blind, waits, leaving());
}
