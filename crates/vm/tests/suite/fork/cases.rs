use hosted::Hosted;
use machine::{PAGE_SIZE, VaRange};
use std::sync::Arc;
use vm::system::Reservation;
use vm::{Advice, Error, Move, Prot, Space, Vm};

const MIB: usize = 1 << 20;

type System = Arc<Vm<vm::Best<Hosted>>>;

fn system(mib: usize) -> System {
    let machine = Hosted::with_memory(2, mib * MIB).expect("memory");
    machine.attach(0);
    let options = vm::Options {
        fork_tables: TABLES,
        ..vm::Options::default()
    };
    Vm::with_options(machine, options).expect("memory for the VM")
}

fn space(vm: &System) -> Space<vm::Best<Hosted>> {
    Space::new(vm).expect("a space")
}

/// Runs in `space`, and stores.
fn store(space: &Space<vm::Best<Hosted>>, at: usize, value: u64) {
    space.activate();
    space.store(at, value).expect("store");
}

fn load(space: &Space<vm::Best<Hosted>>, at: usize) -> u64 {
    space.activate();
    space.load(at).expect("load")
}

fn page(at: usize) -> VaRange {
    VaRange::sized(at, PAGE_SIZE)
}

#[test]
fn a_child_has_the_content_and_neither_sees_the_others_stores() {
    let vm = system(16);
    let before = vm.frames().free_count();
    let parent = space(&vm);
    let at = parent.map(4 * PAGE_SIZE, Prot::READ_WRITE).expect("map");
    for index in 0..3 {
        store(&parent, at + index * PAGE_SIZE, 10 + index as u64);
    }
    let child = parent.fork().expect("fork");
    store(&parent, at, 100);
    store(&child, at + PAGE_SIZE, 201);
    store(&child, at + 3 * PAGE_SIZE, 203);
    let seen = |space: &_| [0, 1, 2, 3].map(|index| load(space, at + index * PAGE_SIZE));
    assert_eq!(seen(&parent), [100, 11, 12, 0]);
    assert_eq!(seen(&child), [10, 201, 12, 203]);
    assert_eq!(parent.regions(), child.regions());
    drop(parent);
    assert_eq!(seen(&child), [10, 201, 12, 203]);
    drop(child);
    assert_eq!(vm.frames().free_count(), before);
    assert_eq!(vm.swap().reserved(), 0);
}

/// As on x86, where what tasks may write they may read.
#[test]
fn a_page_that_may_only_be_written_is_read_where_it_is_shared() {
    let vm = system(16);
    let parent = space(&vm);
    let at = parent.map(PAGE_SIZE, Prot::READ_WRITE).expect("map");
    store(&parent, at, 1);
    let child = parent.fork().expect("fork");
    let write_only = Prot::new(false, true, false);
    child.protect(page(at), write_only).expect("protect");
    assert_eq!(load(&child, at), 1);
    assert_eq!(child.pmap().lookup(at), parent.pmap().lookup(at));
    store(&child, at, 2);
    assert_eq!((load(&child, at), load(&parent, at)), (2, 1));
}

#[test]
fn who_is_left_alone_writes_without_a_copy() {
    let vm = system(16);
    let parent = space(&vm);
    let at = parent.map(PAGE_SIZE, Prot::READ_WRITE).expect("map");
    store(&parent, at, 1);
    let frame = parent.pmap().lookup(at);
    drop(parent.fork().expect("fork"));
    store(&parent, at, 2);
    assert_eq!(parent.pmap().lookup(at), frame);
    let child = parent.fork().expect("fork");
    store(&parent, at, 3);
    assert_ne!(parent.pmap().lookup(at), frame);
    assert_eq!(child.pmap().lookup(at), frame);
    assert_eq!(load(&child, at), 2);
}

#[test]
fn rights_given_after_a_fork_do_not_unshare() {
    let vm = system(16);
    let parent = space(&vm);
    let at = parent.map(2 * PAGE_SIZE, Prot::READ_WRITE).expect("map");
    store(&parent, at, 1);
    let child = parent.fork().expect("fork");
    for space in [&parent, &child] {
        space.protect(page(at), Prot::READ).expect("protect");
        space.protect(page(at), Prot::READ_WRITE).expect("protect");
    }
    store(&child, at, 2);
    assert_eq!(load(&parent, at), 1);
    store(&parent, at, 3);
    assert_eq!(load(&child, at), 2);
}

