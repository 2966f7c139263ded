//! The environment of a kernel: memory with holes, few address-space tags, a half of each root
//! table that is its own, and a heap that may have no room.

use crate::refusing;
use hosted::{Hosted, Options as Machine, Stats};
use machine::{Frame, Memory, PAGE_SIZE, Topology, VaRange};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use vm::pager::MemoryPager;
use vm::swap::SwapSpace;
use vm::{Best, Content, Error, Frames, Options, Prot, Resource, Space, Superpages, Vm};

const MIB: usize = 1 << 20;
const HUGE: usize = 2 * MIB;
const BLOCK: u32 = 512;
const AT: usize = 1 << 42;

type System = Arc<Vm<Best<Hosted>>>;
type TestSpace = Space<Best<Hosted>>;

/// A VM on such a machine, whose first CPU is this thread.
fn system(machine: Machine, options: Options<Best<Hosted>>) -> System {
    let machine = Hosted::with_options(machine).expect("memory");
    machine.attach(0);
    Vm::with_options(machine, options).expect("room")
}

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

/// 16 MiB: the first frame, the last ones, a block, and parts of runs and blocks are
/// not handed over.
fn with_holes() -> Machine {
    Machine {
        reserved: [
            0..1,
            100..101,
            511..513,
            1024..1536,
            1600..1607,
            2047..2048,
            4000..4096,
        ]
        .into(),
        ..Machine::new(2, 16 * MIB)
    }
}

/// The whole blocks of [`with_holes`].
const WHOLE: [u32; 3] = [4 * BLOCK, 5 * BLOCK, 6 * BLOCK];

#[test]
fn all_frames_that_there_are_are_used_and_no_others() {
    let vm = system(with_holes(), Options::default());
    let (frames, machine) = (vm.frames(), vm.machine());
    let all = usable(machine);
    assert_eq!(
        (frames.total(), frames.free_count()),
        (all.len(), all.len())
    );
    let mut blocks: Vec<_> = core::iter::from_fn(|| frames.allocate_block(machine)).collect();
    blocks.sort();
    assert_eq!(blocks, WHOLE.map(Frame));
    blocks
        .iter()
        .for_each(|&first| frames.free_block(machine, first));
    let given = core::iter::from_fn(|| frames.allocate(machine, Content::Any));
    let given: Vec<_> = given.collect();
    assert_eq!(
        given.iter().map(|frame| frame.0).collect::<BTreeSet<_>>(),
        all
    );
    assert_eq!(given.len(), all.len());
    given
        .iter()
        .for_each(|&frame| frames.free(machine, frame, Content::Any));
    frames.drain();
    assert!(
        frames.allocate_block(machine).is_some(),
        "blocks are whole again"
    );
}

#[test]
fn superpages_come_from_whole_blocks_only() {
    let options = Options {
        superpages: Superpages::Always,
        ..Options::default()
    };
    let vm = system(with_holes(), options);
    let space = space(&vm, 5 * HUGE);
    space.activate();
    for at in (AT..AT + 5 * HUGE).step_by(PAGE_SIZE) {
        space.store(at, at as u64).expect("store");
    }
    assert_eq!(space.pmap().superpages(), WHOLE.len());
    for at in (AT..AT + 5 * HUGE).step_by(PAGE_SIZE) {
        assert_eq!(space.load(at), Ok(at as u64));
    }
    drop(space);
    assert_eq!(vm.frames().free_count(), vm.frames().total());
}

#[test]
fn reclaim_goes_round_the_holes() {
    let machine = with_holes();
    let pages = 2 * machine.memory / PAGE_SIZE;
    let machine = Hosted::with_options(machine).expect("memory");
    let swap = SwapSpace::new(
        machine.cpus(),
        Box::new(MemoryPager::new()),
        2 * pages as u32,
    );
    let options = Options {
        swap_space: Some(Arc::new(swap.expect("a swap space"))),
        swap_pages: Some(2 * pages as u64),
        ..Options::default()
    };
    machine.attach(0);
    let vm: System = Vm::with_options(machine, options).expect("room");
    let space = space(&vm, pages * PAGE_SIZE);
    space.activate();
    let at = |page: usize| AT + page * PAGE_SIZE;
    (0..pages).for_each(|page| space.store(at(page), page as u64).expect("store"));
    (0..pages).for_each(|page| assert_eq!(space.load(at(page)), Ok(page as u64)));
    drop(space);
    assert_eq!(vm.frames().free_count(), vm.frames().total());
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
            ..Machine::new(cpus, 4 * HUGE)
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
            blocks.iter().for_each(|&first| frames.free_block(&machine, first));
            let given: Vec<_> =
                core::iter::from_fn(|| frames.allocate(&machine, Content::Zeroed)).collect();
            let numbers: BTreeSet<_> = given.iter().map(|frame| frame.0).collect();
            assert_eq!((numbers, given.len()), (all.clone(), all.len()));
            given.iter().for_each(|&frame| frames.free(&machine, frame, Content::Zeroed));
            assert_eq!(frames.free_count(), all.len());
        });
    }
}

