//! Moves of several mappings, and moves that change which slots of the tree there are.

use crate::world::{MIB, P, SLOT, TestSpace, nothing_left, pages, reserved, world};
use machine::VaRange;
use vm::{At, Bring, Error, Flags, HIGHEST, Limit, Move, Prot, Request};

/// The place of the moving range, three pages before a border of 2 MiB, and its goal.
const FROM: usize = (1 << 39) - 3 * P;
const TO: usize = 3 << 39;

/// Bytes that one slot of the second level covers.
const LARGE: usize = 128 * MIB;
/// Where mappings of other sizes are.
const AT: usize = 1 << 42;

fn map(space: &TestSpace, range: VaRange, prot: Prot) {
    space.map_fixed(range, prot).expect("map");
}

/// Two pages, a hole, a page that may only be read, two more pages, and a hole; each page begins
/// with its number.
fn several(space: &TestSpace, at: usize) {
    for range in [pages(at, 2), pages(at + 3 * P, 3)] {
        map(space, range, Prot::READ_WRITE);
        for page in (range.start..range.end).step_by(P) {
            space.store(page, ((page - at) / P) as u64).expect("store");
        }
    }
    let read_only = pages(at + 3 * P, 1);
    space.protect(read_only, Prot::READ).expect("protect");
}

#[test]
fn several_mappings_leave_as_many() {
    let space = world(16).commits(1 << 20).space();
    several(&space, FROM);
    let locked = pages(FROM + 4 * P, 1);
    space.set_limit(Limit::Locked, Some(P)).expect("a limit");
    space.lock(locked, Bring::Now).expect("lock");
    let before = reserved(space.vm());
    let moved = space.remap(pages(FROM, 6), 6 * P, Move::LeavingTo(TO));
    assert_eq!(moved, Ok(TO));
    assert_eq!(reserved(space.vm()), 2 * before);
    let regions = space.regions().expect("regions");
    let is_locked = |at| {
        let at = regions.iter().find(|region| region.range.start == at);
        at.expect("a region").flags.has(Flags::LOCKED)
    };
    assert!(is_locked(TO + 4 * P) && !is_locked(FROM + 4 * P));
    for page in [0, 1, 3, 4, 5] {
        assert_eq!(space.load(TO + page * P), Ok(page as u64));
        assert_eq!(space.load(FROM + page * P), Ok(0));
    }
}

/// The model of `oracle` leaves open what is left then.
#[test]
fn no_second_mapping_takes_the_place_of_the_first() {
    let space = world(16).space();
    let request = Request::anonymous(3 * P, Prot::READ_WRITE).shared();
    let at = space.map_as(&request).expect("map") + P;
    space.store(at, 7).expect("store");
    let double = |count, to| space.remap(pages(at, 0), count * P, Move::To(to));
    assert_eq!(double(1, at), Err(Error::NotOne { address: at }));
    assert!(matches!(double(2, at - P), Err(Error::Invalid { .. })));
    assert_eq!(space.load(at), Ok(7));
}

/// 128 MiB that are mapped with equal attributes have one slot in the tree, their pages a table for
/// each 2 MiB.
#[test]
fn large_mappings_move_with_their_pages() {
    let space = world(16).commits(1 << 20).space();
    let at = 1 << 40;
    map(&space, VaRange::sized(at, 2 * LARGE), Prot::READ_WRITE);
    let touched = [0, SLOT, 5 * SLOT + P, LARGE - P, LARGE, 2 * LARGE - P];
    for offset in touched {
        space.store(at + offset, offset as u64 + 1).expect("store");
    }
    let rights = VaRange::sized(at + LARGE, LARGE);
    space.protect(rights, Prot::READ).expect("protect");
    // To whole slots and to halves of them, as several mappings and as one.
    let places = [TO, TO + 3 * LARGE + SLOT, TO + 7 * LARGE + LARGE / 2];
    let mut at = at;
    for to in places {
        let old = VaRange::sized(at, 2 * LARGE);
        assert_eq!(space.remap(old, 2 * LARGE, Move::To(to)), Ok(to));
        at = to;
        for offset in touched {
            assert_eq!(
                space.load(at + offset),
                Ok(offset as u64 + 1),
                "{offset:#x}"
            );
        }
        assert_eq!(space.load(at + 2 * SLOT), Ok(0));
    }
    let one = VaRange::sized(at, LARGE);
    let at = space.remap(one, 2 * LARGE, Move::IfNeeded).expect("grow");
    for offset in &touched[..4] {
        assert_eq!(space.load(at + offset), Ok(*offset as u64 + 1));
    }
    space.unmap(VaRange::sized(at, 2 * LARGE)).expect("unmap");
    assert_eq!(space.load(places[2] + LARGE), Ok(LARGE as u64 + 1));
}

