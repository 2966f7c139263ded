//! The environment of a kernel: memory with holes, few address-space tags, a half of each root
//! table that is its own, and a heap that may have no room.

use crate::refusing;
use crate::world::{MIB, P, SLOT, System, TestSpace, World, nothing_left, page, world};
use hosted::{Hosted, Options as Machine, Stats};
use machine::{Frame, Memory, VaRange};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use vm::{Best, Content, Error, Frames, Prot, Resource, Space, Vm};

const BLOCK: u32 = 512;
const AT: usize = 1 << 42;

/// A space with `bytes` mapped at [`AT`].
fn space(vm: &System, bytes: usize) -> TestSpace {
    let space = Space::new(vm).expect("a space");
    let range = VaRange::sized(AT, bytes);
    space.map_fixed(range, Prot::READ_WRITE).expect("map");
    space
}

/// The frames that a machine hands over.
fn usable(machine: &Hosted) -> BTreeSet<u32> {
    let mut all = BTreeSet::new();
    machine.usable(&mut |range| all.extend(range));
    all
}

/// 16 MiB, where the first frame, the last ones, a block, and parts of runs and blocks are
/// not handed over.
fn with_holes() -> World {
    let mut holes = vec![0..1, 100..101, 511..513, 1024..1536];
    holes.extend([1600..1607, 2047..2048, 4000..4096]);
    world(16).machine(|machine| machine.reserved = holes)
}

/// The whole blocks of [`with_holes`].
const WHOLE: [u32; 3] = [4 * BLOCK, 5 * BLOCK, 6 * BLOCK];

#[test]
fn all_frames_that_there_are_are_used_and_no_others() {
    let vm = with_holes().vm();
    let (frames, machine) = (vm.frames(), vm.machine());
    let all = usable(machine);
    assert_eq!([frames.total(), frames.free_count()], [all.len(); 2]);
    let mut blocks: Vec<_> = core::iter::from_fn(|| frames.allocate_block(machine)).collect();
    blocks.sort();
    assert_eq!(blocks, WHOLE.map(Frame));
    // SAFETY: the frames were given out, and nothing uses them.
    let free_block = |&first: &Frame| unsafe { frames.free_block(machine, first) };
    blocks.iter().for_each(free_block);
    // SAFETY: the frames are the machine's.
    let given = core::iter::from_fn(|| unsafe { frames.allocate(machine, Content::Any) });
    let given: Vec<_> = given.collect();
    let numbers: BTreeSet<_> = given.iter().map(|frame| frame.0).collect();
    assert_eq!((given.len(), &numbers), (all.len(), &all));
    // SAFETY: the frames were given out, and nothing uses them.
    let free = |&frame: &Frame| unsafe { frames.free(machine, frame, Content::Any) };
    given.iter().for_each(free);
    frames.drain();
    let block = frames.allocate_block(machine);
    assert!(block.is_some(), "blocks are whole again");
}

#[test]
fn superpages_come_from_whole_blocks_only() {
    let vm = with_holes().superpages().vm();
    let space = space(&vm, 5 * SLOT);
    space.activate();
    for at in (AT..AT + 5 * SLOT).step_by(P) {
        space.store(at, at as u64).expect("store");
    }
    assert_eq!(space.pmap().superpages(), WHOLE.len());
    for at in (AT..AT + 5 * SLOT).step_by(P) {
        assert_eq!(space.load(at), Ok(at as u64));
    }
    drop(space);
    nothing_left(&vm);
}

#[test]
fn reclaim_goes_round_the_holes() {
    let pages = 2 * 16 * MIB / P;
    let vm = with_holes().swap(2 * pages as u32).vm();
    let space = space(&vm, pages * P);
    space.activate();
    let at = |page: usize| AT + page * P;
    (0..pages).for_each(|page| space.store(at(page), page as u64).expect("store"));
    (0..pages).for_each(|page| assert_eq!(space.load(at(page)), Ok(page as u64)));
    drop(space);
    nothing_left(&vm);
}

