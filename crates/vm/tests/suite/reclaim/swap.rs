//! The swap space, one thing at a time.

use crate::swapping::{NoPager, Owner, Pages};
use crate::world::P;
use hosted::Hosted;
use machine::{Frame, Topology};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use vm::pager::MemoryPager;
use vm::swap::{CLUSTER, Eviction, Loading, SwapIn, SwapSpace};

type Space = SwapSpace<Hosted>;

const FRAME: Frame = Frame(3);

fn space(machine: &Hosted, slots: u32) -> Space {
    SwapSpace::new(machine.cpus(), Box::new(NoPager), slots).expect("a table")
}

/// Runs `test` on the only CPU, with a space of `slots`.
fn alone(slots: u32, test: impl FnOnce(&Space) + Send) {
    let machine = Hosted::new(1);
    machine.clone().on_cpu(0, || {
        let space = space(&machine, slots);
        test(&space);
        assert_eq!((space.used(), space.cached()), (0, 0), "left over");
    });
}

fn allocate(space: &Space, count: usize) -> Option<Range<u32>> {
    space.allocate(&vec![FRAME; count])
}

/// Releases slots that are cached and have one reference.
fn free(space: &Space, slots: impl IntoIterator<Item = u32>) {
    for slot in slots {
        assert_eq!(space.release(slot), Some(FRAME), "slot {slot}");
    }
}

/// Begins to read a slot whose page is not in memory.
fn load(space: &Space, slot: u32) -> Loading<'_, Hosted> {
    match space.begin_in(slot, |_| None::<()>) {
        SwapIn::Load(loading) => loading,
        _ => panic!("the slot is not empty"),
    }
}

#[test]
fn a_run_is_whole_while_there_is_room() {
    alone(1_000, |space| {
        let runs: Vec<_> = (0..15)
            .map(|_| allocate(space, 32).expect("room"))
            .collect();
        assert!(runs.iter().all(|run| run.len() == 32));
        let slots: BTreeSet<u32> = runs.iter().cloned().flatten().collect();
        assert_eq!(slots.len(), 15 * 32, "a slot was given twice");
        assert_eq!((space.used(), space.cached()), (480, 480));
        let more = allocate(space, 100).expect("room");
        assert_eq!(more.len(), CLUSTER, "more than a cluster");
        free(space, slots);
        free(space, more);
        assert_eq!(allocate(space, 0), Some(0..0));
    });
}

#[test]
fn every_slot_is_given_once_and_then_none() {
    for slots in [0, 1, 31, 63, 64, 65, 200] {
        alone(slots, |space| {
            let mut given = BTreeSet::new();
            while let Some(run) = allocate(space, 7) {
                assert!((1..=7).contains(&run.len()));
                assert!(
                    run.into_iter().all(|slot| given.insert(slot)),
                    "given twice"
                );
            }
            assert!(given.iter().copied().eq(0..slots), "{slots} slots");
            assert_eq!(space.used(), slots.into());
            if let Some(last) = given.pop_last() {
                free(space, [last]);
                assert_eq!(allocate(space, 7), Some(last..last + 1));
                given.insert(last);
            }
            free(space, given);
        });
    }
}

#[test]
fn fragments_are_used_when_nothing_else_is_left() {
    alone(300, |space| {
        while allocate(space, 32).is_some() {}
        free(space, (0..300).filter(|slot| [1, 2].contains(&(slot % 4))));
        let mut runs = BTreeSet::new();
        while let Some(run) = allocate(space, 32) {
            assert!(runs.insert(run.start));
            assert_eq!(run.len(), 2, "those between two that are taken");
        }
        assert_eq!(runs.len(), 75);
        free(space, 0..300);
    });
}

#[test]
fn runs_are_looked_for_beyond_fragments() {
    alone(256, |space| {
        while allocate(space, 32).is_some() {}
        free(space, (0..64).step_by(2));
        free(space, 200..232);
        assert_eq!(allocate(space, 32), Some(200..232));
        let single = allocate(space, 1).expect("room");
        assert!(single.end <= 64);
        free(space, (1..64).step_by(2));
        free(space, single);
        free(space, 64..256);
    });
}

