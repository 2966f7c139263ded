//! Pmaps against a naive model: pages that several pmaps map at several places, entered,
//! protected, removed from either side, read and written through hosted TLBs.

use crate::world::{P, System, nothing_left, pages, world};
use hosted::Hosted;
use machine::{Mmu, PageFault, VaRange};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use vm::{Best, Hold, Pmap, Prot};

const PMAPS: usize = 2;
const PAGES: usize = 3;
/// Places in a pmap, on both sides of a leaf table's border.
const PLACES: usize = 6;
const BASE: usize = (1 << 40) - 3 * P;

#[derive(Clone, Debug)]
enum Op {
    /// In a pmap, at a place, a page.
    Enter(usize, usize, usize, Prot),
    /// In a pmap, some places.
    Remove(usize, Run),
    Protect(usize, Run, Prot),
    RemoveAll(usize),
    /// In a pmap, at a place.
    Store(usize, usize, u64),
    Load(usize, usize),
}

type Run = Range<usize>;

fn op() -> impl Strategy<Value = Op> {
    let prot = || {
        prop_oneof![
            3 => Just(Prot::READ_WRITE),
            2 => Just(Prot::READ),
            1 => Just(Prot::NONE),
        ]
    };
    let (pmap, place, page) = (0..PMAPS, 0..PLACES, 0..PAGES);
    let run = (0..PLACES, 1..=4usize).prop_map(|(first, count)| first..first + count);
    prop_oneof![
        4 => (pmap.clone(), place.clone(), page.clone(), prot())
            .prop_map(|(pmap, place, page, prot)| Op::Enter(pmap, place, page, prot)),
        1 => (pmap.clone(), run.clone()).prop_map(|(pmap, run)| Op::Remove(pmap, run)),
        2 => (pmap.clone(), run, prot()).prop_map(|(pmap, run, prot)| Op::Protect(pmap, run, prot)),
        1 => page.prop_map(Op::RemoveAll),
        4 => (pmap.clone(), place.clone(), 1..100u64)
            .prop_map(|(pmap, place, value)| Op::Store(pmap, place, value)),
        4 => (pmap, place).prop_map(|(pmap, place)| Op::Load(pmap, place)),
    ]
}

/// The answer of an operation.
#[derive(Debug, PartialEq)]
enum Answer {
    Done,
    Entered(bool),
    Read(Option<u64>),
    Stored(bool),
    Removed {
        mappings: usize,
        dirty: bool,
        used: bool,
    },
}

#[derive(Default)]
struct Model {
    /// By pmap and place: the page, and the rights.
    mapped: BTreeMap<(usize, usize), (usize, Prot)>,
    content: [u64; PAGES],
    dirty: [bool; PAGES],
    used: [bool; PAGES],
}

impl Model {
    fn apply(&mut self, op: &Op) -> Answer {
        match op.clone() {
            Op::Enter(pmap, place, page, prot) => {
                let free = !self.mapped.contains_key(&(pmap, place));
                if free {
                    self.mapped.insert((pmap, place), (page, prot));
                }
                Answer::Entered(free)
            }
            Op::Remove(pmap, run) => {
                self.mapped
                    .retain(|&(p, place), _| p != pmap || !run.contains(&place));
                Answer::Done
            }
            Op::Protect(pmap, run, prot) => {
                let run = (pmap, run.start)..(pmap, run.end);
                self.mapped.range_mut(run).for_each(|(_, m)| m.1 = prot);
                Answer::Done
            }
            Op::RemoveAll(page) => {
                let before = self.mapped.len();
                self.mapped.retain(|_, mapping| mapping.0 != page);
                Answer::Removed {
                    mappings: before - self.mapped.len(),
                    dirty: std::mem::take(&mut self.dirty[page]),
                    used: std::mem::take(&mut self.used[page]),
                }
            }
            Op::Store(pmap, place, value) => match self.mapped.get(&(pmap, place)) {
                Some(&(page, prot)) if prot.writes() => {
                    self.content[page] = value;
                    (self.dirty[page], self.used[page]) = (true, true);
                    Answer::Stored(true)
                }
                _ => Answer::Stored(false),
            },
            Op::Load(pmap, place) => match self.mapped.get(&(pmap, place)) {
                Some(&(page, prot)) if prot.reads() => {
                    self.used[page] = true;
                    Answer::Read(Some(self.content[page]))
                }
                _ => Answer::Read(None),
            },
        }
    }
}

