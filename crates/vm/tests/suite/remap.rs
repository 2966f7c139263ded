//! Moving several mappings, cutting off and doubling, on hosted memory.

use crate::refusing;

use hosted::Hosted;
use machine::{PAGE_SIZE, VaRange};
use std::sync::Arc;
use vm::system::Reservation;
use vm::{Advice, At, Best, Bring, Error, Flags, Limit, Move, Options, Prot, Request, Space, Vm};

const P: usize = PAGE_SIZE;
const SLOT: usize = 2 << 20;
/// The place of the moving range, three pages before a border of 2 MiB, and its goal.
const FROM: usize = (1 << 39) - 3 * P;
const TO: usize = 3 << 39;

type TestSpace = Space<Best<Hosted>>;

fn space() -> TestSpace {
    let machine = Hosted::with_memory(2, 16 << 20).expect("memory");
    machine.attach(0);
    let options = Options {
        swap_pages: Some(1 << 20),
        ..Options::default()
    };
    let vm: Arc<Vm<Best<Hosted>>> = Vm::with_options(machine, options).expect("memory for the VM");
    let space = Space::new(&vm).expect("a space");
    space.activate();
    space
}

fn pages(at: usize, count: usize) -> VaRange {
    VaRange::sized(at, count * P)
}

fn map(space: &TestSpace, range: VaRange, prot: Prot) {
    space.map_fixed(range, prot).expect("map");
}

/// The mappings in `range`: from its start in pages, how many, the rights.
fn mapped(space: &TestSpace, range: VaRange) -> Vec<(usize, usize, Prot)> {
    let regions = space.regions().into_iter();
    let inside = regions.filter(|region| range.start <= region.range.start);
    let inside = inside.filter(|region| region.range.end <= range.end);
    let told = |region: vm::Region| {
        let first = (region.range.start - range.start) / P;
        (first, region.range.pages(), region.prot())
    };
    inside.map(told).collect()
}

/// Two pages, a hole, three pages (the first is read-only), a hole; each page
/// begins with its number.
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

const SEVERAL: [(usize, usize, Prot); 3] = [
    (0, 2, Prot::READ_WRITE),
    (3, 1, Prot::READ),
    (4, 2, Prot::READ_WRITE),
];

#[test]
fn several_mappings_move_with_what_is_between_them() {
    let space = space();
    several(&space, FROM);
    // Mappings in the gaps of the new place stay; others go.
    map(&space, pages(TO, 8), Prot::READ_EXECUTE);
    let reserved = space.vm().swap().reserved();
    assert_eq!(space.remap(pages(FROM, 7), 7 * P, Move::To(TO)), Ok(TO));
    assert_eq!(mapped(&space, pages(FROM, 7)), []);
    let gaps = [(2, 1, Prot::READ_EXECUTE), (6, 2, Prot::READ_EXECUTE)];
    let mut expected: Vec<_> = SEVERAL.into_iter().chain(gaps).collect();
    expected.sort_by_key(|(first, ..)| *first);
    assert_eq!(mapped(&space, pages(TO, 8)), expected);
    for page in [0, 1, 3, 4, 5] {
        assert_eq!(space.load(TO + page * P), Ok(page as u64));
    }
    assert!(space.load(FROM).is_err());
    assert_eq!(space.vm().swap().reserved(), reserved);
    // Nothing moves that does not begin where it should, or that changes its length.
    let address = TO + 9 * P;
    let error = space.remap(pages(address, 7), 7 * P, Move::To(FROM));
    assert_eq!(error, Err(Error::NotOne { address }));
    let error = space.remap(pages(TO, 6), 7 * P, Move::To(FROM));
    assert_eq!(
        error,
        Err(Error::NotOne {
            address: TO + 2 * P
        })
    );
}