#[test]
fn cpus_carve_from_lines_of_their_own() {
    const CPUS: usize = 4;
    let machine = Hosted::new(CPUS);
    let space = space(&machine, 8_192);
    let mut lines: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); CPUS];
    for round in 0..100 {
        for (cpu, lines) in lines.iter_mut().enumerate() {
            let run = machine.on_cpu(cpu, || allocate(&space, 1 + (round + cpu) % 20));
            lines.extend(run.expect("room").map(|slot| slot / 8));
        }
    }
    let all: usize = lines.iter().map(BTreeSet::len).sum();
    let different: BTreeSet<u32> = lines.into_iter().flatten().collect();
    assert_eq!(all, different.len(), "two CPUs wrote a line");
}

#[test]
fn the_last_slots_are_whoevers_asks() {
    let machine = Hosted::new(3);
    let space = space(&machine, 256);
    let first = machine.on_cpu(0, || allocate(&space, 8)).expect("room");
    let mut rest = 256 - first.len();
    while let Some(run) = machine.on_cpu(1, || allocate(&space, 8)) {
        rest -= run.len();
    }
    assert_eq!(rest, 0, "another CPU's region is not taken from");
    machine.on_cpu(0, || free(&space, first.clone()));
    let found = machine.on_cpu(2, || allocate(&space, 8));
    assert_eq!(found, Some(first));
}

/// A page of a library that all processes map, say.
#[test]
fn a_hundred_thousand_sharers() {
    const SHARERS: u32 = 100_000;
    alone(1, |space| {
        assert_eq!(space.allocate(&[Frame(u32::MAX)]), Some(0..1));
        (1..SHARERS).for_each(|_| space.retain(0));
        assert_eq!(space.references(0), SHARERS);
        assert!(
            space.holds(0, Frame(u32::MAX)),
            "the count grew into the frame"
        );
        for left in (1..SHARERS).rev() {
            assert_eq!(space.release(0), None);
            assert_eq!(space.references(0), left);
        }
        assert_eq!(space.release(0), Some(Frame(u32::MAX)));
    });
}

#[test]
fn in_and_out() {
    alone(10, |space| {
        let slot = allocate(space, 1).expect("room").start;
        assert!(matches!(space.begin_in(slot, Some), SwapIn::Cached(FRAME)));
        assert_eq!(space.uncache(slot, Frame(4), || true), Eviction::Kept);
        assert_eq!(space.uncache(slot, FRAME, || false), Eviction::Kept);
        assert!(space.holds(slot, FRAME));
        assert!(space.retain_if(slot, FRAME) && !space.retain_if(slot, Frame(4)));
        assert_eq!((space.references(slot), space.release(slot)), (2, None));
        assert_eq!(space.uncache(slot, FRAME, || true), Eviction::Evicted);
        assert!(!space.retain_if(slot, FRAME), "not in the cache");
        assert_eq!((space.used(), space.cached()), (1, 0));
        assert_eq!(space.uncache(slot, FRAME, || true), Eviction::Kept);
        drop(load(space, slot));
        let loading = load(space, slot);
        assert_eq!(loading.slot(), slot);
        assert!(loading.finish(Frame(5)), "the slot has a reference");
        assert!(space.holds(slot, Frame(5)));
        assert_eq!(space.release(slot), Some(Frame(5)));
        assert!(matches!(space.begin_in(slot, Some), SwapIn::Gone));
    });
}

/// An old number of a page-table entry's that names an object's slot by now.
#[test]
fn a_reserved_slot_is_not_looked_up() {
    alone(2, |space| {
        let slot = space.reserve().expect("room");
        assert_eq!((space.used(), space.cached()), (1, 0));
        assert!(matches!(space.begin_in(slot, Some), SwapIn::Gone));
        assert!(!space.holds(slot, FRAME));
        assert!(!space.holds(slot, Frame(1)));
        assert_eq!(space.uncache(slot, Frame(1), || true), Eviction::Kept);
        assert_eq!(space.references(slot), 1);
        let other = allocate(space, 2).expect("room");
        assert_eq!(other.len(), 1, "the slot is taken");
        assert_eq!(space.reserve(), None);
        assert_eq!(space.release(slot), None);
        assert_eq!(space.used(), 1);
        free(space, other);
    });
}

