//! Frames and blocks of 2 MiB: against a naive set on a machine that watches their owners,
//! and by many CPUs at a time.

use crate::world::P;
use hosted::Hosted;
use machine::{Execute, Frame, Job, Memory};
use proptest::prelude::*;
use sim::Sim;
use sim::profile::MachineProfile;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use vm::system::FramePools;
use vm::{Content, Frames};

/// Frames in a block.
const BLOCK: u32 = 512;
/// CPUs that, where memory is large, take from two pools.
const CPUS: [usize; 3] = [0, 9, 17];
/// Three blocks, and a part of one: one pool.
const FEW: u32 = 3 * BLOCK + 100;
/// Memory in two pools.
const MANY: u32 = 16 * BLOCK + 100;

#[derive(Clone, Debug)]
enum Op {
    /// Takes this number of frames, one by one.
    Allocate(usize, Content),
    AllocateBlock,
    /// Frees frames from the frame of this number on: the count, and the distance of each to the
    /// last.
    Free(u32, usize, usize),
    /// Frees a block that was allocated as one, at once or frame by frame.
    FreeBlock(usize, bool),
    Drain,
    /// Zeroes this number of the CPU's free frames.
    Zero(usize),
    /// The next allocation fails.
    Refuse,
}

/// Operations with numbers for `frames` frames.
fn op(frames: u32) -> impl Strategy<Value = Op> {
    let most = (frames / 2) as usize;
    let content = prop_oneof![Just(Content::Any), Just(Content::Zeroed)];
    prop_oneof![
        4 => (1..most, content).prop_map(|(count, content)| Op::Allocate(count, content)),
        2 => Just(Op::AllocateBlock),
        4 => (0..frames, 1..most, 1..20usize)
            .prop_map(|(from, count, step)| Op::Free(from, count, step)),
        2 => (any::<usize>(), any::<bool>()).prop_map(|(n, at_once)| Op::FreeBlock(n, at_once)),
        1 => Just(Op::Drain),
        1 => (1..60usize).prop_map(Op::Zero),
        1 => Just(Op::Refuse),
    ]
}

/// The expected state.
#[derive(Default)]
struct Model {
    /// The number of frames.
    total: u32,
    /// Frames with an owner, but for those of `blocks`.
    owned: BTreeSet<u32>,
    /// Blocks that have not been freed, by their first frames.
    blocks: Vec<u32>,
    refuses: bool,
}

impl Model {
    fn free(&self) -> usize {
        self.total as usize - self.owned.len() - self.blocks.len() * BLOCK as usize
    }

    /// Returns true if all of a block is free.
    fn whole(&self, first: u32) -> bool {
        let none_owned = self.owned.range(first..first + BLOCK).next().is_none();
        none_owned && !self.blocks.contains(&first)
    }

    fn any_whole(&self) -> bool {
        let mut blocks = (0..self.total / BLOCK).map(|block| block * BLOCK);
        blocks.any(|first| self.whole(first))
    }

    fn apply(&mut self, op: &Op, sim: &Sim, frames: &Frames<Sim>) {
        match *op {
            Op::Allocate(count, content) => {
                for _ in 0..count {
                    // SAFETY: the frames are the machine's.
                    self.took(unsafe { frames.allocate(sim, content) }, sim, content);
                }
            }
            Op::AllocateBlock => {
                if std::mem::take(&mut self.refuses) {
                    assert_eq!(frames.allocate_block(sim), None, "it was to fail");
                } else if let Some(first) = self.block(sim, frames) {
                    assert!(first % BLOCK == 0 && self.whole(first), "{first}");
                    self.blocks.push(first);
                }
            }
            Op::Free(from, count, step) => {
                let some = self.owned.range(from..).step_by(step).take(count);
                for frame in some.copied().collect::<Vec<_>>() {
                    self.owned.remove(&frame);
                    // SAFETY: the frames were given out, and nothing uses them.
                    unsafe { frames.free(sim, Frame(frame), Content::Any) };
                }
            }
            Op::FreeBlock(_, _) if self.blocks.is_empty() => {}
            Op::FreeBlock(n, at_once) => {
                let first = self.blocks.swap_remove(n % self.blocks.len());
                let each = (first..first + BLOCK).map(Frame);
                if at_once {
                    // SAFETY: the frames were given out, and nothing uses them.
                    unsafe { frames.free_block(sim, Frame(first)) }
                } else {
                    // SAFETY: the frames were given out, and nothing uses them.
                    each.for_each(|frame| unsafe { frames.free(sim, frame, Content::Any) })
                }
            }
            Op::Drain => frames.drain(),
            // SAFETY: the frames are the machine's.
            Op::Zero(count) => assert!(unsafe { frames.zero_ahead(sim, count) } <= count),
            Op::Refuse => {
                frames.fail_after(1);
                self.refuses = true;
            }
        }
    }

