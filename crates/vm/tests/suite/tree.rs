//! The tree of slots: the edges of its levels, where new mappings go,
//! and operations of several threads on overlapping ranges.

use crate::system::plain;
use hosted::Hosted;
use machine::{Execute, Job, PAGE_SIZE, VaRange};
use std::sync::Arc;
use vm::system::Reservation;
use vm::{Best, Error, HIGHEST, MAP_START, Prot, Region, Space, Vm};

const MIB: usize = 1 << 20;
const GIB: usize = 1 << 30;

fn ranges(regions: &[Region]) -> Vec<(usize, usize)> {
    let bounds = |region: &Region| (region.range.start, region.range.end);
    regions.iter().map(bounds).collect()
}

#[test]
fn edges_of_every_level_are_as_any_other_page() {
    let vm = plain(1, 64);
    for edge in [2 * MIB, 128 * MIB, 8 * GIB, 512 * GIB, 32 << 40] {
        let space = Space::new(&vm).expect("a space");
        space.activate();
        let middle = (1 << 46) + edge;
        let whole = VaRange {
            start: middle - 4 * GIB,
            end: middle + 4 * GIB,
        };
        space.map_fixed(whole, Prot::READ).expect("map");
        let across = VaRange::sized(middle - PAGE_SIZE, 2 * PAGE_SIZE);
        space.map_fixed(across, Prot::READ_WRITE).expect("map");
        for at in [across.start, middle] {
            space.store(at, at as u64).expect("store");
        }
        assert_eq!(space.pmap().resident(), 2);
        space.protect(across, Prot::READ).expect("protect");
        assert!(matches!(space.store(middle, 1), Err(Error::Segv(_))));
        assert_eq!(space.load(middle), Ok(middle as u64));
        space.unmap(across).expect("unmap");
        let left = [(whole.start, across.start), (across.end, whole.end)];
        assert_eq!(ranges(&space.regions()), left);
        assert!(matches!(space.load(middle), Err(Error::Segv(_))));
        space.unmap(whole).expect("unmap");
        assert_eq!(space.regions(), []);
        drop(space);
        assert_eq!(vm.frames().free_count(), vm.frames().total());
    }
}

#[test]
fn what_was_unmapped_last_is_used_again() {
    let vm = plain(1, 64);
    let space = Space::new(&vm).expect("a space");
    for bytes in [PAGE_SIZE, 2 * MIB, 128 * MIB] {
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
    let vm = plain(2, 64);
    let space = Space::new(&vm).expect("a space");
    // All but a page in the other CPU's arena, and one that is in no arena.
    let all = VaRange {
        start: MAP_START,
        end: HIGHEST,
    };
    let gaps = [MAP_START + 65 * GIB + PAGE_SIZE, MAP_START + 900 * GIB];
    space.map_fixed(all, Prot::NONE).expect("map");
    for &gap in &gaps {
        space.unmap(VaRange::sized(gap, PAGE_SIZE)).expect("unmap");
    }
    let bytes = 2 * PAGE_SIZE;
    assert_eq!(
        space.map(bytes, Prot::NONE),
        Err(Error::NoAddresses { bytes })
    );
    assert_eq!(space.map(PAGE_SIZE, Prot::NONE), Ok(gaps[1]));
    assert_eq!(space.map(PAGE_SIZE, Prot::NONE), Ok(gaps[0]), "stolen");
    let bytes = PAGE_SIZE;
    assert_eq!(
        space.map(bytes, Prot::NONE),
        Err(Error::NoAddresses { bytes })
    );
}

#[test]
fn cpus_map_apart() {
    let vm = plain(2, 64);
    let space = Space::new(&vm).expect("a space");
    let mine = space.map(PAGE_SIZE, Prot::READ).expect("map");
    let machine = vm.machine().clone();
    let theirs = machine.on_cpu(1, || space.map(PAGE_SIZE, Prot::READ).expect("map"));
    assert!(theirs.abs_diff(mine) >= 8 * GIB);
}

type Change = fn(&Space<Best<Hosted>>, VaRange);

/// Each call is atomic: threads change overlapping ranges, across the edges of slots of
/// two levels, and a look finds all of a range as one of them left it.
#[test]
fn operations_on_overlapping_ranges_are_atomic() {
    const ROUNDS: usize = 200;
    let machine = Hosted::with_memory(4, 64 * MIB).expect("memory");
    let vm = Vm::<Best<Hosted>>::new(machine.clone()).expect("memory for the VM");
    let space = machine.on_cpu(0, || Space::new(&vm)).expect("a space");
    let space = Arc::new(space);
    let middle = (1 << 45) + 128 * MIB;
    let range = VaRange {
        start: middle - 2 * MIB - PAGE_SIZE,
        end: middle + 2 * MIB + PAGE_SIZE,
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
                let at = range.start + round % 3 * 2 * MIB;
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
            let regions = looker.regions();
            let found: Vec<_> = regions.iter().map(|region| region.range).collect();
            assert!(found.is_empty() || found == [range], "{regions:?}");
        }
    }));
    machine.execute(jobs);
    machine.on_cpu(0, || {
        drop(space);
        let frames = vm.frames();
        assert_eq!(frames.free_count(), frames.total(), "frames leaked");
        assert_eq!(vm.swap().reserved(), 0, "swap leaked");
    });
}