#[test]
fn several_mappings_leave_as_many() {
    let space = space();
    several(&space, FROM);
    let locked = pages(FROM + 4 * P, 1);
    space.set_limit(Limit::Locked, Some(P)).expect("a limit");
    space.lock(locked, Bring::Now).expect("lock");
    let reserved = space.vm().swap().reserved();
    let moved = space.remap(pages(FROM, 6), 6 * P, Move::LeavingTo(TO));
    assert_eq!(moved, Ok(TO));
    assert_eq!(space.vm().swap().reserved(), 2 * reserved);
    let regions = space.regions();
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

#[test]
fn what_is_cut_off_may_be_anything() {
    let space = space();
    several(&space, FROM);
    assert_eq!(space.remap(pages(FROM, 5), P, Move::Never), Ok(FROM));
    assert_eq!(
        mapped(&space, pages(FROM, 7)),
        [(0, 1, Prot::READ_WRITE), (5, 1, Prot::READ_WRITE),]
    );
    several(&space, FROM);
    // The part that stays must be one mapping.
    let error = space.remap(pages(FROM, 6), 4 * P, Move::To(TO));
    assert_eq!(
        error,
        Err(Error::NotOne {
            address: FROM + 2 * P
        })
    );
    assert_eq!(mapped(&space, pages(FROM, 7)), SEVERAL);
    assert_eq!(space.remap(pages(FROM, 6), 2 * P, Move::To(TO)), Ok(TO));
    assert_eq!(mapped(&space, pages(FROM, 7)), []);
    assert_eq!(mapped(&space, pages(TO, 7)), [(0, 2, Prot::READ_WRITE)]);
    assert_eq!(space.load(TO + P), Ok(1));
    assert_eq!(space.vm().swap().reserved(), 2);
    // The part to be cut off cannot end where nothing can be mapped.
    let beyond = VaRange {
        start: TO,
        end: usize::MAX,
    };
    let refused = space.remap(beyond, P, Move::Never);
    assert!(matches!(refused, Err(Error::Invalid { .. })));
    let hole = VaRange {
        start: FROM,
        ..beyond
    };
    let address = FROM;
    assert_eq!(
        space.remap(hole, P, Move::Never),
        Err(Error::NotOne { address })
    );
}

#[test]
fn shared_memory_is_mapped_a_second_time() {
    let space = space();
    let request = Request::anonymous(3 * P, Prot::READ_WRITE).shared();
    let at = space.map_as(&request).expect("map");
    let second = pages(at + P, 0);
    let twice = space.remap(second, 3 * P, Move::IfNeeded).expect("twice");
    assert_eq!(space.remap(second, P, Move::To(TO)), Ok(TO));
    space.store(at + P, 7).expect("store");
    assert_eq!((space.load(twice), space.load(TO)), (Ok(7), Ok(7)));
    space.store(twice + P, 8).expect("store");
    assert_eq!(space.load(at + 2 * P), Ok(8));
    // Behind the memory's end there is nothing.
    assert_eq!(space.load(twice + 2 * P), Err(Error::Bus { page: 3 }));
    let bytes = P;
    let stays = space.remap(second, bytes, Move::Never);
    assert_eq!(stays, Err(Error::NoAddresses { bytes }));
    // Its place is none, and no private memory has a second one.
    let address = at + P;
    let onto = space.remap(second, P, Move::To(address));
    assert_eq!(onto, Err(Error::NotOne { address }));
    for (at, to) in [(at + P, at), (map_private(&space), TO + SLOT)] {
        let refused = space.remap(pages(at, 0), 2 * P, Move::To(to));
        assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    }
    let address = TO + SLOT;
    let none = space.remap(pages(address, 0), P, Move::IfNeeded);
    assert_eq!(none, Err(Error::NotOne { address }));
    assert_eq!(space.load(at + P), Ok(7));
}

fn map_private(space: &TestSpace) -> usize {
    space.map(P, Prot::READ_WRITE).expect("map")
}

#[test]
fn a_second_mapping_counts_as_any() {
    let space = space();
    let request = Request::anonymous(P, Prot::READ_WRITE).shared();
    let locked = request.with(Flags::LOCKED);
    let at = space.map_as(&locked).expect("map");
    let second = pages(at, 0);
    space.set_limit(Limit::Locked, Some(P)).expect("a limit");
    let more = space.remap(second, P, Move::IfNeeded);
    assert_eq!(more, Err(Error::LockLimit));
    space
        .set_limit(Limit::Locked, Some(2 * P))
        .expect("a limit");
    let twice = space.remap(second, P, Move::IfNeeded).expect("twice");
    assert_eq!(space.incore(pages(twice, 1)), Ok(vec![true]));
    space.unmap(pages(twice, 1)).expect("unmap");
    space.remap(second, P, Move::IfNeeded).expect("given back");
}

/// 128 MiB that are mapped with equal attributes have one slot in the tree, their pages a table for
/// each 2 MiB.
#[test]
fn large_mappings_move_with_their_pages() {
    const LARGE: usize = 128 << 20;
    let space = space();
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
fn mappings_change_in_the_slot_that_they_share() {
    let space = space();
    let at = TO + 10 * P;
    // Every second page of two dozen, and its neighbour with other rights.
    for page in (0..24).step_by(3) {
        map(&space, pages(at + page * P, 1), Prot::READ_WRITE);
        map(&space, pages(at + (page + 1) * P, 1), Prot::READ);
        space.store(at + page * P, page as u64 + 1).expect("store");
    }
    let before = mapped(&space, pages(at, 24));
    let to = at + 40 * P;
    assert_eq!(space.remap(pages(at, 24), 24 * P, Move::To(to)), Ok(to));
    assert_eq!(mapped(&space, pages(to, 24)), before);
    assert_eq!(space.regions().len(), before.len());
    for page in (0..24).step_by(3) {
        assert_eq!(space.load(to + page * P), Ok(page as u64 + 1));
    }
}

#[test]
fn a_move_that_fails_changes_nothing() {
    let space = space();
    several(&space, FROM);
    let shared = Request::anonymous(P, Prot::READ_WRITE).shared();
    let shared = shared.at(At::Fixed(FROM + 6 * P));
    space.map_as(&shared).expect("map");
    space
        .advise(pages(FROM, 1), Advice::DontFork)
        .expect("advise");
    let (regions, reserved) = (space.regions(), space.vm().swap().reserved());
    let mut refused = 0;
    for nth in 1.. {
        refusing::refuse_after(nth);
        let moved = space.remap(pages(FROM, 7), 7 * P, Move::To(TO));
        refusing::refuse_after(0);
        if moved.is_ok() {
            break;
        }
        assert!(matches!(moved, Err(Error::OutOfMemory(_))), "{moved:?}");
        assert_eq!(space.regions(), regions);
        assert_eq!(space.vm().swap().reserved(), reserved);
        assert_eq!(space.load(FROM + 5 * P), Ok(5));
        refused += 1;
    }
    assert!(refused > 3, "{refused}");
    assert_eq!(space.load(TO + 5 * P), Ok(5));
    assert_eq!(space.regions().len(), regions.len());
}