#[test]
fn advice_says_what_is_inherited() {
    let vm = system(16);
    let parent = space(&vm);
    let at = parent.map(3 * PAGE_SIZE, Prot::READ_WRITE).expect("map");
    for index in 0..3 {
        store(&parent, at + index * PAGE_SIZE, 1);
    }
    parent.advise(page(at), Advice::DontFork).expect("advise");
    let wiped = page(at + PAGE_SIZE);
    parent.advise(wiped, Advice::WipeOnFork).expect("advise");
    let child = parent.fork().expect("fork");
    child.activate();
    assert!(matches!(child.load(at), Err(Error::Segv(_))));
    assert_eq!(load(&child, at + PAGE_SIZE), 0);
    assert_eq!(load(&child, at + 2 * PAGE_SIZE), 1);
    parent.advise(page(at), Advice::DoFork).expect("advise");
    parent.advise(wiped, Advice::KeepOnFork).expect("advise");
    let child = parent.fork().expect("fork");
    assert_eq!(load(&child, at), 1);
    assert_eq!(load(&child, at + PAGE_SIZE), 1);
}

#[test]
fn a_tree_of_forks_shares_what_nobody_wrote() {
    let vm = system(16);
    let root = space(&vm);
    let at = root.map(5 * PAGE_SIZE, Prot::READ_WRITE).expect("map");
    for index in 0..5 {
        store(&root, at + index * PAGE_SIZE, index as u64);
    }
    let mut line = vec![root];
    for level in 0..5 {
        let child = line[level].fork().expect("fork");
        store(&child, at + level * PAGE_SIZE, 100 + level as u64);
        line.push(child);
    }
    for (level, space) in line.iter().enumerate() {
        for index in 0..5 {
            let own = if index < level { 100 } else { 0 };
            assert_eq!(load(space, at + index * PAGE_SIZE), own + index as u64);
        }
    }
}

#[test]
fn a_fork_that_fails_leaves_all_as_it_was() {
    let vm = system(16);
    let parent = space(&vm);
    for _ in 0..3 {
        let at = parent.map(4 * MIB, Prot::READ_WRITE).expect("map");
        store(&parent, at, 7);
        store(&parent, at + 3 * MIB, 8);
    }
    let regions = parent.regions();
    let (free, reserved) = (vm.frames().free_count(), vm.swap().reserved());
    let mut failures = 0;
    loop {
        vm.frames().fail_after(failures + 1);
        let forked = parent.fork();
        vm.frames().fail_after(0);
        let Err(error) = forked else { break };
        assert!(matches!(error, Error::OutOfMemory(_)), "{error}");
        failures += 1;
        assert_eq!(vm.frames().free_count(), free);
        assert_eq!(vm.swap().reserved(), reserved);
        assert_eq!(parent.regions(), regions);
        for region in &regions {
            store(&parent, region.range.start, 9);
        }
    }
    assert!(failures > 6, "{failures} allocations");
}

#[test]
fn a_mapping_moves_with_its_content() {
    let vm = system(32);
    let space = space(&vm);
    let at = space.map(5 * MIB, Prot::READ_WRITE).expect("map");
    let wall = space.map(PAGE_SIZE, Prot::READ).expect("map");
    assert_eq!(wall, at + 5 * MIB);
    for offset in [0, 2 * MIB, 5 * MIB - PAGE_SIZE] {
        store(&space, at + offset, offset as u64 + 1);
    }
    let old = VaRange::sized(at, 5 * MIB);
    let refused = space.remap(old, 6 * MIB, Move::Never);
    assert!(matches!(refused, Err(Error::NoAddresses { .. })));
    let moved = space.remap(old, 6 * MIB, Move::IfNeeded).expect("remap");
    assert_ne!(moved, at);
    for offset in [0, 2 * MIB, 5 * MIB - PAGE_SIZE] {
        assert_eq!(load(&space, moved + offset), offset as u64 + 1);
    }
    assert_eq!(load(&space, moved + 6 * MIB - PAGE_SIZE), 0);
    assert!(matches!(space.load(at), Err(Error::Segv(_))));
    assert_eq!(vm.swap().reserved(), (6 * MIB / PAGE_SIZE) as u64);
    // Shrinks in place, and grows again.
    let now = VaRange::sized(moved, 6 * MIB);
    assert_eq!(space.remap(now, MIB, Move::Never), Ok(moved));
    let now = VaRange::sized(moved, MIB);
    assert_eq!(space.remap(now, 3 * MIB, Move::Never), Ok(moved));
    assert_eq!(load(&space, moved + 2 * MIB), 0);
    assert_eq!(vm.swap().reserved(), (3 * MIB / PAGE_SIZE) as u64);
}

