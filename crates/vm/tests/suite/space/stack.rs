//! Stacks that grow.

use crate::refusing;
use crate::world::{P, SLOT, TestSpace, active, is_segv, nothing_left, pages, reserved, world};
use machine::{Execute, Job};
use std::sync::Arc;
use vm::{At, Bring, Error, Flags, HIGHEST, Limit, MAP_START, Mappings, Prot, Request, Space};

/// Where the tests' stacks end: at the border of a node of the tree.
const TOP: usize = 1 << 39;

fn map(space: &TestSpace, at: usize, pages: usize, prot: Prot, flags: Flags) {
    let request = Request::anonymous(pages * P, prot)
        .at(At::Fixed(at))
        .with(flags);
    space.map_as(&request).expect("map");
}

/// A space with a stack of two pages below [`TOP`].
fn space() -> TestSpace {
    let space = without();
    map(&space, TOP - 2 * P, 2, Prot::READ_WRITE, Flags::GROWS_DOWN);
    space
}

/// A space without one.
fn without() -> TestSpace {
    world(16).commits(1 << 20).space()
}

/// As [`space`], in the place of another.
fn again(old: TestSpace) -> TestSpace {
    let space = active(old.vm());
    drop(old);
    map(&space, TOP - 2 * P, 2, Prot::READ_WRITE, Flags::GROWS_DOWN);
    space
}

fn start(space: &TestSpace) -> usize {
    space
        .regions()
        .expect("regions")
        .last()
        .expect("the stack")
        .range
        .start
}

#[test]
fn a_stack_grows_to_where_it_is_used() {
    let space = space();
    space.store(TOP - 8, 1).expect("store");
    space.store(TOP - 3 * P, 2).expect("the next page");
    assert_eq!(start(&space), TOP - 3 * P);
    // Over slots and within one, with charged pages all the way.
    for offset in [700 * P, 2 * SLOT + 5 * P, 8 << 20] {
        assert_eq!(space.load(TOP - offset), Ok(0));
        assert_eq!(start(&space), TOP - offset);
        assert_eq!(reserved(space.vm()), (offset / P) as u64);
    }
    assert_eq!(space.regions().expect("regions").len(), 1);
    assert!(is_segv(space.store(TOP - (8 << 20) - 8, 1)), "the limit");
    assert_eq!(space.load(TOP - 3 * P), Ok(2));
    // The kernel's accesses are as the task's.
    let other = again(space);
    other.copy_out(TOP - 10 * P, &[7; 16]).expect("copy_out");
    assert_eq!(start(&other), TOP - 10 * P);
}

#[test]
fn the_limit_counts_from_the_end() {
    let space = space();
    space.set_limit(Limit::Stack, Some(4 * P)).expect("a limit");
    assert!(is_segv(space.store(TOP - 5 * P, 1)));
    space.store(TOP - 4 * P, 1).expect("as large as it may be");
    assert!(is_segv(space.store(TOP - 5 * P, 1)));
    space.set_limit(Limit::Stack, None).expect("no limit");
    space.store(TOP - (1 << 30), 1).expect("without a limit");
    space.set_limit(Limit::Stack, Some(0)).expect("a limit");
    assert!(is_segv(space.store(TOP - (1 << 30) - 8, 1)));
}

#[test]
fn only_stacks_grow() {
    let space = without();
    map(&space, TOP - P, 1, Prot::READ_WRITE, Flags::NONE);
    assert!(is_segv(space.store(TOP - 2 * P, 1)));
    let vm = space.vm().clone();
    let (free, live) = (vm.frames().free_count(), refusing::live());
    for offset in [2 * P, SLOT, SLOT + 8, 100 * SLOT, 1 << 36] {
        assert!(is_segv(space.load(TOP - offset)));
    }
    assert!(is_segv(space.load(1 << 20)));
    assert_eq!(vm.frames().free_count(), free);
    assert_eq!(refusing::live(), live, "a hole took kernel memory");
}

#[test]
fn growth_is_charged_like_any() {
    let space = world(16).commits(4).space();
    map(&space, TOP - 2 * P, 2, Prot::READ_WRITE, Flags::GROWS_DOWN);
    assert!(is_segv(space.store(TOP - 5 * P, 1)), "no swap space");
    assert_eq!(reserved(space.vm()), 2);
    space.store(TOP - 4 * P, 1).expect("this fits");
}