    /// An answer to `allocate`.
    fn took(&mut self, frame: Option<Frame>, sim: &Sim, content: Content) {
        let refuses = std::mem::take(&mut self.refuses);
        let Some(frame) = frame else {
            return assert!(refuses || self.free() == 0, "refused with frames left");
        };
        assert!(!refuses, "it was to fail");
        let in_block = self.blocks.contains(&(frame.0 - frame.0 % BLOCK));
        assert!(frame.0 < self.total && !in_block && self.owned.insert(frame.0));
        let bytes = sim.direct_map(frame);
        // SAFETY: the frame is this test's alone, and its first byte lies in it.
        unsafe {
            assert!(content == Content::Any || bytes.read() == 0, "not zeroed");
            bytes.write(1);
        }
    }

    /// A block, if there is one now, or once the caches are drained.
    fn block(&self, sim: &Sim, frames: &Frames<Sim>) -> Option<u32> {
        let first = frames.allocate_block(sim).or_else(|| {
            frames.drain();
            let first = frames.allocate_block(sim);
            assert_eq!(first.is_some(), self.any_whole(), "behind a drain");
            first
        });
        first.map(|first| first.0)
    }
}

/// A machine of a built-in profile with `frames` frames.
fn sim_of(name: &str, frames: usize) -> Sim {
    let profile = MachineProfile::named(name).expect("built in");
    let options = sim::Options {
        memory: frames * P,
        ..sim::Options::new(profile)
    };
    Sim::new(options).expect("address space")
}

fn frames_of(sim: &Sim, pools: FramePools) -> Arc<Frames<Sim>> {
    let handle = sim.clone();
    let frames = move || Frames::with_pools(&handle, pools).expect("room");
    Arc::new(sim.on_cpu(0, frames))
}

fn check(total: u32, ops: Vec<(usize, Op)>) {
    let sim = sim_of("pc-16c32t", total as usize);
    let frames = frames_of(&sim, FramePools::default());
    let mut model = Model {
        total,
        ..Model::default()
    };
    for (cpu, op) in ops {
        let (handle, its) = (sim.clone(), frames.clone());
        model = sim.on_cpu(CPUS[cpu], move || {
            model.apply(&op, &handle, &its);
            assert_eq!(its.free_count(), model.free(), "behind {op:?}");
            model
        });
    }
    sim.on_cpu(0, move || drop(frames));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_given_twice_and_nothing_is_lost(
        ops in proptest::collection::vec((0..CPUS.len(), op(FEW)), 1..40)
    ) {
        check(FEW, ops);
    }

    #[test]
    fn pools_give_all_that_the_others_have(
        ops in proptest::collection::vec((0..CPUS.len(), op(MANY)), 1..40)
    ) {
        check(MANY, ops);
    }
}

fn hosted(cpus: usize, frames: u32) -> (Hosted, Arc<Frames<Hosted>>) {
    let memory = frames as usize * P;
    let machine = Hosted::with_memory(cpus, memory).expect("memory");
    let frames = machine.on_cpu(0, || Frames::new(&machine).expect("room"));
    (machine, Arc::new(frames))
}

#[test]
fn a_block_whose_frames_are_freed_one_by_one_is_whole_again() {
    let (machine, frames) = hosted(1, 2 * BLOCK);
    machine.on_cpu(0, || {
        let block = || frames.allocate_block(&machine);
        let [a, b] = [block(), block()].map(|first| first.expect("a whole block"));
        assert!(a != b && [a, b].iter().all(|first| first.0 % BLOCK == 0));
        assert_eq!((block(), frames.free_count()), (None, 0));
        // SAFETY: the frames were given out, and nothing uses them.
        (a.0..a.0 + BLOCK)
            .for_each(|frame| unsafe { frames.free(&machine, Frame(frame), Content::Any) });
        assert_eq!(frames.free_count(), BLOCK as usize);
        assert_eq!(block(), None, "frames in the cache keep it broken");
        assert!(
            // SAFETY: the frames are the machine's.
            unsafe { frames.zero_ahead(&machine, 10) } == 10,
            "some of them zeroed"
        );
        frames.drain();
        assert_eq!(frames.free_count(), BLOCK as usize);
        assert_eq!(block(), Some(a));
        // SAFETY: the frames were given out, and nothing uses them.
        unsafe { frames.free_block(&machine, b) };
        assert_eq!(block(), Some(b), "whole without a drain");
    });
}

#[test]
fn frames_come_from_broken_blocks_as_long_as_there_are() {
    let (machine, frames) = hosted(2, 8 * BLOCK);
    // Two CPUs take a block's worth: no more than one is broken.
    for cpu in 0..2 {
        machine.on_cpu(cpu, || {
            for _ in 0..BLOCK / 2 {
                // SAFETY: the frames are the machine's.
                let frame = unsafe { frames.allocate(&machine, Content::Any) }.expect("a frame");
                assert!(frame.0 < BLOCK, "{frame:?} breaks another block");
            }
        });
    }
    machine.on_cpu(0, || {
        let whole = (0..).take_while(|_| frames.allocate_block(&machine).is_some());
        assert_eq!(whole.count(), 7);
    });
}

#[test]
fn blocks_fail_on_demand() {
    let (machine, frames) = hosted(1, 2 * BLOCK);
    machine.on_cpu(0, || {
        frames.fail_after(2);
        // SAFETY: the frames are the machine's.
        let first = unsafe { frames.allocate(&machine, Content::Any) };
        assert_eq!(first.map(|_| frames.allocate_block(&machine)), Some(None));
        assert!(frames.allocate_block(&machine).is_some(), "only the second");
    });
}

