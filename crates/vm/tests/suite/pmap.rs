//! Pmaps against a naive model: pages that several pmaps map at several places, entered,
//! protected, removed from either side, read and written through hosted TLBs.

use hosted::Hosted;
use machine::{Mmu, PAGE_SIZE, PageFault, VaRange};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use vm::{Best, Hold, Pmap, Prot, Vm};

const PMAPS: usize = 2;
const PAGES: usize = 3;
/// Places in a pmap, on both sides of a leaf table's border.
const PLACES: usize = 6;
const BASE: usize = (1 << 40) - 3 * PAGE_SIZE;

#[derive(Clone, Debug)]
enum Op {
    Enter {
        pmap: usize,
        place: usize,
        page: usize,
        prot: Prot,
    },
    Remove {
        pmap: usize,
        first: usize,
        count: usize,
    },
    Protect {
        pmap: usize,
        first: usize,
        count: usize,
        prot: Prot,
    },
    RemoveAll {
        page: usize,
    },
    Store {
        pmap: usize,
        place: usize,
        value: u64,
    },
    Load {
        pmap: usize,
        place: usize,
    },
}

fn op() -> impl Strategy<Value = Op> {
    let prot = || {
        prop_oneof![
            3 => Just(Prot::READ_WRITE),
            2 => Just(Prot::READ),
            1 => Just(Prot::NONE),
        ]
    };
    let (pmap, place, page) = (0..PMAPS, 0..PLACES, 0..PAGES);
    let run = (0..PLACES, 1..=4usize);
    prop_oneof![
        4 => (pmap.clone(), place.clone(), page.clone(), prot())
            .prop_map(|(pmap, place, page, prot)| Op::Enter { pmap, place, page, prot }),
        1 => (pmap.clone(), run.clone())
            .prop_map(|(pmap, (first, count))| Op::Remove { pmap, first, count }),
        2 => (pmap.clone(), run, prot())
            .prop_map(|(pmap, (first, count), prot)| Op::Protect { pmap, first, count, prot }),
        1 => page.prop_map(|page| Op::RemoveAll { page }),
        4 => (pmap.clone(), place.clone(), 1..100u64)
            .prop_map(|(pmap, place, value)| Op::Store { pmap, place, value }),
        4 => (pmap, place).prop_map(|(pmap, place)| Op::Load { pmap, place }),
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
        match *op {
            Op::Enter {
                pmap,
                place,
                page,
                prot,
            } => {
                let free = !self.mapped.contains_key(&(pmap, place));
                if free {
                    self.mapped.insert((pmap, place), (page, prot));
                }
                Answer::Entered(free)
            }
            Op::Remove { pmap, first, count } => {
                let run = first..first + count;
                self.mapped
                    .retain(|&(p, place), _| p != pmap || !run.contains(&place));
                Answer::Done
            }
            Op::Protect {
                pmap,
                first,
                count,
                prot,
            } => {
                let run = (pmap, first)..(pmap, first + count);
                self.mapped.range_mut(run).for_each(|(_, m)| m.1 = prot);
                Answer::Done
            }
            Op::RemoveAll { page } => {
                let before = self.mapped.len();
                self.mapped.retain(|_, mapping| mapping.0 != page);
                Answer::Removed {
                    mappings: before - self.mapped.len(),
                    dirty: std::mem::take(&mut self.dirty[page]),
                    used: std::mem::take(&mut self.used[page]),
                }
            }
            Op::Store { pmap, place, value } => match self.mapped.get(&(pmap, place)) {
                Some(&(page, prot)) if prot.writes() => {
                    self.content[page] = value;
                    (self.dirty[page], self.used[page]) = (true, true);
                    Answer::Stored(true)
                }
                _ => Answer::Stored(false),
            },
            Op::Load { pmap, place } => match self.mapped.get(&(pmap, place)) {
                Some(&(page, prot)) if prot.reads() => {
                    self.used[page] = true;
                    Answer::Read(Some(self.content[page]))
                }
                _ => Answer::Read(None),
            },
        }
    }
}

struct World {
    vm: Arc<Vm<Best<Hosted>>>,
    pages: Vec<Hold<Best<Hosted>>>,
    pmaps: Vec<Arc<Pmap<Best<Hosted>>>>,
}

fn at(place: usize) -> usize {
    BASE + place * PAGE_SIZE
}

fn run(first: usize, count: usize) -> VaRange {
    VaRange::sized(at(first), count * PAGE_SIZE)
}

impl World {
    fn new(machine: Hosted) -> Self {
        let vm = Vm::new(machine).expect("memory for the VM");
        World {
            pages: (0..PAGES).map(|_| vm.new_page().expect("a page")).collect(),
            pmaps: (0..PMAPS)
                .map(|_| Pmap::new(&vm).expect("a pmap"))
                .collect(),
            vm,
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
        match *op {
            Op::Enter {
                pmap,
                place,
                page,
                prot,
            } => {
                let frame = self.pages[page].frame();
                let entered = self.pmaps[pmap].enter(at(place), frame, prot);
                Answer::Entered(entered.expect("memory"))
            }
            Op::Remove { pmap, first, count } => {
                self.pmaps[pmap].remove(run(first, count)).expect("removed");
                Answer::Done
            }
            Op::Protect {
                pmap,
                first,
                count,
                prot,
            } => {
                let protected = self.pmaps[pmap].protect(run(first, count), prot);
                protected.expect("protected");
                Answer::Done
            }
            Op::RemoveAll { page } => {
                let removed = self.vm.remove_all(&self.pages[page]);
                Answer::Removed {
                    mappings: removed.mappings,
                    dirty: removed.dirty,
                    used: removed.referenced,
                }
            }
            Op::Store { pmap, place, value } => {
                let stored = self.access(pmap, || machine.store(at(place), value));
                Answer::Stored(stored.is_some())
            }
            Op::Load { pmap, place } => Answer::Read(self.access(pmap, || machine.load(at(place)))),
        }
    }
}

/// Plays `ops` on both; the first difference is an error.
fn play(ops: &[Op], mut model: Model) -> Result<(), TestCaseError> {
    let machine = Hosted::with_memory(1, 4 << 20).expect("memory");
    let ops = ops.to_vec();
    machine.clone().on_cpu(0, move || {
        let world = World::new(machine);
        for op in &ops {
            prop_assert_eq!(world.apply(op), model.apply(op), "{:?}", op);
            for (index, pmap) in world.pmaps.iter().enumerate() {
                let mapped = model.mapped.keys().filter(|key| key.0 == index).count();
                prop_assert_eq!(pmap.resident(), mapped, "resident after {:?}", op);
            }
        }
        let World { vm, pages, pmaps } = world;
        for pmap in &pmaps {
            pmap.remove(run(0, PLACES)).expect("removed");
        }
        drop((pages, pmaps));
        prop_assert_eq!(
            vm.frames().free_count(),
            vm.frames().total(),
            "frames leaked"
        );
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
    assert!(play(&[Op::RemoveAll { page: 1 }], wrong).is_err());
}
