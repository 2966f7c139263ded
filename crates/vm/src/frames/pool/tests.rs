//! The pool against a naive set of free frames.

use super::*;
use proptest::prelude::*;
use std::vec::Vec;

/// Four blocks and a part of a fifth, and a part of a run.
const FRAMES: usize = 4 * BLOCK + 83;
/// The pool's first frame; the model's is 0.
const BASE: usize = 3 * BLOCK;
const BLOCKS: usize = FRAMES / BLOCK;
/// The reserve of five blocks.
const KEPT: usize = 1;

/// A pool that has all of `part`.
fn pool(part: Range<usize>) -> Pool {
    let all = (!part.is_empty()).then(|| part.clone());
    Pool::new(part, all.into_iter()).expect("room")
}

#[derive(Clone, Debug)]
enum Op {
    Take(usize),
    /// Puts a number of the taken frames back, each at a fixed distance behind the one before.
    Put(usize, usize),
    TakeBlock,
    /// Puts a taken block back, at once or frame by frame.
    PutBlock(usize, bool),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => prop_oneof![Just(BATCH), 1..=2 * BATCH, Just(500)].prop_map(Op::Take),
        4 => (1..600usize, 1..200usize).prop_map(|(count, step)| Op::Put(count, step)),
        2 => Just(Op::TakeBlock),
        2 => (0..BLOCKS, any::<bool>()).prop_map(|(block, at_once)| Op::PutBlock(block, at_once)),
    ]
}

/// A frame of the pool.
fn frame(number: usize) -> Frame {
    Frame((BASE + number) as u32)
}

/// True if each frame is free.
struct Model(Vec<bool>);

impl Model {
    fn len(&self) -> usize {
        self.0.iter().filter(|&&free| free).count()
    }

    fn is_whole_run(&self, run: usize) -> bool {
        let frames = self.0.get(run * RUN..(run + 1) * RUN);
        frames.is_some_and(|frames| frames.iter().all(|&free| free))
    }

    fn whole_blocks(&self) -> Vec<bool> {
        let whole = |block: &[bool]| block.len() == BLOCK && block.iter().all(|&free| free);
        self.0.chunks(BLOCK).map(whole).collect()
    }

    /// The rank in which each run with free frames should go out, by the rules.
    fn places(&self) -> impl Iterator<Item = (usize, usize)> {
        let whole = self.whole_blocks();
        let plenty = whole.iter().filter(|&&whole| whole).count() > KEPT;
        let runs = self.0.chunks(RUN).enumerate();
        let free = runs.filter(|(_, frames)| frames.contains(&true));
        free.map(move |(run, _)| {
            let place = match (whole[run * RUN / BLOCK], self.is_whole_run(run)) {
                (false, true) => 1,
                (false, false) => 3,
                (true, _) if plenty => 2,
                (true, _) => 4,
            };
            (run, place)
        })
    }

    /// Takes out the frames that the pool gave for `wanted`, which must follow the rules.
    fn take(&mut self, wanted: usize, given: &[usize]) {
        let mut given = given.iter().copied().peekable();
        let mut left = wanted;
        while let Some(&frame) = given.peek() {
            let (run, whole) = (frame / RUN, self.is_whole_run(frame / RUN));
            let first = self.places().map(|(_, place)| place).min();
            let its = self.places().find(|&(one, _)| one == run);
            assert_eq!(its.map(|(_, place)| place), first, "run {run} is too early");
            let mut taken = 0;
            while let Some(frame) = given.next_if(|frame| frame / RUN == run) {
                assert!(self.0[frame], "frame {frame} is not free");
                self.0[frame] = false;
                taken += 1;
            }
            assert!(!whole || taken == RUN || wanted < RUN, "a run was broken");
            left -= taken;
        }
        let ended_at_a_run = left < RUN.min(wanted);
        assert!(ended_at_a_run || self.len() == 0, "{left} frames too few");
    }
}

fn check(ops: &[Op]) {
    let mut pool = pool(BASE..BASE + FRAMES);
    let mut model = Model([true; FRAMES].into());
    for op in ops {
        match *op {
            Op::Take(wanted) => {
                let mut given = Vec::new();
                pool.take(wanted, |frame| given.push(frame.index() - BASE));
                model.take(wanted, &given);
            }
            Op::Put(count, step) => {
                let owned = (0..FRAMES).filter(|&frame| !model.0[frame]);
                let some: Vec<usize> = owned.step_by(step).take(count).collect();
                for number in some {
                    pool.put(frame(number));
                    model.0[number] = true;
                }
            }
            Op::TakeBlock => {
                let whole = model.whole_blocks();
                let taken = pool.take_block();
                assert_eq!(taken.is_some(), whole.contains(&true));
                if let Some(first) = taken.map(|first| first.index() - BASE) {
                    assert!(first % BLOCK == 0 && whole[first / BLOCK]);
                    model.0[first..first + BLOCK].fill(false);
                }
            }
            Op::PutBlock(block, at_once) => {
                let first = block * BLOCK;
                let frames = &mut model.0[first..first + BLOCK];
                if frames.contains(&true) {
                    continue;
                }
                frames.fill(true);
                if at_once {
                    pool.put_block(frame(first))
                } else {
                    (0..BLOCK).for_each(|n| pool.put(frame(first + n)))
                }
            }
        }
        assert_eq!(pool.len(), model.len());
        let whole = model.whole_blocks();
        assert_eq!(pool.whole, whole.iter().filter(|&&whole| whole).count());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn it_gives_what_is_free_in_the_order_of_the_rules(
        ops in proptest::collection::vec(op(), 1..60)
    ) {
        check(&ops);
    }
}

#[test]
fn fresh_frames_go_out_in_ascending_runs() {
    let mut pool = pool(0..2 * BLOCK);
    let mut given = Vec::new();
    pool.take(BATCH, |frame| given.push(frame.0));
    let runs = [0..8, 8..16, 16..24, 24..32u32];
    let expected = runs.into_iter().flat_map(|run| run.rev());
    assert_eq!(given, expected.collect::<Vec<_>>());
}

#[test]
fn a_machine_without_memory_has_none() {
    let mut pool = pool(0..0);
    assert_eq!(pool.take_block(), None);
    pool.take(BATCH, |frame| panic!("{frame:?}"));
    assert_eq!(pool.len(), 0);
}
