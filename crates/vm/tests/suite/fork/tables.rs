
/// Pages of a slot, enough for its table to be shared.
const MANY: usize = 64;

type TestSpace = Space<vm::Best<Hosted>>;

/// A space with `slots` times 2 MiB; the first pages of each are touched.
fn touched(vm: &System, slots: usize) -> (TestSpace, usize) {
    let space = space(vm);
    let at = space.map(slots * 2 * MIB, Prot::READ_WRITE).expect("map");
    let at = at.next_multiple_of(2 * MIB);
    for (slot, page) in (0..slots).flat_map(|slot| (0..MANY).map(move |page| (slot, page))) {
        store(&space, place(at, slot, page), word(slot, page));
    }
    (space, at)
}

fn place(at: usize, slot: usize, page: usize) -> usize {
    at + slot * 2 * MIB + page * PAGE_SIZE
}

fn word(slot: usize, page: usize) -> u64 {
    (slot * 1_000 + page) as u64 + 1
}

/// The content of `space` at the first slot.
fn content(space: &TestSpace, at: usize) -> Vec<u64> {
    (0..MANY).map(|page| load(space, place(at, 0, page))).collect()
}

fn proportional(space: &TestSpace) -> u64 {
    let footprints = space.footprints().expect("memory");
    footprints.iter().map(|one| one.proportional).sum()
}

/// A page of memory, as a footprint counts it.
const WHOLE: u64 = PAGE_SIZE as u64 * vm::Footprint::FRACTION;

#[test]
fn what_is_resident_and_whose_is_exact() {
    let vm = system(32);
    let before = vm.frames().free_count();
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
    assert_eq!(vm.frames().free_count(), before);
}

#[test]
fn whoever_goes_first_the_others_keep_it() {
    let vm = system(32);
    let before = vm.frames().free_count();
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
        store(&family[0], at + PAGE_SIZE, 1_001);
        assert_eq!(content(&family[0], at)[..2], [1_000, 1_001]);
        assert_eq!(content(&family[0], at)[2..], expected[2..]);
        drop(family);
        assert_eq!(vm.frames().free_count(), before);
    }
}

#[test]
fn who_is_left_alone_has_his_pages_without_a_copy() {
    let vm = system(32);
    let (parent, at) = touched(&vm, 1);
    let frames: Vec<_> = (0..MANY).map(|page| parent.pmap().lookup(place(at, 0, page))).collect();
    let child = parent.fork().expect("fork");
    parent.exec();
    assert_eq!(parent.pmap().resident(), 0);
    for (page, &frame) in frames.iter().enumerate() {
        store(&child, place(at, 0, page), 5);
        assert_eq!(child.pmap().lookup(place(at, 0, page)), frame);
    }
}

#[test]
fn half_a_slot_goes_in_one_of_them() {
    let vm = system(32);
    let before = vm.frames().free_count();
    let (parent, at) = touched(&vm, 2);
    let child = parent.fork().expect("fork");
    let other = parent.fork().expect("fork");
    let half = VaRange::sized(at, MANY / 2 * PAGE_SIZE);
    let expected = content(&parent, at);
    child.unmap(half).expect("unmap");
    other.discard(half).expect("discard");
    assert_eq!(content(&parent, at), expected);
    assert_eq!(content(&other, at)[MANY / 2..], expected[MANY / 2..]);
    assert_eq!(content(&other, at)[..MANY / 2], [0; MANY / 2]);
    child.activate();
    assert!(matches!(child.load(at), Err(Error::Segv(_))));
    assert_eq!(load(&child, half.end), expected[MANY / 2]);
    let moved = child.remap(VaRange::sized(half.end, MIB), MIB, Move::To(at + (1 << 30)));
    assert_eq!(load(&child, moved.expect("remap")), expected[MANY / 2]);
    parent.protect(half, Prot::READ).expect("protect");
    parent.activate();
    assert!(parent.store(at, 1).is_err());
    drop(parent);
    assert_eq!(content(&other, at)[MANY / 2..], expected[MANY / 2..]);
    drop((child, other));
    assert_eq!(vm.frames().free_count(), before);
}

#[test]
fn a_page_that_is_removed_is_removed_from_all() {
    let vm = system(32);
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
        assert_eq!(load(space, at + PAGE_SIZE), word(0, 1));
        assert_eq!(space.pmap().resident(), MANY);
    }
}

#[test]
fn a_table_that_others_have_emptied_is_left() {
    let vm = system(32);
    let before = vm.frames().free_count();
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
    assert_eq!(vm.frames().free_count(), before);
}

