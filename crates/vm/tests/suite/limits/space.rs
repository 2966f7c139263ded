//! The usage that counts against the limits of a space.

use super::*;

#[test]
fn limits_are_what_was_set_and_have_their_errno() {
    let space = space();
    for limit in [Limit::AddressSpace, Limit::Data, Limit::Locked] {
        assert_eq!(space.limit(limit), None);
        space.set_limit(limit, Some(10 * P + 5)).expect("a limit");
        assert_eq!(space.limit(limit), Some(10 * P + 5));
        assert_eq!(over(limit).errno(), 12);
        space.set_limit(limit, None).expect("no limit");
        assert_eq!(space.limit(limit), None);
    }
    assert_eq!(space.limit(Limit::Stack), Some(8 << 20));
    space.set_limit(Limit::Stack, None).expect("no limit");
    assert_eq!(space.limit(Limit::Stack), None);
    assert_eq!(Error::LockLimit.errno(), 11);
}

#[test]
fn mapped_memory_is_limited_exactly() {
    let space = limited(Limit::AddressSpace, 10);
    let at = space.map(6 * P, Prot::READ).expect("map");
    assert_eq!(space.map(5 * P, Prot::READ), Err(over(Limit::AddressSpace)));
    space.map(4 * P, Prot::NONE).expect("this fits");
    assert_eq!(space.map(P, Prot::READ), Err(over(Limit::AddressSpace)));
    // In the place of other mappings: two pages more than before are two pages.
    let fixed = |count| space.map_fixed(pages(at, count), Prot::READ_WRITE);
    assert_eq!(fixed(6), Ok(()));
    space.unmap(pages(at + 2 * P, 2)).expect("unmap");
    assert_eq!(fixed(6), Ok(()));
    assert_eq!(space.map(P, Prot::READ), Err(over(Limit::AddressSpace)));
    space.unmap(pages(at, 6)).expect("unmap");
    assert_eq!(space.map(7 * P, Prot::READ), Err(over(Limit::AddressSpace)));
    space
        .map(6 * P, Prot::READ)
        .expect("all that was given back");
}

#[test]
fn data_is_what_is_private_and_writable() {
    let space = limited(Limit::Data, 4);
    let at = space.map(8 * P, Prot::READ).expect("map");
    let shared = Request::anonymous(8 * P, Prot::READ_WRITE).shared();
    space.map_as(&shared).expect("shared memory");
    let stack = Request::anonymous(8 * P, Prot::READ_WRITE).with(Flags::GROWS_DOWN);
    space.map_as(&stack).expect("a stack");
    space
        .protect(pages(at, 3), Prot::READ_WRITE)
        .expect("protect");
    let before = reserved(space.vm());
    let more = space.protect(pages(at, 5), Prot::READ_WRITE);
    assert_eq!(more, Err(over(Limit::Data)));
    assert_eq!(reserved(space.vm()), before);
    assert_eq!(space.map(2 * P, Prot::READ_WRITE), Err(over(Limit::Data)));
    space
        .protect(pages(at, 4), Prot::READ_WRITE)
        .expect("protect");
    space.protect(pages(at, 4), Prot::READ).expect("protect");
    space.map(4 * P, Prot::READ_WRITE).expect("this fits");
    assert_eq!(space.map(P, Prot::READ_WRITE), Err(over(Limit::Data)));
}

#[test]
fn the_heap_is_limited() {
    let space = limited(Limit::Data, 4);
    space.set_break(HEAP_START + 4 * P).expect("this fits");
    let refused = space.set_break(HEAP_START + 4 * P + 1);
    assert_eq!(refused, Err(over(Limit::Data)));
    assert_eq!(space.current_break(), HEAP_START + 4 * P);
    space.set_break(HEAP_START + P).expect("less");
    space.map(3 * P, Prot::READ_WRITE).expect("this fits");
}

#[test]
fn locked_memory_is_limited() {
    let space = limited(Limit::Locked, 5);
    let at = space.map(8 * P, Prot::READ_WRITE).expect("map");
    assert_eq!(
        space.lock(pages(at, 6), Bring::Now),
        Err(over(Limit::Locked))
    );
    space.lock(pages(at, 4), Bring::Now).expect("this fits");
    space
        .lock(pages(at, 5), Bring::OnFault)
        .expect("locked pages count once");
    assert_eq!(space.map_as(&locked(1)), Err(Error::LockLimit));
    space.unlock(pages(at, 2)).expect("unlock");
    let more = space.map_as(&locked(2)).expect("this fits");
    assert_eq!(space.map_as(&locked(1)), Err(Error::LockLimit));
    space.unmap(pages(more, 2)).expect("unmap");
    space.map_as(&locked(2)).expect("this fits");
}

