//! What holds however a fork treats tables.

use crate::world::{
    MIB, P, SLOT, System, TestSpace, World, active, is_segv, load, nothing_left, page, pages,
    reserved, store, world,
};
use machine::VaRange;
use std::sync::Barrier;
use vm::system::ForkTables;
use vm::{Advice, Bring, Error, Footprint, Move, Prot};

fn family(tables: ForkTables, mib: usize) -> World {
    world(mib).with(|options| options.fork_tables = tables)
}

/// As on x86, where what tasks may write they may read.
pub fn a_page_that_may_only_be_written_is_read_where_it_is_shared(tables: ForkTables) {
    let vm = family(tables, 16).vm();
    let parent = active(&vm);
    let at = parent.map(P, Prot::READ_WRITE).expect("map");
    store(&parent, at, 1);
    let child = parent.fork().expect("fork");
    let write_only = Prot::new(false, true, false);
    child.protect(page(at), write_only).expect("protect");
    assert_eq!(load(&child, at), 1);
    assert_eq!(child.pmap().lookup(at), parent.pmap().lookup(at));
    store(&child, at, 2);
    assert_eq!((load(&child, at), load(&parent, at)), (2, 1));
}

pub fn who_is_left_alone_writes_without_a_copy(tables: ForkTables) {
    let vm = family(tables, 16).vm();
    let parent = active(&vm);
    let at = parent.map(P, Prot::READ_WRITE).expect("map");
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

/// Pages of a slot, enough for its table to be shared.
const MANY: usize = 64;

/// A space with `slots` times 2 MiB. The first pages of each are touched.
fn touched(vm: &System, slots: usize) -> (TestSpace, usize) {
    let space = active(vm);
    let at = space.map(slots * SLOT, Prot::READ_WRITE).expect("map");
    let at = at.next_multiple_of(SLOT);
    for (slot, page) in (0..slots).flat_map(|slot| (0..MANY).map(move |page| (slot, page))) {
        store(&space, place(at, slot, page), word(slot, page));
    }
    (space, at)
}

fn place(at: usize, slot: usize, page: usize) -> usize {
    at + slot * SLOT + page * P
}

fn word(slot: usize, page: usize) -> u64 {
    (slot * 1_000 + page) as u64 + 1
}

/// The content of `space` at the first slot.
fn content(space: &TestSpace, at: usize) -> Vec<u64> {
    (0..MANY)
        .map(|page| load(space, place(at, 0, page)))
        .collect()
}

fn proportional(space: &TestSpace) -> u64 {
    let footprints = space.scan(0, usize::MAX).expect("memory");
    footprints.iter().map(|one| one.proportional).sum()
}

/// A page of memory, as a footprint counts it.
const WHOLE: u64 = P as u64 * Footprint::FRACTION;

pub fn what_is_resident_and_whose_is_exact(tables: ForkTables) {
    let vm = family(tables, 32).vm();
    let (parent, at) = touched(&vm, 3);
    let alone = proportional(&parent);
    assert_eq!(alone, 3 * MANY as u64 * WHOLE);
    let child = parent.fork().expect("fork");
    for space in [&parent, &child] {
        assert_eq!(space.pmap().resident(), 3 * MANY);
        assert_eq!(proportional(space), alone / 2);
    }
    store(&child, at, 7);
    assert_eq!(proportional(&child), alone / 2 + WHOLE / 2);
    assert_eq!(proportional(&parent), alone / 2 + WHOLE / 2);
    let grandchild = child.fork().expect("fork");
    assert_eq!(grandchild.pmap().resident(), 3 * MANY);
    drop(child);
    assert_eq!(proportional(&grandchild), alone / 2 + WHOLE / 2);
    drop(parent);
    assert_eq!(proportional(&grandchild), alone);
    drop(grandchild);
    nothing_left(&vm);
}

pub fn whoever_goes_first_the_others_keep_it(tables: ForkTables) {
    let vm = family(tables, 32).vm();
    for gone in 0..3 {
        let (parent, at) = touched(&vm, 2);
        let child = parent.fork().expect("fork");
        let grandchild = child.fork().expect("fork");
        let mut family = vec![parent, child, grandchild];
        let expected = content(&family[0], at);
        drop(family.remove(gone));
        store(&family[0], at, 1_000);
        assert_eq!(content(&family[1], at), expected);
        assert_eq!(content(&family[0], at)[1..], expected[1..]);
        drop(family.remove(1));
        store(&family[0], at + P, 1_001);
        assert_eq!(content(&family[0], at)[..2], [1_000, 1_001]);
        assert_eq!(content(&family[0], at)[2..], expected[2..]);
        drop(family);
        nothing_left(&vm);
    }
}

pub fn who_is_left_alone_has_his_pages_without_a_copy(tables: ForkTables) {
    let vm = family(tables, 32).vm();
    let (parent, at) = touched(&vm, 1);
    let frames: Vec<_> = (0..MANY)
        .map(|page| parent.pmap().lookup(place(at, 0, page)))
        .collect();
    let child = parent.fork().expect("fork");
    parent.exec();
    assert_eq!(parent.pmap().resident(), 0);
    for (page, &frame) in frames.iter().enumerate() {
        store(&child, place(at, 0, page), 5);
        assert_eq!(child.pmap().lookup(place(at, 0, page)), frame);
    }
}

pub fn half_a_slot_goes_in_one_of_them(tables: ForkTables) {
    let vm = family(tables, 32).vm();
    let (parent, at) = touched(&vm, 2);
    let child = parent.fork().expect("fork");
    let other = parent.fork().expect("fork");
    let half = pages(at, MANY / 2);
    let expected = content(&parent, at);
    child.unmap(half).expect("unmap");
    other.discard(half).expect("discard");
    assert_eq!(content(&parent, at), expected);
    assert_eq!(content(&other, at)[MANY / 2..], expected[MANY / 2..]);
    assert_eq!(content(&other, at)[..MANY / 2], [0; MANY / 2]);
    child.activate();
    assert!(is_segv(child.load(at)));
    assert_eq!(load(&child, half.end), expected[MANY / 2]);
    let moved = child.remap(VaRange::sized(half.end, MIB), MIB, Move::To(at + (1 << 30)));
    assert_eq!(load(&child, moved.expect("remap")), expected[MANY / 2]);
    parent.protect(half, Prot::READ).expect("protect");
    parent.activate();
    assert!(parent.store(at, 1).is_err());
    drop(parent);
    assert_eq!(content(&other, at)[MANY / 2..], expected[MANY / 2..]);
    drop((child, other));
    nothing_left(&vm);
}

pub fn a_page_that_is_removed_is_removed_from_all(tables: ForkTables) {
    let vm = family(tables, 32).vm();
    let (parent, at) = touched(&vm, 1);
    let child = parent.fork().expect("fork");
    let spaces = [parent, child];
    // Both have it in the TLB.
    for space in &spaces {
        content(space, at);
    }
    let frame = spaces[0].pmap().lookup(at).expect("a page");
    let hold = vm.hold(frame).expect("a page");
    assert!(vm.test_referenced(&hold));
    assert_eq!(vm.remove_all(&hold).mappings, 2);
    drop(hold);
    for space in &spaces {
        assert_eq!(space.pmap().lookup(at), None);
        assert_eq!(space.pmap().resident(), MANY - 1);
        assert_eq!(load(space, at), 0);
        assert_eq!(load(space, at + P), word(0, 1));
        assert_eq!(space.pmap().resident(), MANY);
    }
}

pub fn a_table_that_others_have_emptied_is_left(tables: ForkTables) {
    let vm = family(tables, 32).vm();
    let (parent, at) = touched(&vm, 1);
    let child = parent.fork().expect("fork");
    for page in 0..MANY {
        let frame = parent.pmap().lookup(place(at, 0, page)).expect("a page");
        vm.remove_all(&vm.hold(frame).expect("a page"));
    }
    // By halves, so that the slot does not go as a whole.
    for half in [at, at + MIB] {
        child.unmap(VaRange::sized(half, MIB)).expect("unmap");
    }
    drop(child);
    store(&parent, at, 7);
    assert_eq!(load(&parent, at), 7);
    drop(parent);
    nothing_left(&vm);
}

pub fn pages_out_are_out_in_all_and_come_back_to_each(tables: ForkTables) {
    let vm = family(tables, 32).swap(1 << 12).vm();
    let (parent, at) = touched(&vm, 1);
    let expected = content(&parent, at);
    let child = parent.fork().expect("fork");
    let range = pages(at, MANY / 2);
    parent.advise(range, Advice::PageOut).expect("advise");
    for space in [&parent, &child] {
        assert_eq!(space.pmap().resident(), MANY / 2);
        let swapped = space.scan(0, usize::MAX).expect("memory");
        assert_eq!(
            swapped.iter().map(|one| one.swapped).sum::<u64>(),
            MANY as u64 / 2
        );
    }
    store(&child, at, 9);
    assert_eq!(content(&parent, at), expected);
    drop(parent);
    assert_eq!(content(&child, at)[1..], expected[1..]);
    drop(child);
    nothing_left(&vm);
}

/// Each allocation that it takes to leave fails once.
pub fn who_can_not_leave_has_changed_nothing(tables: ForkTables) {
    let half = |at| pages(at, MANY / 2);
    type Change<'a> = &'a dyn Fn(&TestSpace, usize) -> Result<(), Error>;
    let changes: [Change<'_>; 6] = [
        &|space, at| space.store(at, 1),
        &|space, at| space.unmap(half(at)),
        &|space, at| space.discard(half(at)),
        &|space, at| space.protect(half(at), Prot::READ),
        &|space, at| space.lock(half(at), Bring::OnFault),
        &|space, at| {
            space
                .remap(half(at), half(at).len(), Move::To(at + (1 << 32)))
                .map(drop)
        },
    ];
    let vm = family(tables, 32).vm();
    let mut failures = 0;
    for change in changes {
        let (parent, at) = touched(&vm, 1);
        let child = parent.fork().expect("fork");
        let expected = content(&parent, at);
        for nth in 1.. {
            let state = || {
                (
                    child.regions().expect("regions"),
                    child.pmap().resident(),
                    reserved(&vm),
                )
            };
            let old = state();
            vm.frames().fail_after(nth);
            child.activate();
            let changed = change(&child, at);
            vm.frames().fail_after(0);
            if changed.is_ok() {
                break;
            }
            failures += 1;
            assert_eq!(state(), old);
            assert_eq!(content(&child, at), expected);
        }
        assert_eq!(content(&parent, at), expected);
        drop((parent, child));
        nothing_left(&vm);
    }
    assert!(failures > 3, "{failures} failures");
}

pub fn a_family_may_be_larger_than_a_table_has_room_for(tables: ForkTables) {
    // Each child reserves 2 MiB.
    let vm = family(tables, 128).vm();
    let (parent, at) = touched(&vm, 1);
    let expected = content(&parent, at);
    let children: Vec<_> = (0..100).map(|_| parent.fork().expect("fork")).collect();
    assert_eq!(parent.pmap().resident(), MANY);
    for (index, child) in children.iter().enumerate() {
        store(child, at + index % MANY * P, 0);
    }
    assert_eq!(content(&parent, at), expected);
    assert_eq!(proportional(&parent).div_ceil(WHOLE), 1);
    drop(children);
    assert_eq!(proportional(&parent), MANY as u64 * WHOLE);
    drop(parent);
    nothing_left(&vm);
}

/// A space that leaves a table to its child has no translation of it left on any CPU.
pub fn who_leaves_is_gone_from_all_cpus(tables: ForkTables) {
    let vm = family(tables, 32).vm();
    let (parent, at) = touched(&vm, 1);
    let child = parent.fork().expect("fork");
    let (known, left) = (Barrier::new(2), Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            vm.machine().on_cpu(1, || {
                parent.activate();
                assert_eq!(parent.load(at), Ok(word(0, 0)));
                known.wait();
                left.wait();
                assert!(is_segv(parent.load(at)));
            });
        });
        known.wait();
        let unmapped = parent.unmap(VaRange::sized(at, SLOT));
        left.wait();
        unmapped.expect("unmap");
    });
    assert_eq!(load(&child, at), word(0, 0));
}