#[test]
fn who_is_busy_frees_what_nobody_needs() {
    alone(10, |space| {
        let slot = allocate(space, 1).expect("room").start;
        let released = space.uncache(slot, FRAME, || {
            assert_eq!(space.release(slot), None, "the slot is busy");
            false
        });
        assert_eq!(released, Eviction::Released);
        assert_eq!(space.used(), 0);
        let slot = allocate(space, 1).expect("room").start;
        let evicted = space.uncache(slot, FRAME, || space.release(slot).is_none());
        assert_eq!(evicted, Eviction::Evicted);
        assert_eq!(space.used(), 0);
        let slot = allocate(space, 1).expect("room").start;
        assert_eq!(space.uncache(slot, FRAME, || true), Eviction::Evicted);
        let loading = load(space, slot);
        assert_eq!(space.release(slot), None, "the slot is busy");
        assert_eq!(space.used(), 1);
        assert!(!loading.finish(FRAME), "the slot is free");
    });
}

#[test]
#[should_panic(expected = "released twice")]
fn a_slot_is_not_released_twice() {
    alone(1, |space| assert_eq!(space.release(0), None));
}

#[test]
#[should_panic(expected = "no swap slot 100")]
fn there_are_no_slots_behind_the_last() {
    alone(100, |space| space.retain(100));
}

/// Pages go out and come back by way of a pager.
#[test]
fn pages_survive() {
    let machine = Hosted::with_memory(1, 64 * P).expect("memory");
    machine.clone().on_cpu(0, || {
        let pager = Box::new(MemoryPager::new());
        let space = SwapSpace::new(machine.cpus(), pager, 1_000).expect("a table");
        let frames: Vec<Frame> = (0..20).map(Frame).collect();
        // SAFETY: the frame is the test's.
        let word = |frame| unsafe { machine::Memory::word(&machine, frame, 500) };
        let value = |frame: Frame| u64::from(frame.0) + 1;
        frames
            .iter()
            .for_each(|&f| word(f).store(value(f), Relaxed));
        let slots = space.allocate(&frames).expect("room");
        assert_eq!(slots.len(), 20);
        // SAFETY: the frames are the test's.
        let written = unsafe { space.write(&machine, slots.start, &frames) };
        written.expect("written");
        for (slot, &frame) in slots.zip(&frames) {
            assert_eq!(space.uncache(slot, frame, || true), Eviction::Evicted);
            word(frame).store(0, Relaxed);
            let loading = load(&space, slot);
            // SAFETY: the frames are the test's.
            unsafe { loading.read(&machine, Frame(40)) }.expect("read");
            assert_eq!(word(Frame(40)).load(Relaxed), value(frame));
        }
    });
}

struct Shared {
    space: Space,
    pages: Pages<Hosted>,
}

impl Owner<Hosted> for Shared {
    fn pages(&self) -> &Pages<Hosted> {
        &self.pages
    }

    fn freed(&self, frame: Frame) {
        panic!("{frame:?} is the cache's");
    }
}

/// A task that finds a slot being read in sleeps until it is there.
#[test]
fn others_wait_for_the_reader() {
    const CPUS: usize = 4;
    let machine = Hosted::new(CPUS);
    let shared = Shared {
        space: space(&machine, 4),
        pages: Pages::new(8),
    };
    machine.on_cpu(0, || assert_eq!(allocate(&shared.space, 1), Some(0..1)));
    shared.pages.begin(FRAME, 1);
    // In some of the rounds all others sleep when the page comes.
    for _ in 0..100 {
        let asking = AtomicUsize::new(0);
        let wait = |cpu: usize| {
            machine.on_cpu(cpu, || {
                asking.fetch_add(1, Relaxed);
                match shared.space.begin_in(0, |frame| shared.hold(frame)) {
                    SwapIn::Cached(hold) => assert_eq!(hold.frame, FRAME),
                    _ => panic!("not the reader's page"),
                }
            });
        };
        machine.on_cpu(0, || {
            let alone = || shared.pages.freeze(FRAME, 1);
            assert_eq!(shared.space.uncache(0, FRAME, alone), Eviction::Evicted);
            let loading = load(&shared.space, 0);
            thread::scope(|scope| {
                let wait = &wait;
                (1..CPUS).for_each(|cpu| drop(scope.spawn(move || wait(cpu))));
                while asking.load(Relaxed) < CPUS - 1 {
                    thread::yield_now();
                }
                shared.pages.begin(FRAME, 1);
                assert!(loading.finish(FRAME));
            });
        });
        // The cache's reference is left.
        assert_eq!(shared.pages.references(FRAME), 1);
    }
}
