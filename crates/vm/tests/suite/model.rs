//! The VM against a naive model: a map from page to rights and content.

use hosted::Hosted;
use machine::{PAGE_SIZE, VaRange};
use proptest::prelude::*;
use std::collections::BTreeMap;
use vm::system::Reservation;
use vm::{Best, Error, Prot, Space, Vm};

/// The pages the operations play on: across the border of a leaf table.
const PAGES: usize = 8;
const BASE: usize = (1 << 41) - 4 * PAGE_SIZE;

#[derive(Clone, Debug)]
enum Op {
    Map(Run, Prot),
    Unmap(Run),
    Protect(Run, Prot),
    Discard(Run),
    Store(usize, u64),
    Load(usize),
}

/// A run of pages, by index.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: usize,
    count: usize,
}

impl Run {
    fn range(self) -> VaRange {
        VaRange::sized(BASE + self.first * PAGE_SIZE, self.count * PAGE_SIZE)
    }

    fn pages(self) -> std::ops::Range<usize> {
        self.first..self.first + self.count
    }
}

fn run() -> impl Strategy<Value = Run> {
    (0..PAGES, 1..=4usize).prop_map(|(first, count)| Run {
        first,
        count: count.min(PAGES - first),
    })
}

fn prot() -> impl Strategy<Value = Prot> {
    prop_oneof![
        3 => Just(Prot::READ_WRITE),
        1 => Just(Prot::READ),
        1 => Just(Prot::READ_EXECUTE),
        1 => Just(Prot::NONE),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => (run(), prot()).prop_map(|(run, prot)| Op::Map(run, prot)),
        2 => run().prop_map(Op::Unmap),
        2 => (run(), prot()).prop_map(|(run, prot)| Op::Protect(run, prot)),
        1 => run().prop_map(Op::Discard),
        5 => (0..PAGES, 1..100u64).prop_map(|(page, value)| Op::Store(page, value)),
        4 => (0..PAGES).prop_map(Op::Load),
    ]
}

/// The VM's specification, as simple as can be.
#[derive(Default)]
struct Model {
    pages: BTreeMap<usize, (Prot, u64)>,
}

impl Model {
    /// `Ok(Some(value))` of a load, `Err(errno)` of a refusal.
    fn apply(&mut self, op: &Op) -> Result<Option<u64>, i32> {
        let mapped = |model: &Model, run: Run| run.pages().all(|p| model.pages.contains_key(&p));
        match *op {
            Op::Map(run, prot) => self.pages.extend(run.pages().map(|p| (p, (prot, 0)))),
            Op::Unmap(run) => self.pages.retain(|page, _| !run.pages().contains(page)),
            Op::Protect(run, prot) => {
                if !mapped(self, run) {
                    return Err(12);
                }
                let pages = self.pages.range_mut(run.pages());
                pages.for_each(|(_, page)| page.0 = prot);
            }
            Op::Discard(run) => {
                if !mapped(self, run) {
                    return Err(12);
                }
                let pages = self.pages.range_mut(run.pages());
                pages.for_each(|(_, page)| page.1 = 0);
            }
            Op::Store(page, value) => match self.pages.get_mut(&page) {
                Some((prot, content)) if prot.writes() => *content = value,
                _ => return Err(14),
            },
            Op::Load(page) => match self.pages.get(&page) {
                Some((prot, content)) if prot.reads() => return Ok(Some(*content)),
                _ => return Err(14),
            },
        }
        Ok(None)
    }

    /// The regions as runs of pages with equal rights.
    fn runs(&self) -> Vec<(usize, usize, Prot)> {
        let mut runs: Vec<(usize, usize, Prot)> = Vec::new();
        for (&page, &(prot, _)) in &self.pages {
            match runs.last_mut() {
                Some((_, end, last)) if *end == page && *last == prot => *end += 1,
                _ => runs.push((page, page + 1, prot)),
            }
        }
        runs
    }
}

fn apply(space: &Space<Best<Hosted>>, op: &Op) -> Result<Option<u64>, i32> {
    let done = |result: Result<(), Error>| result.map(|()| None);
    let result = match *op {
        Op::Map(run, prot) => done(space.map_fixed(run.range(), prot)),
        Op::Unmap(run) => done(space.unmap(run.range())),
        Op::Protect(run, prot) => done(space.protect(run.range(), prot)),
        Op::Discard(run) => done(space.discard(run.range())),
        Op::Store(page, value) => done(space.store(BASE + page * PAGE_SIZE, value)),
        Op::Load(page) => space.load(BASE + page * PAGE_SIZE).map(Some),
    };
    result.map_err(|error| error.errno())
}

/// The space's regions as the model tells them: without regard to charging.
fn runs(space: &Space<Best<Hosted>>) -> Vec<(usize, usize, Prot)> {
    let page = |address: usize| (address - BASE) / PAGE_SIZE;
    let mut runs: Vec<(usize, usize, Prot)> = Vec::new();
    for region in space.regions() {
        let (start, end) = (page(region.range.start), page(region.range.end));
        match runs.last_mut() {
            Some((_, last_end, prot)) if *last_end == start && *prot == region.prot() => {
                *last_end = end;
            }
            _ => runs.push((start, end, region.prot())),
        }
    }
    runs
}

/// Plays `ops` on both; the first difference is an error.
fn play(ops: &[Op], mut model: Model) -> Result<(), TestCaseError> {
    let machine = Hosted::with_memory(2, 4 << 20).expect("memory");
    let ops = ops.to_vec();
    machine.clone().on_cpu(0, move || {
        let vm = Vm::<Best<Hosted>>::new(machine).expect("memory for the VM");
        let free = vm.frames().free_count();
        let space = Space::new(&vm).expect("a space");
        space.activate();
        for op in &ops {
            prop_assert_eq!(apply(&space, op), model.apply(op), "{:?}", op);
            prop_assert_eq!(runs(&space), model.runs(), "{:?}", op);
        }
        drop(space);
        prop_assert_eq!(vm.frames().free_count(), free, "frames leaked");
        prop_assert_eq!(vm.swap().reserved(), 0, "swap leaked");
        Ok(())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_vm_does_what_the_model_says(ops in prop::collection::vec(op(), 1..80)) {
        play(&ops, Model::default())?;
    }
}

/// The comparison notices a difference: here the model begins with a page too many.
#[test]
fn a_wrong_model_is_noticed() {
    let mut wrong = Model::default();
    wrong.pages.insert(3, (Prot::READ, 1));
    assert!(play(&[Op::Load(3)], wrong).is_err());
}
