//! Linux's lists of pages: batches, charges, and pages that are used again before a batch is
//! emptied.

use crate::page_queues::{frames, free, map, map_and_free};
use baselines::linux::{Batches, Lruvecs};
use hosted::Hosted;
use machine::{Frame, Topology};
use std::collections::HashSet;
use std::sync::Arc;
use vm::system::{Extent, Part};

#[test]
fn pages_come_and_go_by_31() {
    let machine = Hosted::new(1);
    machine.attach(0);
    let lists =
        Lruvecs::<Hosted>::new(&Batches::V6_12, Extent::new(machine.cpus(), 100, 0)).expect("room");
    let map = |range| map(&lists, range);
    let free = |range| free(&lists, range);
    map(0..30);
    map(0..30);
    assert_eq!((lists.listed(), lists.charged()), (vec![], 64));
    map(30..40);
    assert_eq!(lists.listed(), frames(0..31));
    map(40..65);
    assert_eq!((lists.listed(), lists.charged()), (frames(0..62), 128));
    // Frees a page that is still in the batch, and 29 of the list; then one is used again, and one
    // more is freed.
    free(64..65);
    free(0..29);
    map(5..6);
    free(29..30);
    let expected: Vec<Frame> = [5].into_iter().chain(30..62).map(Frame).collect();
    let mut listed = lists.listed();
    listed.sort();
    assert_eq!(listed, expected);
    assert_eq!(lists.charged(), 128 - 31);
    // Pages that were never mapped.
    free(90..100);
    assert_eq!(lists.charged(), 128 - 31);
}

#[test]
fn batches_of_4_15_are_smaller() {
    let machine = Hosted::new(1);
    machine.attach(0);
    let lists =
        Lruvecs::<Hosted>::new(&Batches::V4_15, Extent::new(machine.cpus(), 100, 0)).expect("room");
    map(&lists, 0..13);
    assert_eq!((lists.listed(), lists.charged()), (vec![], 32));
    map(&lists, 13..42);
    assert_eq!((lists.listed(), lists.charged()), (frames(0..42), 64));
    free(&lists, 0..31);
    assert_eq!((lists.listed().len(), lists.charged()), (42, 64));
    free(&lists, 31..32);
    assert_eq!((lists.listed().len(), lists.charged()), (10, 32));
}

/// Many CPUs map and free the same pages.
#[test]
fn each_page_is_in_one_list_once() {
    const CPUS: usize = 4;
    const FRAMES: usize = 70;
    let machine = Hosted::new(CPUS);
    let lists = Arc::new(
        Lruvecs::<Hosted>::new(&Batches::V6_12, Extent::new(machine.cpus(), FRAMES, 0))
            .expect("room"),
    );
    let used = map_and_free((&machine, CPUS), &lists, FRAMES, |_, _| ());
    machine.on_cpu(0, || {
        let listed = lists.listed();
        let once: HashSet<Frame> = listed.iter().copied().collect();
        assert_eq!(once.len(), listed.len());
        // Pages in use that are not listed are in a batch, and so are listed pages that are not in
        // use.
        let in_use = |frame: &Frame| used[frame.index()];
        let waiting = once.iter().filter(|frame| !in_use(frame)).count();
        assert!(waiting <= CPUS * 30, "{waiting}");
    });
}