fn holes() -> impl Strategy<Value = Vec<Range<u32>>> {
    let hole = (0..4 * BLOCK, prop_oneof![1..9_u32, 1..700_u32]);
    let hole = hole.prop_map(|(start, len)| start..(start + len).min(4 * BLOCK));
    proptest::collection::vec(hole, 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the map, all of it goes out once, and comes back.
    #[test]
    fn any_map_of_memory_will_do(reserved in holes(), cpus in 1..40_usize) {
        let machine = Machine {
            reserved,
            ..Machine::new(cpus, 4 * SLOT)
        };
        let machine = Hosted::with_options(machine).expect("memory");
        let all = usable(&machine);
        machine.on_cpu(cpus - 1, || {
            let frames = Frames::new(&machine).expect("room");
            let whole = (0..4).filter(|block| {
                let mut frames = block * BLOCK..(block + 1) * BLOCK;
                frames.all(|frame| all.contains(&frame))
            });
            let blocks: Vec<_> =
                core::iter::from_fn(|| frames.allocate_block(&machine)).collect();
            assert_eq!(blocks.len(), whole.count());
            // SAFETY: the frames were given out, and nothing uses them.
            blocks.iter().for_each(|&first| unsafe { frames.free_block(&machine, first) });
            // SAFETY: the frames are the machine's.
            let take = || unsafe { frames.allocate(&machine, Content::Zeroed) };
            let given: Vec<_> = core::iter::from_fn(take).collect();
            let numbers: BTreeSet<_> = given.iter().map(|frame| frame.0).collect();
            assert_eq!((numbers, given.len()), (all.clone(), all.len()));
            for &frame in &given {
                // SAFETY: it was given out, and nothing uses it.
                unsafe { frames.free(&machine, frame, Content::Zeroed) };
            }
            assert_eq!(frames.free_count(), all.len());
        });
    }
}

fn few_tags(asids: usize) -> System {
    world(16).machine(|machine| machine.asids = asids).vm()
}

/// Spaces that have their own numbers at [`AT`].
fn numbered(vm: &System, count: usize) -> Vec<TestSpace> {
    let spaces: Vec<_> = (0..count).map(|_| space(vm, 2 * P)).collect();
    for (number, space) in spaces.iter().enumerate() {
        space.activate();
        space.store(AT, number as u64).expect("store");
    }
    spaces
}

#[test]
fn more_spaces_than_tags_never_see_each_other() {
    for asids in [1, 2, 3, 64, 65, 1 << 16] {
        std::thread::spawn(move || {
            let vm = few_tags(asids);
            let spaces = numbered(&vm, 70);
            for step in [1, 3, 7] {
                for turn in 0..spaces.len() {
                    let number = turn * step % spaces.len();
                    spaces[number].activate();
                    assert_eq!(spaces[number].load(AT), Ok(number as u64), "{asids} tags");
                    assert_eq!(spaces[number].load(AT + P), Ok(0));
                }
            }
            drop(spaces);
            nothing_left(&vm);
        })
        .join()
        .expect("spaces apart");
    }
}

/// Flushes of CPU 0 while it begins to run in `space`.
fn flushes(vm: &System, space: &TestSpace) -> u64 {
    let stats = || vm.machine().stats().into_iter().sum::<Stats>();
    let count = || stats().local_flushes;
    let before = count();
    space.activate();
    count() - before
}

#[test]
fn a_tag_of_ones_own_saves_the_flush_and_goes_to_the_next() {
    let vm = few_tags(3);
    let mut spaces = numbered(&vm, 4);
    let all: Vec<_> = spaces.iter().map(|space| flushes(&vm, space)).collect();
    assert_eq!(all, [0, 0, 1, 1]);
    drop(spaces.remove(1));
    let next = space(&vm, P);
    assert_eq!(flushes(&vm, &next), 0);
    assert_eq!(next.load(AT), Ok(0), "left by the tag's last owner");
}

/// A CPU goes from space to space with one tag for all, while another takes their pages away.
#[test]
fn shared_tags_keep_shootdowns_right() {
    const ROUNDS: u64 = 300;
    let vm = few_tags(2);
    let spaces: Arc<[TestSpace]> = numbered(&vm, 4).into();
    // The page behind stays, so it never reads as 0.
    let stays = AT + P;
    for (number, space) in spaces.iter().enumerate() {
        space.activate();
        space.store(stays, 100 + number as u64).expect("store");
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            vm.machine().attach(1);
            for round in 0..ROUNDS as usize {
                let number = round * 3 % spaces.len();
                spaces[number].activate();
                for _ in 0..4 {
                    let seen = spaces[number].load(AT).expect("mapped");
                    assert!(seen == 0 || seen == number as u64, "{seen} in {number}");
                    let seen = spaces[number].load(stays);
                    assert_eq!(seen, Ok(100 + number as u64), "in {number}");
                }
            }
        });
        for round in 0..ROUNDS as usize {
            let number = round % spaces.len();
            spaces[number].discard(page(AT)).expect("discard");
            spaces[number].activate();
            spaces[number].store(AT, number as u64).expect("store");
        }
    });
}

#[test]
fn the_kernel_half_is_in_each_space_and_stays() {
    let vm = world(4).machine(|machine| machine.kernel_half = true).vm();
    for _ in 0..3 {
        let parent = space(&vm, 64 * P);
        // The machine looks at each root that is activated.
        parent.activate();
        (0..64).for_each(|page| parent.store(AT + page * P, 1).expect("store"));
        let child = parent.fork().expect("fork");
        child.activate();
        child.store(AT, 2).expect("store");
        child.exec();
        parent.activate();
        drop(child);
        assert_eq!(parent.load(AT), Ok(1));
        drop(parent);
        nothing_left(&vm);
        // The root is a page of zeroes now.
        let pages = vm.frames().total() - 20;
        let zeroes = space(&vm, pages * P);
        zeroes.activate();
        for page in 0..pages {
            for word in [2048, P - 8] {
                assert_eq!(zeroes.load(AT + page * P + word), Ok(0));
            }
        }
    }
}

#[test]
fn a_vm_without_room_on_the_heap_is_an_error() {
    let machine = Hosted::with_memory(2, 16 * MIB).expect("memory");
    refusing::spare_arc::<Vm<Best<Hosted>>>();
    let before = refusing::live();
    let failed = |error| {
        assert_eq!(error, Error::OutOfMemory(Resource::Heap));
        assert_eq!(refusing::live(), before, "a heap leak");
    };
    let (_vm, refused) = refusing::each(|| Vm::<Best<Hosted>>::new(machine.clone()), failed);
    assert!(refused >= 8, "{refused} allocations");
}