#[test]
fn cpus_that_take_and_free_at_a_time_share_nothing() {
    take_and_free(4, 16, 300);
    take_and_free(20, 24, 40); // three pools
}

fn take_and_free(cpus: usize, blocks: u32, rounds: usize) {
    let (machine, frames) = hosted(cpus, blocks * BLOCK);
    let owned: Arc<Vec<AtomicBool>> = Arc::new(
        (0..blocks * BLOCK)
            .map(|_| AtomicBool::new(false))
            .collect(),
    );
    let job = |cpu: usize| -> Job {
        let (machine, frames, owned) = (machine.clone(), frames.clone(), owned.clone());
        let mark = move |first: u32, count: u32, owner: bool| {
            for frame in &owned[first as usize..(first + count) as usize] {
                // AcqRel: an owner's end comes before the next one's begin.
                assert_eq!(frame.swap(owner, Ordering::AcqRel), !owner, "two owners");
            }
        };
        Box::new(move || {
            for round in 0..rounds {
                let mut single = Vec::new();
                for _ in 0..(round * 37 + cpu * 11) % 900 {
                    // SAFETY: the frames are the machine's.
                    let given = unsafe { frames.allocate(&machine, Content::Any) };
                    let Some(frame) = given else {
                        break;
                    };
                    mark(frame.0, 1, true);
                    single.push(frame);
                }
                if let Some(first) = frames.allocate_block(&machine) {
                    mark(first.0, BLOCK, true);
                    mark(first.0, BLOCK, false);
                    match round % 2 {
                        // SAFETY: the frames were given out, and nothing uses them.
                        0 => unsafe { frames.free_block(&machine, first) },
                        _ => (first.0..first.0 + BLOCK)
                            // SAFETY: the frames were given out, and nothing uses them.
                            .for_each(|frame| unsafe {
                                frames.free(&machine, Frame(frame), Content::Any)
                            }),
                    }
                }
                for frame in single {
                    mark(frame.0, 1, false);
                    // SAFETY: the frames were given out, and nothing uses them.
                    unsafe { frames.free(&machine, frame, Content::Any) };
                }
                if round % 8 == cpu % 8 {
                    frames.drain();
                }
            }
        })
    };
    machine.execute((0..cpus).map(job).collect());
    machine.on_cpu(0, || {
        frames.drain();
        assert_eq!(frames.free_count(), frames.total());
        let whole = (0..).take_while(|_| frames.allocate_block(&machine).is_some());
        assert_eq!(whole.count(), blocks as usize, "a block is broken for good");
    });
}

const FRAMES: usize = 4096;

/// Two nodes of 48 CPUs.
fn large() -> Sim {
    sim_of("freebsd-96", 96 * 2 * FRAMES)
}

/// The blocks of frames that two distant CPUs of a node are given, and one of another node.
fn blocks_of(pools: FramePools) -> [u32; 3] {
    let sim = large();
    let frames = frames_of(&sim, pools);
    let blocks = [0, 9, 24].map(|cpu| {
        let (machine, frames) = (sim.clone(), frames.clone());
        // SAFETY: the frames are the machine's.
        let frame = sim.on_cpu(cpu, move || unsafe {
            frames.allocate(&machine, Content::Any)
        });
        frame.expect("a frame").0 / BLOCK
    });
    sim.on_cpu(0, move || drop(frames));
    blocks
}

#[test]
fn pools_are_of_eight_cpus_a_nodes_or_of_all() {
    let [zero, nine, other] = blocks_of(FramePools::Near);
    assert!(zero != nine && nine != other && other != zero);
    let [zero, nine, other] = blocks_of(FramePools::Node);
    assert!(zero == nine && nine != other);
    let [zero, nine, other] = blocks_of(FramePools::One);
    assert!(zero == nine && nine == other);
}

/// Nanoseconds that the slowest of `cpus` CPUs of 96 takes to allocate memory and to free it.
fn time_of(cpus: usize) -> u64 {
    let sim = large();
    let frames = frames_of(&sim, FramePools::default());
    let began = sim.time();
    let job = |_| -> Job {
        let (sim, frames) = (sim.clone(), frames.clone());
        Box::new(move || {
            // SAFETY: the frames are the machine's.
            let take = |_| unsafe { frames.allocate(&sim, Content::Any) }.expect("a frame");
            let taken: Vec<Frame> = (0..FRAMES).map(take).collect();
            for frame in taken {
                // SAFETY: the frames were given out, and nothing uses them.
                unsafe { frames.free(&sim, frame, Content::Any) };
            }
        })
    };
    sim.execute((0..cpus).map(job).collect());
    let time = sim.time() - began;
    sim.on_cpu(0, move || drop(frames));
    time
}

#[test]
fn many_cpus_hardly_wait_for_each_other() {
    let [few, many] = [time_of(8), time_of(48)];
    assert!(many < few * 5 / 4, "{few} ns by 8 CPUs, {many} by 48");
}