struct Made {
    vm: System,
    pages: Vec<Hold<Best<Hosted>>>,
    pmaps: Vec<Arc<Pmap<Best<Hosted>>>>,
}

fn at(place: usize) -> usize {
    BASE + place * P
}

fn range(run: Run) -> VaRange {
    pages(at(run.start), run.len())
}

impl Made {
    fn new(vm: &System) -> Self {
        Made {
            pages: (0..PAGES).map(|_| vm.new_page().expect("a page")).collect(),
            pmaps: (0..PMAPS).map(|_| Pmap::new(vm).expect("a pmap")).collect(),
            vm: vm.clone(),
        }
    }

    /// An access in a pmap; a right that came after the translation was cached shows at
    /// the second try.
    fn access<R>(&self, pmap: usize, access: impl Fn() -> Result<R, PageFault>) -> Option<R> {
        self.pmaps[pmap].activate();
        access().or_else(|_| access()).ok()
    }

    fn apply(&self, op: &Op) -> Answer {
        let machine = self.vm.machine();
        match op.clone() {
            Op::Enter(pmap, place, page, prot) => {
                let page = &self.pages[page];
                let entered = self.pmaps[pmap].enter(at(place), page, prot);
                Answer::Entered(entered.expect("memory"))
            }
            Op::Remove(pmap, run) => {
                self.pmaps[pmap].remove(range(run)).expect("removed");
                Answer::Done
            }
            Op::Protect(pmap, run, prot) => {
                let protected = self.pmaps[pmap].protect(range(run), prot);
                protected.expect("protected");
                Answer::Done
            }
            Op::RemoveAll(page) => {
                let removed = self.vm.remove_all(&self.pages[page]);
                Answer::Removed {
                    mappings: removed.mappings,
                    dirty: removed.dirty,
                    used: removed.referenced,
                }
            }
            Op::Store(pmap, place, value) => {
                // SAFETY: the CPU translates by tables that stay during the call.
                let stored = self.access(pmap, || unsafe { machine.store(at(place), value) });
                Answer::Stored(stored.is_some())
            }
            Op::Load(pmap, place) => {
                // SAFETY: the CPU translates by tables that stay during the call.
                Answer::Read(self.access(pmap, || unsafe { machine.load(at(place)) }))
            }
        }
    }
}

/// Plays `ops` on both; the first difference is an error.
fn play(ops: &[Op], mut model: Model) -> Result<(), TestCaseError> {
    let vm = world(4).cpus(1).apart();
    vm.machine().on_cpu(0, || {
        let made = Made::new(&vm);
        for op in ops {
            prop_assert_eq!(made.apply(op), model.apply(op), "{:?}", op);
            for (index, pmap) in made.pmaps.iter().enumerate() {
                let mapped = model.mapped.keys().filter(|key| key.0 == index).count();
                prop_assert_eq!(pmap.resident(), mapped, "resident after {:?}", op);
            }
        }
        let Made { pages, pmaps, .. } = made;
        for pmap in &pmaps {
            pmap.remove(range(0..PLACES)).expect("removed");
        }
        drop((pages, pmaps));
        nothing_left(&vm);
        Ok(())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn pmaps_do_what_the_model_says(ops in prop::collection::vec(op(), 1..100)) {
        play(&ops, Model::default())?;
    }
}

/// The comparison notices a difference: here the model believes a page to be dirty.
#[test]
fn a_wrong_model_is_noticed() {
    let mut wrong = Model::default();
    wrong.dirty[1] = true;
    assert!(play(&[Op::RemoveAll(1)], wrong).is_err());
}
