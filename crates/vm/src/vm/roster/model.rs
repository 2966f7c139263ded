//! Two CPUs make places concurrently, under all interleavings.

extern crate std;

use super::*;
use alloc::vec;
use loomed::Loomed;
use loomed::flaw::{Flaw, Site, must_be_found};
use loomed::loom::model::Builder;
use machine::{Execute, Job};

/// Two CPUs take the first tags of a part that has no places yet.
fn prepared_at_once() {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let roster = Arc::new(Roster::<Loomed, usize>::new().expect("room"));
        let job = |tag: u16| -> Job {
            let roster = roster.clone();
            Box::new(move || {
                let one = Arc::new(usize::from(tag));
                roster.prepare(Asid(tag)).expect("room");
                roster.enter(Asid(tag), Arc::downgrade(&one));
                let found = roster.first(usize::from(tag)..usize::from(tag) + 1);
                assert_eq!(found.map(|(_, found)| *found), Some(*one), "lost");
                roster.strike(Asid(tag));
            })
        };
        Loomed::new(2).execute(vec::Vec::from([job(1), job(2)]));
    });
}

#[test]
fn two_make_places_at_once() {
    prepared_at_once();
}

#[test]
fn places_that_are_not_whole_are_found() {
    let comments = [
        "Acquire: pairs with the release in `make`.",
        "Release: a task that finds the places finds them whole.",
    ];
    for comment in comments {
        let site = Site::after("vm/roster.rs", include_str!("../roster.rs"), comment);
        must_be_found(Flaw::Relaxed, site, prepared_at_once);
    }
}