#[test]
fn what_no_task_may_map_can_not_move() {
    let vm = system(16);
    let space = space(&vm);
    let far = VaRange::sized(1 << 41, 1 << 47);
    let moved = space.remap(far, PAGE_SIZE, Move::Never);
    assert_eq!(moved, Err(Error::NotOne { address: 1 << 41 }));
}

#[test]
fn a_mapping_can_leave_an_empty_one_behind() {
    let vm = system(32);
    let space = space(&vm);
    let at = space.map(4 * PAGE_SIZE, Prot::READ_WRITE).expect("map");
    store(&space, at + PAGE_SIZE, 5);
    let old = VaRange::sized(at, 4 * PAGE_SIZE);
    let to = at + 64 * MIB;
    assert_eq!(space.remap(old, old.len(), Move::LeavingTo(to)), Ok(to));
    assert_eq!(load(&space, to + PAGE_SIZE), 5);
    assert_eq!(load(&space, at + PAGE_SIZE), 0);
    assert_eq!(vm.swap().reserved(), 8);
    // Within one table, and over other mappings.
    let two = VaRange::sized(to, 2 * PAGE_SIZE);
    let over = to + 2 * PAGE_SIZE;
    assert_eq!(space.remap(two, two.len(), Move::To(over)), Ok(over));
    assert_eq!(load(&space, over + PAGE_SIZE), 5);
    assert!(matches!(space.load(to), Err(Error::Segv(_))));
    assert_eq!(vm.swap().reserved(), 6);
}

#[test]
fn tables_go_with_what_they_led_to() {
    let vm = system(64);
    let space = space(&vm);
    // The tables above, which stay.
    let at = space.map(64 * MIB, Prot::READ_WRITE).expect("map");
    store(&space, at, 1);
    space.unmap(VaRange::sized(at, 64 * MIB)).expect("unmap");
    let free = vm.frames().free_count();
    let all = space.map(64 * MIB, Prot::READ_WRITE).expect("map");
    for slot in 0..32 {
        store(&space, all + slot * 2 * MIB, slot as u64);
    }
    assert!(vm.frames().free_count() + 3 * 32 <= free);
    space.unmap(VaRange::sized(all, 64 * MIB)).expect("unmap");
    assert_eq!(vm.frames().free_count(), free);
    // One by one, a few are kept, a leaf and a PV table each.
    let all = space.map(64 * MIB, Prot::READ_WRITE).expect("map");
    for slot in 0..32 {
        store(&space, all + slot * 2 * MIB, slot as u64);
        let one = VaRange::sized(all + slot * 2 * MIB, 2 * MIB);
        space.unmap(one).expect("unmap");
    }
    assert!(vm.frames().free_count() + 18 > free);
}

#[test]
fn moving_to_and_fro_uses_nothing_up() {
    let vm = system(16);
    let space = space(&vm);
    let mut at = space.map(2 * MIB, Prot::READ_WRITE).expect("map");
    let rest = |at| VaRange::sized(at + MIB, MIB);
    space.protect(rest(at), Prot::NONE).expect("protect");
    for page in 0..MIB / PAGE_SIZE {
        store(&space, at + page * PAGE_SIZE, page as u64);
    }
    let used = (vm.frames().free_count(), vm.swap().reserved());
    for round in 0..60_000 {
        let old = at;
        let moved = space.remap(VaRange::sized(at, MIB), 2 * MIB, Move::IfNeeded);
        at = moved.unwrap_or_else(|error| panic!("round {round}: {error}"));
        assert_ne!(at, old);
        space.unmap(rest(old)).expect("unmap");
        space.protect(rest(at), Prot::NONE).expect("protect");
        let page = round % 256;
        assert_eq!(load(&space, at + page * PAGE_SIZE), page as u64);
    }
    assert_eq!(vm.swap().reserved(), used.1);
    assert!(vm.frames().free_count() + 64 > used.0);
}
