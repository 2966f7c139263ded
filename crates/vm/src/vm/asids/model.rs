//! A tag that goes from one CPU to another, under all interleavings.

extern crate std;

use super::*;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use loomed::Loomed;
use loomed::flaw::{Flaw, Site, must_be_found};
use loomed::loom::model::Builder;
use machine::{Atomics, Execute, Job, SharedCell, Topology};

struct World {
    asids: Asids<Loomed>,
    /// The TLBs' entries with the tag, which only its owner changes.
    entries: <Loomed as Atomics>::Cell<u64>,
}

/// CPU 0 has a tag of CPU 1's part and gives it back; CPU 1 takes one.
fn model() {
    Builder::new().check(|| {
        let machine = Loomed::new(2);
        let world = Arc::new(World {
            asids: Asids::new(machine.cpus(), 1 << 16).expect("room"),
            entries: SharedCell::new(0),
        });
        let (taker, maker) = (world.clone(), world.clone());
        let first = Arc::new(std::sync::Mutex::new(None));
        let taken = first.clone();
        let nothing = || Box::new(|| ()) as Job;
        let take = move || *taken.lock().unwrap() = maker.asids.take().ok();
        machine.execute(vec![nothing(), Box::new(take)]);
        let tag = first.lock().unwrap().expect("a tag");
        let give = move || {
            world.entries.write();
            world.asids.give(tag);
        };
        let take = move || {
            if taker.asids.take() == Ok(tag) {
                taker.entries.write();
            }
        };
        machine.execute(vec![Box::new(give), Box::new(take)]);
    });
}

#[test]
fn who_takes_a_tag_comes_after_its_last_owner() {
    model();
}

#[test]
fn a_tag_that_orders_nothing_is_found() {
    let comments = [
        "Release: the tag's next owner comes after the last flush of its entries.",
        "Acquire: pairs with `give`; no TLB has an entry with the tag.",
    ];
    for comment in comments {
        let site = Site::after("vm/asids.rs", include_str!("../asids.rs"), comment);
        must_be_found(Flaw::Relaxed, site, model);
    }
}

/// Two CPUs take a tag of one word at once.
#[test]
fn no_tag_is_taken_twice() {
    Builder::new().check(|| {
        let machine = Loomed::new(2);
        let asids = Arc::new(Asids::<Loomed>::new(machine.cpus(), 2).expect("room"));
        let taken = Arc::new([(); 2].map(|()| std::sync::Mutex::new(None)));
        let jobs = (0..2).map(|cpu| {
            let (asids, taken) = (asids.clone(), taken.clone());
            Box::new(move || *taken[cpu].lock().unwrap() = asids.take().ok()) as Job
        });
        machine.execute(jobs.collect());
        let [first, second] = [0, 1].map(|cpu| *taken[cpu].lock().unwrap());
        assert!(first.is_none() || first != second, "{first:?} twice");
    });
}
