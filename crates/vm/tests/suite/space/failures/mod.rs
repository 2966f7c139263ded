//! Operations whose requests are refused one after the other: each returns an error, nothing leaks,
//! and the space is as before.

mod mappings;
mod pages;

use crate::refusing;
use crate::world::{P, TestSpace, nothing_left, page, reserved, world};
use hosted::Hosted;
use machine::{Frame, Memory, Ordering, Pager, PagerError, Topology, VaRange};
use vm::pager::MemoryPager;
use vm::swap::SwapSpace;
use vm::{Error, Prot, Resource, Space};

/// The state that must not change when a call fails.
fn state(space: &TestSpace) -> impl PartialEq + std::fmt::Debug + use<> {
    let resident = space.pmap().resident();
    let free = space.vm().frames().free_count();
    (
        space.regions().expect("regions"),
        resident,
        free,
        reserved(space.vm()),
    )
}

/// Refuses each heap allocation of `call` in turn. Returns how often it failed.
fn each_heap<T>(space: &TestSpace, call: impl Fn() -> Result<T, Error>) -> u64 {
    let before = state(space);
    let failed = |error| {
        assert_eq!(error, Error::OutOfMemory(Resource::Heap));
        assert_eq!(state(space), before);
    };
    refusing::each(call, failed).1
}

#[test]
fn a_fault_that_fails_changes_nothing() {
    let space = world(8).cpus(1).space();
    let at = space.map(P, Prot::READ_WRITE).expect("map");
    // The page, three tables below the root, and a PV table.
    for nth in 1..=5 {
        let before = state(&space);
        space.vm().frames().fail_after(nth);
        let refused = Err(Error::OutOfMemory(Resource::Frames));
        assert_eq!(space.store(at, 5), refused);
        assert_eq!(state(&space), before, "frame {nth}");
    }
    space.vm().frames().fail_after(6);
    assert_eq!(space.store(at, 5), Ok(()));
    space.vm().frames().fail_after(0);
    assert_eq!(space.load(at), Ok(5));
}

#[test]
fn a_map_that_fails_changes_nothing() {
    let space = world(8).cpus(1).space();
    let sites = each_heap(&space, || space.map(P, Prot::READ_WRITE));
    assert!(sites > 0, "the first region needs the heap");
    assert_eq!(space.regions().expect("regions").len(), 1);
}

#[test]
fn changes_that_split_regions_fail_cleanly() {
    let space = world(8).cpus(1).space();
    let at = space.map(64 * P, Prot::READ_WRITE).expect("map");
    space.store(at, 1).expect("store");
    let split = |change: &dyn Fn(VaRange) -> Result<(), Error>, first: usize| {
        let each = (first..first + 30).step_by(2);
        let sites = each.map(|index| each_heap(&space, || change(page(at + index * P))));
        assert!(sites.sum::<u64>() > 0, "splitting needs the heap");
    };
    split(&|range| space.unmap(range), 1);
    split(&|range| space.protect(range, Prot::READ), 33);
    assert_eq!(space.load(at), Ok(1));
}

#[test]
fn a_space_that_can_not_be_made_leaves_nothing() {
    let vm = world(8).cpus(1).vm();
    vm.frames().fail_after(1);
    let error = Space::new(&vm).err();
    vm.frames().fail_after(0);
    assert_eq!(error, Some(Error::OutOfMemory(Resource::Frames)));
    nothing_left(&vm);
}

/// The pager's errno for heap allocations that fail, and the table of the swap space.
#[test]
fn stores_without_heap_say_so() {
    let machine = Hosted::with_memory(1, P).expect("memory");
    machine.attach(0);
    let pager = MemoryPager::<Hosted>::new();
    // SAFETY: the frame is the test's.
    unsafe { machine.word(Frame(0), 3) }.store(7, Ordering::Relaxed);
    // SAFETY: the frames are the test's.
    let write = || unsafe { pager.write(&machine, 5, &[Frame(0)], P) };
    let failed = |error| {
        assert_eq!(error, PagerError { errno: 12 });
        assert_eq!(pager.pages(), 0);
    };
    let (_, failures) = refusing::each(write, failed);
    assert_eq!(failures, 3, "a chunk, its place and a page");
    let pager = Box::new(pager);
    refusing::refuse_after(1);
    let space = SwapSpace::new(machine.cpus(), pager, 1_000);
    refusing::refuse_after(0);
    assert_eq!(space.err(), Some(Error::OutOfMemory(Resource::Heap)));
}
