//! The tree of slots: the edges of its levels, where new mappings go, and operations of several
//! threads on overlapping ranges.

use crate::world::{MIB, P, SLOT, TestSpace, active, is_segv, nothing_left, pages, world};
use machine::{Execute, Job, VaRange};
use std::sync::Arc;
use vm::{Error, HIGHEST, MAP_START, Prot, Region, Space};

const GIB: usize = 1 << 30;

fn ranges(regions: &[Region]) -> Vec<(usize, usize)> {
    let bounds = |region: &Region| (region.range.start, region.range.end);
    regions.iter().map(bounds).collect()
}

#[test]
fn edges_of_every_level_are_as_any_other_page() {
    let vm = world(64).cpus(1).vm();
    for edge in [SLOT, 128 * MIB, 8 * GIB, 512 * GIB, 32 << 40] {
        let space = active(&vm);
        let middle = (1 << 46) + edge;
        let whole = VaRange {
            start: middle - 4 * GIB,
            end: middle + 4 * GIB,
        };
        space.map_fixed(whole, Prot::READ).expect("map");
        let across = pages(middle - P, 2);
        space.map_fixed(across, Prot::READ_WRITE).expect("map");
        for at in [across.start, middle] {
            space.store(at, at as u64).expect("store");
        }
        assert_eq!(space.pmap().resident(), 2);
        space.protect(across, Prot::READ).expect("protect");
        assert!(is_segv(space.store(middle, 1)));
        assert_eq!(space.load(middle), Ok(middle as u64));
        space.unmap(across).expect("unmap");
        let left = [(whole.start, across.start), (across.end, whole.end)];
        assert_eq!(ranges(&space.regions().expect("regions")), left);
        assert!(is_segv(space.load(middle)));
        space.unmap(whole).expect("unmap");
        assert_eq!(space.regions().expect("regions"), []);
        drop(space);
        nothing_left(&vm);
    }
}

#[test]
fn what_was_unmapped_last_is_used_again() {
    let space = world(64).cpus(1).space();
    for bytes in [P, SLOT, 128 * MIB] {
        let first = space.map(bytes, Prot::READ).expect("map");
        let second = space.map(bytes, Prot::READ).expect("map");
        assert!(first.is_multiple_of(bytes) && second >= first + bytes);
        for (unmapped, kept) in [(first, second), (second, first)] {
            space.unmap(VaRange::sized(unmapped, bytes)).expect("unmap");
            assert_eq!(
                space.map(bytes, Prot::READ),
                Ok(unmapped),
                "next to {kept:#x}"
            );
        }
    }
}

#[test]
fn room_is_refused_only_when_there_is_none() {
    let space = world(64).space();
    // All but a page in the other CPU's arena, and one that is in no arena.
    let all = VaRange {
        start: MAP_START,
        end: HIGHEST,
    };
    let gaps = [MAP_START + 65 * GIB + P, MAP_START + 900 * GIB];
    space.map_fixed(all, Prot::NONE).expect("map");
    for &gap in &gaps {
        space.unmap(pages(gap, 1)).expect("unmap");
    }
    let bytes = 2 * P;
    assert_eq!(
        space.map(bytes, Prot::NONE),
        Err(Error::NoAddresses { bytes })
    );
    assert_eq!(space.map(P, Prot::NONE), Ok(gaps[1]));
    assert_eq!(space.map(P, Prot::NONE), Ok(gaps[0]), "stolen");
    let bytes = P;
    assert_eq!(
        space.map(bytes, Prot::NONE),
        Err(Error::NoAddresses { bytes })
    );
}

#[test]
fn cpus_map_apart() {
    let space = world(64).space();
    let mine = space.map(P, Prot::READ).expect("map");
    let theirs = space
        .vm()
        .machine()
        .on_cpu(1, || space.map(P, Prot::READ).expect("map"));
    assert!(theirs.abs_diff(mine) >= 8 * GIB);
}

type Change = fn(&TestSpace, VaRange);

/// Each call is atomic: threads change overlapping ranges, across the edges of slots of
/// two levels, and a look finds all of a range as one of them left it.
#[test]
fn operations_on_overlapping_ranges_are_atomic() {
    const ROUNDS: usize = 200;
    let vm = world(64).cpus(4).apart();
    let machine = vm.machine();
    let space = machine.on_cpu(0, || Space::new(&vm)).expect("a space");
    let space = Arc::new(space);
    let middle = (1 << 45) + 128 * MIB;
    let range = VaRange {
        start: middle - SLOT - P,
        end: middle + SLOT + P,
    };
    let changes: [Change; 3] = [
        |space, range| space.map_fixed(range, Prot::READ_WRITE).expect("map"),
        |space, range| {
            let changed = space.protect(range, Prot::READ);
            assert!(matches!(changed, Ok(()) | Err(Error::NotMapped { .. })));
        },
        |space, range| space.unmap(range).expect("unmap"),
    ];
    let mut jobs: Vec<Job> = Vec::new();
    for change in changes {
        let space = Arc::clone(&space);
        jobs.push(Box::new(move || {
            space.activate();
            for round in 0..ROUNDS {
                change(&space, range);
                let at = range.start + round % 3 * SLOT;
                match space.store(at, 1) {
                    Ok(()) | Err(Error::Segv(_)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        }));
    }
    let looker = Arc::clone(&space);
    jobs.push(Box::new(move || {
        for _ in 0..ROUNDS {
            let regions = looker.regions().expect("regions");
            let found: Vec<_> = regions.iter().map(|region| region.range).collect();
            assert!(found.is_empty() || found == [range], "{regions:?}");
        }
    }));
    machine.execute(jobs);
    machine.on_cpu(0, || {
        drop(space);
        nothing_left(&vm);
    });
}