fn few_tags(asids: usize) -> System {
    let machine = Machine {
        asids,
        ..Machine::new(2, 16 * MIB)
    };
    system(machine, Options::default())
}

/// Spaces; each has its own number at [`AT`].
fn numbered(vm: &System, count: usize) -> Vec<TestSpace> {
    let spaces: Vec<_> = (0..count).map(|_| space(vm, 2 * PAGE_SIZE)).collect();
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
                    assert_eq!(spaces[number].load(AT + PAGE_SIZE), Ok(0));
                }
            }
            drop(spaces);
            assert_eq!(vm.frames().free_count(), vm.frames().total());
        })
        .join()
        .expect("spaces apart");
    }
}

/// Flushes of CPU 0 while it begins to run in `space`.
fn flushes(vm: &System, space: &TestSpace) -> u64 {
    let count = || {
        vm.machine()
            .stats()
            .into_iter()
            .sum::<Stats>()
            .local_flushes
    };
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
    let next = space(&vm, PAGE_SIZE);
    assert_eq!(flushes(&vm, &next), 0);
    assert_eq!(next.load(AT), Ok(0), "left by the tag's last owner");
}

/// A CPU goes from space to space with one tag for all, while another takes their pages away.
#[test]
fn shared_tags_keep_shootdowns_right() {
    const ROUNDS: u64 = 300;
    let vm = few_tags(2);
    let spaces: Arc<[TestSpace]> = numbered(&vm, 4).into();
    let page = VaRange::sized(AT, PAGE_SIZE);
    // The page behind stays, so it never reads as 0.
    let stays = AT + PAGE_SIZE;
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
            spaces[number].discard(page).expect("discard");
            spaces[number].activate();
            spaces[number].store(AT, number as u64).expect("store");
        }
    });
}

#[test]
fn the_kernel_half_is_in_each_space_and_stays() {
    let machine = Machine {
        kernel_half: true,
        ..Machine::new(2, 4 * MIB)
    };
    let vm = system(machine, Options::default());
    for _ in 0..3 {
        let parent = space(&vm, 64 * PAGE_SIZE);
        // The machine looks at each root that is activated.
        parent.activate();
        (0..64).for_each(|page| parent.store(AT + page * PAGE_SIZE, 1).expect("store"));
        let child = parent.fork().expect("fork");
        child.activate();
        child.store(AT, 2).expect("store");
        child.exec();
        parent.activate();
        drop(child);
        assert_eq!(parent.load(AT), Ok(1));
        drop(parent);
        assert_eq!(vm.frames().free_count(), vm.frames().total());
        // The root is a page of zeroes now.
        let pages = vm.frames().total() - 20;
        let zeroes = space(&vm, pages * PAGE_SIZE);
        zeroes.activate();
        for page in 0..pages {
            for word in [2048, PAGE_SIZE - 8] {
                assert_eq!(zeroes.load(AT + page * PAGE_SIZE + word), Ok(0));
            }
        }
    }
}

#[test]
fn a_vm_without_room_on_the_heap_is_an_error() {
    let machine = Hosted::with_memory(2, 16 * MIB).expect("memory");
    refusing::spare_arc::<Vm<Best<Hosted>>>();
    let before = refusing::live();
    let mut refused = 0;
    loop {
        refusing::refuse_after(refused + 1);
        let made = Vm::<Best<Hosted>>::new(machine.clone());
        refusing::refuse_after(0);
        match made {
            Ok(vm) => break drop(vm),
            Err(error) => assert_eq!(error, Error::OutOfMemory(Resource::Heap)),
        }
        assert_eq!(refusing::live(), before, "a heap leak after {refused}");
        refused += 1;
    }
    assert!(refused >= 8, "{refused} allocations");
}
