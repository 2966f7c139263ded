//! Moves that make a mapping much longer or much shorter: the tree has other slots there.

use crate::failing;

use failing::{Disk, MIB, TestSpace, check_empty, system};
use machine::{PAGE_SIZE, VaRange};
use vm::{At, Error, HIGHEST, Move, Prot, Request, Superpages};

/// Bytes that one slot of the second level covers.
const LARGE: usize = 128 * MIB;
const AT: usize = 1 << 42;

fn space_of(bytes: usize) -> TestSpace {
    let vm = system(8, Superpages::Advised, &Disk::default(), 256);
    let space = TestSpace::new(&vm).expect("a space");
    space.activate();
    let request = Request::anonymous(bytes, Prot::READ_WRITE).at(At::Free(AT));
    assert_eq!(space.map_as(&request), Ok(AT));
    space
}

fn end(space: TestSpace) {
    let vm = space.vm().clone();
    drop(space);
    check_empty(&vm, "moved");
}

#[test]
fn a_few_pages_become_many() {
    let space = space_of(8 * PAGE_SIZE);
    space.store(AT + PAGE_SIZE, 7).expect("store");
    let old = VaRange::sized(AT, 8 * PAGE_SIZE);
    let to = AT + 8 * LARGE;
    let moved = space.remap(old, 2 * LARGE, Move::To(to));
    assert_eq!(moved, Ok(to));
    assert_eq!(space.load(to + PAGE_SIZE), Ok(7));
    assert_eq!(space.load(to + LARGE + PAGE_SIZE), Ok(0));
    assert_eq!(space.stats().private, 2);
    end(space);
}

/// Moves the first pages of many; some were `touched`.
fn many_become_few(touched: bool) {
    let space = space_of(2 * LARGE);
    if touched {
        space.store(AT + PAGE_SIZE, 7).expect("store");
        space.store(AT + LARGE, 8).expect("store");
    }
    let (old, to) = (VaRange::sized(AT, 2 * LARGE), AT + 8 * LARGE);
    let moved = space.remap(old, 8 * PAGE_SIZE, Move::To(to));
    assert_eq!(moved, Ok(to));
    assert_eq!(space.regions().len(), 1);
    assert_eq!(space.regions()[0].range, VaRange::sized(to, 8 * PAGE_SIZE));
    let word = if touched { 7 } else { 0 };
    assert_eq!(space.load(to + PAGE_SIZE), Ok(word));
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
    let touched = [0, 511, 512, 40_000].map(|page| page * PAGE_SIZE);
    for at in touched {
        space.store(AT + at, 1 + at as u64).expect("store");
    }
    let old = VaRange::sized(AT, 2 * LARGE);
    for to in [AT + 8 * LARGE, AT + 16 * LARGE + 3 * PAGE_SIZE] {
        let from = space.regions()[0].range;
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
    let space = space_of(8 * PAGE_SIZE);
    let hole = VaRange::sized(AT + LARGE, PAGE_SIZE);
    let address = hole.start;
    for place in [Move::Never, Move::IfNeeded] {
        let refused = space.remap(hole, HIGHEST, place);
        assert_eq!(refused, Err(Error::NotOne { address }), "{place:?}");
        let bytes = HIGHEST;
        let refused = space.remap(VaRange::sized(AT, 8 * PAGE_SIZE), bytes, place);
        assert_eq!(refused, Err(Error::NoAddresses { bytes }), "{place:?}");
    }
    // From here to the end there is more than anywhere else.
    let rest = VaRange {
        start: AT,
        end: HIGHEST,
    };
    let refused = space.remap(rest, rest.len(), Move::Leaving);
    let address = AT + 8 * PAGE_SIZE;
    assert_eq!(refused, Err(Error::NotOne { address }));
    end(space);
}