#[test]
fn remap_counts_what_is_new() {
    let space = limited(Limit::AddressSpace, 8);
    let at = space.map(4 * P, Prot::READ_WRITE).expect("map");
    let old = pages(at, 4);
    assert_eq!(
        space.remap(old, 9 * P, Move::IfNeeded),
        Err(over(Limit::AddressSpace))
    );
    assert_eq!(space.remap(old, 8 * P, Move::Never), Ok(at));
    assert_eq!(space.remap(pages(at, 8), 4 * P, Move::Never), Ok(at));
    let to = at + 64 * SLOT;
    assert_eq!(space.remap(old, 4 * P, Move::LeavingTo(to)), Ok(to));
    assert_eq!(
        space.remap(pages(to, 4), 5 * P, Move::IfNeeded),
        Err(over(Limit::AddressSpace))
    );
    let back = to + 64 * SLOT;
    assert_eq!(space.remap(pages(to, 4), 3 * P, Move::To(back)), Ok(back));
    space.map(P, Prot::READ).expect("this fits");
    assert_eq!(space.map(P, Prot::READ), Err(over(Limit::AddressSpace)));
}

#[test]
fn a_move_leaves_the_locks() {
    let space = limited(Limit::Locked, 2);
    let at = space.map_as(&locked(2)).expect("map");
    let to = at + 64 * SLOT;
    assert_eq!(
        space.remap(pages(at, 2), 2 * P, Move::LeavingTo(to)),
        Ok(to)
    );
    assert_eq!(
        space.remap(pages(to, 2), 3 * P, Move::IfNeeded),
        Err(Error::LockLimit)
    );
    assert_eq!(
        space.lock(pages(at, 1), Bring::Now),
        Err(over(Limit::Locked))
    );
    space.unmap(pages(to, 2)).expect("unmap");
    space.lock(pages(at, 2), Bring::Now).expect("this fits");
}

#[test]
fn what_is_over_a_limit_that_is_set_stays() {
    let space = space();
    let at = space.map(10 * P, Prot::READ_WRITE).expect("map");
    space
        .set_limit(Limit::AddressSpace, Some(7 * P + 1))
        .expect("a limit");
    assert_eq!(space.map(P, Prot::READ), Err(over(Limit::AddressSpace)));
    space
        .map_fixed(pages(at, 10), Prot::READ)
        .expect("no more than before");
    space.unmap(pages(at, 3)).expect("unmap");
    assert_eq!(space.map(P, Prot::READ), Err(over(Limit::AddressSpace)));
    space.unmap(pages(at + 3 * P, 2)).expect("unmap");
    assert_eq!(space.map(3 * P, Prot::READ), Err(over(Limit::AddressSpace)));
    space.map(2 * P, Prot::READ).expect("this fits");
    assert_eq!(space.map(P, Prot::READ), Err(over(Limit::AddressSpace)));
}

#[test]
fn a_child_has_the_limits_and_not_the_locks() {
    let parent = limited(Limit::AddressSpace, 6);
    parent
        .set_limit(Limit::Locked, Some(3 * P))
        .expect("a limit");
    parent.set_limit(Limit::Stack, Some(P)).expect("a limit");
    let at = parent.map_as(&locked(3)).expect("map");
    parent.lock_all(Mappings::ALL, Bring::Now).expect("lock");
    let child = parent.fork().expect("fork");
    for limit in [
        Limit::AddressSpace,
        Limit::Data,
        Limit::Locked,
        Limit::Stack,
    ] {
        assert_eq!(child.limit(limit), parent.limit(limit));
    }
    assert_eq!(parent.map(P, Prot::READ), Err(Error::LockLimit));
    child.map(3 * P, Prot::READ).expect("this fits, not locked");
    assert_eq!(child.map(P, Prot::READ), Err(over(Limit::AddressSpace)));
    child
        .lock(pages(at, 3), Bring::Now)
        .expect("nothing was locked");
    assert_eq!(parent.fork().map(|_| ()), Ok(()));
}

