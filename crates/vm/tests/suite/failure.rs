//! Every allocation of map, fault, protect, unmap and space creation fails once: the
//! call returns an error, nothing leaks, the space is as before.

use crate::refusing;

use hosted::Hosted;
use machine::{Frame, Memory, Ordering, PAGE_SIZE, Pager, PagerError, Topology, VaRange};
use std::sync::Arc;
use vm::pager::MemoryPager;
use vm::swap::SwapSpace;
use vm::system::Reservation;
use vm::{Best, Error, Prot, Resource, Space, Vm};

type TestVm = Arc<Vm<Best<Hosted>>>;
type TestSpace = Space<Best<Hosted>>;

fn vm() -> TestVm {
    let machine = Hosted::with_memory(1, 8 << 20).expect("memory");
    machine.attach(0);
    Vm::new(machine).expect("memory for the VM")
}

/// The state that must not change when a call fails.
fn state(vm: &TestVm, space: &TestSpace) -> impl PartialEq + std::fmt::Debug + use<> {
    let resident = space.pmap().resident();
    let free = vm.frames().free_count();
    (space.regions(), resident, free, vm.swap().reserved())
}

/// Fails each frame allocation of `call` in turn, until it needs no more.
fn each_frame(vm: &TestVm, space: &TestSpace, call: impl Fn() -> Result<(), Error>) -> u64 {
    for nth in 1.. {
        let before = state(vm, space);
        vm.frames().fail_after(nth);
        let result = call();
        vm.frames().fail_after(0);
        match result {
            Ok(()) => return nth - 1,
            Err(error) => assert_eq!(error, Error::OutOfMemory(Resource::Frames)),
        }
        assert_eq!(state(vm, space), before, "frame allocation {nth}");
    }
    unreachable!()
}

/// Fails each heap allocation of `call` in turn, until it needs no more.
fn each_heap(vm: &TestVm, space: &TestSpace, call: impl Fn() -> Result<(), Error>) -> u64 {
    for nth in 1.. {
        let before = state(vm, space);
        refusing::refuse_after(nth);
        let result = call();
        refusing::refuse_after(0);
        match result {
            Ok(()) => return nth - 1,
            Err(error) => assert_eq!(error, Error::OutOfMemory(Resource::Heap)),
        }
        assert_eq!(state(vm, space), before, "heap allocation {nth}");
    }
    unreachable!()
}

#[test]
fn a_fault_that_fails_changes_nothing() {
    let vm = vm();
    let space = Space::new(&vm).expect("a space");
    space.activate();
    let at = space.map(PAGE_SIZE, Prot::READ_WRITE).expect("map");
    // The page, three tables below the root, and a PV table.
    assert_eq!(each_frame(&vm, &space, || space.store(at, 5)), 5);
    assert_eq!(space.load(at), Ok(5));
}

#[test]
fn a_map_that_fails_changes_nothing() {
    let vm = vm();
    let space = Space::new(&vm).expect("a space");
    let sites = each_heap(&vm, &space, || {
        space.map(PAGE_SIZE, Prot::READ_WRITE).map(|_| ())
    });
    assert!(sites > 0, "the first region needs the heap");
    assert_eq!(space.regions().len(), 1);
}

#[test]
fn changes_that_split_regions_fail_cleanly() {
    let vm = vm();
    let space = Space::new(&vm).expect("a space");
    space.activate();
    let at = space.map(64 * PAGE_SIZE, Prot::READ_WRITE).expect("map");
    let page = |index: usize| VaRange::sized(at + index * PAGE_SIZE, PAGE_SIZE);
    space.store(at, 1).expect("store");
    let split = |index: usize, change: &dyn Fn(VaRange) -> Result<(), Error>| {
        each_heap(&vm, &space, || change(page(index)))
    };
    let unmaps: u64 = (1..31)
        .step_by(2)
        .map(|i| split(i, &|r| space.unmap(r)))
        .sum();
    let read_only = |r| space.protect(r, Prot::READ);
    let protects: u64 = (33..63).step_by(2).map(|i| split(i, &read_only)).sum();
    assert!(unmaps > 0 && protects > 0, "splitting needs the heap");
    assert_eq!(space.load(at), Ok(1));
}

#[test]
fn a_space_that_can_not_be_made_leaves_nothing() {
    let vm = vm();
    let free = vm.frames().free_count();
    vm.frames().fail_after(1);
    let error = Space::new(&vm).err();
    vm.frames().fail_after(0);
    assert_eq!(error, Some(Error::OutOfMemory(Resource::Frames)));
    assert_eq!(vm.frames().free_count(), free);
}

/// The pager's errno for heap allocations that fail, and the table of the swap space.
#[test]
fn stores_without_heap_say_so() {
    let machine = Hosted::with_memory(1, PAGE_SIZE).expect("memory");
    machine.attach(0);
    let pager = MemoryPager::<Hosted>::new();
    machine.word(Frame(0), 3).store(7, Ordering::Relaxed);
    let write = || pager.write(&machine, 5, &[Frame(0)], PAGE_SIZE);
    for nth in 1.. {
        refusing::refuse_after(nth);
        let written = write();
        refusing::refuse_after(0);
        if written.is_ok() {
            assert_eq!(nth, 4, "a chunk, its place and a page");
            break;
        }
        assert_eq!(written, Err(PagerError { errno: 12 }));
        assert_eq!(pager.pages(), 0);
    }
    let pager = Box::new(pager);
    refusing::refuse_after(1);
    let space = SwapSpace::new(machine.cpus(), pager, 1_000);
    refusing::refuse_after(0);
    assert_eq!(space.err(), Some(Error::OutOfMemory(Resource::Heap)));
}