#[test]
fn pages_out_are_out_in_all_and_come_back_to_each() {
    let machine = Hosted::with_memory(2, 32 * MIB).expect("memory");
    machine.attach(0);
    let pager = Box::new(vm::pager::MemoryPager::new());
    let swap = vm::swap::SwapSpace::new(machine::Topology::cpus(&machine), pager, 1 << 12);
    let vm = Vm::with_options(
        machine,
        vm::Options {
            swap_space: Some(Arc::new(swap.expect("a swap space"))),
            ..vm::Options::default()
        },
    ).expect("memory for the VM");
    let before = vm.frames().free_count();
    let (parent, at) = touched(&vm, 1);
    let expected = content(&parent, at);
    let child = parent.fork().expect("fork");
    let range = VaRange::sized(at, MANY / 2 * PAGE_SIZE);
    parent.advise(range, Advice::PageOut).expect("advise");
    for space in [&parent, &child] {
        assert_eq!(space.pmap().resident(), MANY / 2);
        let swapped = space.footprints().expect("memory");
        assert_eq!(swapped.iter().map(|one| one.swapped).sum::<u64>(), MANY as u64 / 2);
    }
    store(&child, at, 9);
    assert_eq!(content(&parent, at), expected);
    drop(parent);
    assert_eq!(content(&child, at)[1..], expected[1..]);
    drop(child);
    let swap = vm.swap_space().expect("a swap space");
    assert_eq!((swap.used(), swap.cached()), (0, 0));
    assert_eq!(vm.frames().free_count(), before);
}

/// Each allocation that it takes to leave fails once.
#[test]
fn who_can_not_leave_has_changed_nothing() {
    let half = |at| VaRange::sized(at, MANY / 2 * PAGE_SIZE);
    type Change<'a> = &'a dyn Fn(&TestSpace, usize) -> Result<(), Error>;
    let changes: [Change<'_>; 6] = [
        &|space, at| space.store(at, 1),
        &|space, at| space.unmap(half(at)),
        &|space, at| space.discard(half(at)),
        &|space, at| space.protect(half(at), Prot::READ),
        &|space, at| space.lock(half(at), vm::Bring::OnFault),
        &|space, at| space.remap(half(at), half(at).len(), Move::To(at + (1 << 32))).map(drop),
    ];
    let vm = system(32);
    let before = vm.frames().free_count();
    let mut failures = 0;
    for change in changes {
        let (parent, at) = touched(&vm, 1);
        let child = parent.fork().expect("fork");
        let expected = content(&parent, at);
        for nth in 1.. {
            let state = |space: &TestSpace| {
                let resident = space.pmap().resident();
                (space.regions(), resident, vm.swap().reserved())
            };
            let old = state(&child);
            vm.frames().fail_after(nth);
            child.activate();
            let changed = change(&child, at);
            vm.frames().fail_after(0);
            if changed.is_ok() {
                break;
            }
            failures += 1;
            assert_eq!(state(&child), old);
            assert_eq!(content(&child, at), expected);
        }
        assert_eq!(content(&parent, at), expected);
        drop((parent, child));
        assert_eq!(vm.frames().free_count(), before);
        assert_eq!(vm.swap().reserved(), 0);
    }
    assert!(failures > 3, "{failures} failures");
}

#[test]
fn a_family_may_be_larger_than_a_table_has_room_for() {
    // Each child reserves 2 MiB.
    let vm = system(128);
    let before = vm.frames().free_count();
    let (parent, at) = touched(&vm, 1);
    let expected = content(&parent, at);
    let children: Vec<_> = (0..100).map(|_| parent.fork().expect("fork")).collect();
    assert_eq!(parent.pmap().resident(), MANY);
    for (index, child) in children.iter().enumerate() {
        store(child, at + index % MANY * PAGE_SIZE, 0);
    }
    assert_eq!(content(&parent, at), expected);
    assert_eq!(proportional(&parent).div_ceil(WHOLE), 1);
    drop(children);
    assert_eq!(proportional(&parent), MANY as u64 * WHOLE);
    drop(parent);
    assert_eq!(vm.frames().free_count(), before);
}

/// A space that leaves a table to its child has no translation of it left on any CPU.
#[test]
fn who_leaves_is_gone_from_all_cpus() {
    let machine = Hosted::with_memory(2, 32 * MIB).expect("memory");
    machine.attach(0);
    let vm: System = Vm::new(machine.clone()).expect("memory for the VM");
    let (parent, at) = touched(&vm, 1);
    let child = parent.fork().expect("fork");
    let (known, left) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            machine.on_cpu(1, || {
                parent.activate();
                assert_eq!(parent.load(at), Ok(word(0, 0)));
                known.wait();
                left.wait();
                assert!(matches!(parent.load(at), Err(Error::Segv(_))));
            });
        });
        known.wait();
        let unmapped = parent.unmap(VaRange::sized(at, 2 * MIB));
        left.wait();
        unmapped.expect("unmap");
    });
    assert_eq!(load(&child, at), word(0, 0));
}