#[test]
fn locking_all_is_limited() {
    let space = space();
    let none = space.map(P, Prot::NONE).expect("map");
    space.map(P, Prot::READ_WRITE).expect("map");
    let nothing = Mappings {
        current: false,
        future: false,
    };
    let invalid = space.lock_all(nothing, Bring::OnFault);
    assert!(matches!(invalid, Err(Error::Invalid { .. })));
    // Over the limit nothing changes.
    space.set_limit(Limit::Locked, Some(P)).expect("a limit");
    let refused = space.lock_all(Mappings::ALL, Bring::OnFault);
    assert_eq!(refused, Err(over(Limit::Locked)));
    assert!(
        space
            .regions()
            .expect("regions")
            .iter()
            .all(|region| !region.flags.has(Flags::LOCKED))
    );
    space.unmap(pages(none, 1)).expect("unmap");
    let locked = space.lock_all(Mappings::FUTURE, Bring::OnFault);
    locked.expect("only the future");
    let last = space.map(P, Prot::READ_WRITE).expect("this fits");
    let incore = space.incore(pages(last, 1));
    assert_eq!(incore, Ok(vec![false]), "locked when it is used");
    assert_eq!(space.map(P, Prot::READ), Err(Error::LockLimit));
    space.exec();
    space.map(2 * P, Prot::READ).expect("a new program");
}

#[test]
fn a_refusal_by_the_heap_changes_no_count() {
    let space = limited(Limit::AddressSpace, 40);
    let at = space.map(40 * P, Prot::READ_WRITE).expect("map");
    let (mut refused, mut free) = (0, 0);
    for index in (1..20).step_by(2) {
        refusing::refuse_after(1);
        let unmapped = space.unmap(pages(at + index * P, 1));
        refusing::refuse_after(0);
        match unmapped {
            Ok(()) => free += 1,
            Err(error) => {
                assert_eq!(error, Error::OutOfMemory(Resource::Heap));
                refused += 1;
            }
        }
    }
    let more = space.map((free + 1) * P, Prot::READ);
    assert_eq!(more, Err(over(Limit::AddressSpace)));
    assert!(refused > 0);
    space
        .map(free * P, Prot::READ)
        .expect("it was all given back");
    let set = || space.set_limit(Limit::Data, Some(P));
    refusing::each(set, |_| assert_eq!(space.limit(Limit::Data), None));
    space.set_limit(Limit::Data, None).expect("no limit");
    space.unmap(pages(at + 36 * P, 2)).expect("unmap");
    let moved = || space.remap(pages(at + 30 * P, 2), 2 * P, Move::Leaving);
    refusing::each(moved, |_| {
        let one = space.map(P, Prot::READ).expect("one is free");
        space.unmap(pages(one, 1)).expect("unmap");
    });
    assert_eq!(space.map(P, Prot::READ), Err(over(Limit::AddressSpace)));
}

/// Nothing is left by `exec` but the limits.
fn a_new_program_finds_nothing(exec: fn(&TestSpace)) {
    let space = limited(Limit::AddressSpace, 2000);
    space
        .lock_all(Mappings::FUTURE, Bring::OnFault)
        .expect("the future");
    let at = space.map(1000 * P, Prot::READ_WRITE).expect("map");
    space.store(at + 700 * P, 1).expect("store");
    space.set_break(HEAP_START + 900 * P).expect("a heap");
    space.store(HEAP_START, 1).expect("store");
    exec(&space);
    assert!(space.regions().expect("regions").is_empty());
    assert_eq!(space.current_break(), HEAP_START);
    assert_eq!(space.stats(), Stats::default());
    assert_eq!(reserved(space.vm()), 0);
    let again = space.map(2000 * P, Prot::READ_WRITE).expect("all fits");
    assert!(
        !space.regions().expect("regions")[0]
            .flags
            .has(Flags::LOCKED)
    );
    assert_eq!(space.map(P, Prot::READ), Err(over(Limit::AddressSpace)));
    assert_eq!(space.load(again), Ok(0));
}

#[test]
fn a_new_program_finds_nothing_at_once() {
    a_new_program_finds_nothing(Space::exec);
}

#[test]
fn a_new_program_finds_nothing_slot_by_slot() {
    // SAFETY: no other task has the space.
    a_new_program_finds_nothing(|space| unsafe { space.exec_alone() });
}

#[test]
fn a_second_mapping_counts_as_any() {
    let space = limited(Limit::Locked, 1);
    let request = Request::anonymous(P, Prot::READ_WRITE).shared();
    let at = space.map_as(&request.with(Flags::LOCKED)).expect("map");
    let again = || space.remap(pages(at, 0), P, Move::IfNeeded);
    assert_eq!(again(), Err(Error::LockLimit));
    let more = space.set_limit(Limit::Locked, Some(2 * P));
    more.expect("a limit");
    let twice = again().expect("twice");
    assert_eq!(space.incore(pages(twice, 1)), Ok(vec![true]));
    space.unmap(pages(twice, 1)).expect("unmap");
    again().expect("given back");
}