#[test]
fn moving_to_and_fro_uses_nothing_up() {
    let space = world(16).space();
    let vm = space.vm();
    let mut at = space.map(SLOT, Prot::READ_WRITE).expect("map");
    let rest = |at| VaRange::sized(at + MIB, MIB);
    space.protect(rest(at), Prot::NONE).expect("protect");
    for page in 0..MIB / P {
        space.store(at + page * P, page as u64).expect("store");
    }
    let used = (vm.frames().free_count(), reserved(vm));
    for round in 0..60_000 {
        let old = at;
        let moved = space.remap(VaRange::sized(at, MIB), SLOT, Move::IfNeeded);
        at = moved.unwrap_or_else(|error| panic!("round {round}: {error}"));
        assert_ne!(at, old);
        space.unmap(rest(old)).expect("unmap");
        space.protect(rest(at), Prot::NONE).expect("protect");
        let page = round % 256;
        assert_eq!(space.load(at + page * P), Ok(page as u64));
    }
    assert_eq!(reserved(vm), used.1);
    assert!(vm.frames().free_count() + 64 > used.0);
}

/// A space with `bytes` bytes at [`AT`].
fn space_of(bytes: usize) -> TestSpace {
    let space = world(8).swap(256).space();
    let request = Request::anonymous(bytes, Prot::READ_WRITE).at(At::Free(AT));
    assert_eq!(space.map_as(&request), Ok(AT));
    space
}

#[test]
fn a_few_pages_become_many() {
    let space = space_of(8 * P);
    space.store(AT + P, 7).expect("store");
    let old = pages(AT, 8);
    let to = AT + 8 * LARGE;
    let moved = space.remap(old, 2 * LARGE, Move::To(to));
    assert_eq!(moved, Ok(to));
    assert_eq!(space.load(to + P), Ok(7));
    assert_eq!(space.load(to + LARGE + P), Ok(0));
    assert_eq!(space.stats().private, 2);
    end(space);
}

/// Moves the first pages of many; some were `touched`.
fn many_become_few(touched: bool) {
    let space = space_of(2 * LARGE);
    if touched {
        space.store(AT + P, 7).expect("store");
        space.store(AT + LARGE, 8).expect("store");
    }
    let (old, to) = (VaRange::sized(AT, 2 * LARGE), AT + 8 * LARGE);
    let moved = space.remap(old, 8 * P, Move::To(to));
    assert_eq!(moved, Ok(to));
    assert_eq!(space.regions().expect("regions").len(), 1);
    assert_eq!(space.regions().expect("regions")[0].range, pages(to, 8));
    let word = if touched { 7 } else { 0 };
    assert_eq!(space.load(to + P), Ok(word));
    assert!(space.load(AT).is_err());
    assert_eq!(space.stats().private, 1);
    end(space);
}

#[test]
fn many_pages_become_a_few() {
    many_become_few(true);
}

#[test]
fn many_pages_that_nobody_touched_become_a_few() {
    many_become_few(false);
}

#[test]
fn many_pages_move() {
    let space = space_of(2 * LARGE);
    let touched = [0, 511, 512, 40_000].map(|page| page * P);
    for at in touched {
        space.store(AT + at, 1 + at as u64).expect("store");
    }
    let old = VaRange::sized(AT, 2 * LARGE);
    for to in [AT + 8 * LARGE, AT + 16 * LARGE + 3 * P] {
        let from = space.regions().expect("regions")[0].range;
        assert_eq!(space.remap(from, old.len(), Move::To(to)), Ok(to));
        for at in touched {
            assert_eq!(space.load(to + at), Ok(1 + at as u64));
        }
    }
    assert_eq!(space.stats().private, 4);
    end(space);
}

/// An error in the old place comes first, however large the new one is to be.
#[test]
fn what_is_no_mapping_is_not_too_large_either() {
    let space = space_of(8 * P);
    let hole = pages(AT + LARGE, 1);
    let address = hole.start;
    for place in [Move::Never, Move::IfNeeded] {
        let refused = space.remap(hole, HIGHEST, place);
        assert_eq!(refused, Err(Error::NotOne { address }), "{place:?}");
        let bytes = HIGHEST;
        let refused = space.remap(pages(AT, 8), bytes, place);
        assert_eq!(refused, Err(Error::NoAddresses { bytes }), "{place:?}");
    }
    // From here to the end there is more than anywhere else.
    let rest = VaRange {
        start: AT,
        end: HIGHEST,
    };
    let refused = space.remap(rest, rest.len(), Move::Leaving);
    let address = AT + 8 * P;
    assert_eq!(refused, Err(Error::NotOne { address }));
    end(space);
}

fn end(space: TestSpace) {
    let vm = space.vm().clone();
    drop(space);
    nothing_left(&vm);
}