#[test]
fn growth_is_limited_like_any() {
    let space = space();
    space
        .set_limit(Limit::AddressSpace, Some(4 * P))
        .expect("a limit");
    space.set_limit(Limit::Data, Some(0)).expect("a limit");
    assert!(is_segv(space.store(TOP - 5 * P, 1)));
    assert_eq!(reserved(space.vm()), 2);
    space
        .store(TOP - 4 * P, 1)
        .expect("this fits; a stack is no data");
    let space = again(space);
    space
        .set_limit(Limit::Locked, Some(3 * P))
        .expect("a limit");
    space.lock_all(Mappings::CURRENT, Bring::Now).expect("lock");
    assert!(is_segv(space.store(TOP - 4 * P, 1)));
    space.store(TOP - 3 * P, 1).expect("this fits");
}

/// Takes all addresses from `from` to `to`.
fn fill(space: &TestSpace, from: usize, to: usize) {
    map(space, from, (to - from) / P, Prot::NONE, Flags::NONE);
}

#[test]
fn what_is_placed_keeps_its_distance_from_stacks() {
    let space = without();
    let stack = MAP_START + 300 * P;
    map(&space, stack, 2, Prot::READ_WRITE, Flags::GROWS_DOWN);
    let place = |space: &TestSpace, pages: usize| space.map(pages * P, Prot::NONE);
    assert_eq!(place(&space, 44), Ok(MAP_START), "as near as may be");
    let child = space.fork().expect("fork");
    for space in [&space, &child] {
        assert_eq!(place(space, 1), Ok(stack + 2 * P), "256 pages are kept");
        let hint = |at| space.map_as(&Request::anonymous(P, Prot::NONE).at(At::Hint(at)));
        assert_ne!(hint(stack - 256 * P), Ok(stack - 256 * P));
        space.unmap(pages(stack - 257 * P, 1)).expect("unmap");
        assert_eq!(hint(stack - 257 * P), Ok(stack - 257 * P));
        // A mapping that names the place gets it.
        let free = Request::anonymous(P, Prot::NONE).at(At::Free(stack - P));
        assert_eq!(space.map_as(&free), Ok(stack - P));
        // And hides the stack.
        assert_eq!(hint(stack - 2 * P), Ok(stack - 2 * P));
    }
}

#[test]
fn the_last_room_is_not_a_stacks() {
    let space = without();
    let arena = 64 << 30;
    let start = MAP_START + arena;
    let stack = start + 300 * P;
    map(&space, stack, 1, Prot::READ_WRITE, Flags::GROWS_DOWN);
    fill(&space, MAP_START, start);
    fill(&space, stack + P, HIGHEST);
    let place = |pages: usize| space.map(pages * P, Prot::NONE);
    let bytes = 45 * P;
    assert_eq!(place(45), Err(Error::NoAddresses { bytes }));
    assert_eq!(place(44), Ok(start));
    assert_eq!(place(1), Err(Error::NoAddresses { bytes: P }));
}

/// Tasks that use one stack at all depths concurrently, and one that maps and unmaps
/// in its way: all stored values stay, and every page is charged once.
#[test]
fn a_stack_grows_under_several_tasks() {
    const TASKS: usize = 3;
    const PAGES: usize = 1_500;
    let vm = world(32).cpus(TASKS + 1).apart();
    let machine = vm.machine();
    let space = machine.on_cpu(0, || {
        let space = Space::new(&vm).expect("a space");
        map(&space, TOP - 2 * P, 2, Prot::READ_WRITE, Flags::GROWS_DOWN);
        space
    });
    let space = Arc::new(space);
    let user = |task: usize| {
        let space = space.clone();
        Box::new(move || {
            space.activate();
            for page in (task..PAGES).step_by(TASKS) {
                let at = TOP - (page + 1) * P;
                space.store(at, page as u64 + 1).expect("store");
            }
        }) as Job
    };
    let mapper = {
        let space = space.clone();
        Box::new(move || {
            let below = pages(TOP - (PAGES + 300) * P, 1);
            for _ in 0..500 {
                space.map_fixed(below, Prot::READ).expect("map");
                space.unmap(below).expect("unmap");
            }
        }) as Job
    };
    machine.execute((0..TASKS).map(user).chain([mapper]).collect());
    machine.on_cpu(0, || {
        space.activate();
        for page in 0..PAGES {
            assert_eq!(space.load(TOP - (page + 1) * P), Ok(page as u64 + 1));
        }
        assert_eq!(start(&space), TOP - PAGES * P);
        assert_eq!(space.regions().expect("regions").len(), 1);
        assert_eq!(reserved(&vm), PAGES as u64);
        drop(Arc::into_inner(space).expect("all jobs have ended"));
        nothing_left(&vm);
    });
}
