//! Superpages against a naive model: two slots; random operations concern their pages,
//! runs, or all.

use hosted::Hosted;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use run::{Run, at};
use std::cell::Cell;
use std::collections::BTreeMap;
use vm::system::Reservation;
use vm::{Advice, Best, Error, Options, Prot, Space, Superpages, Vm};

use crate::run;

const SLOT: usize = 512;
const PAGES: usize = 2 * SLOT;

/// Where something is most likely to go wrong.
const EDGES: [usize; 9] = [
    0,
    1,
    200,
    SLOT - 1,
    SLOT,
    SLOT + 1,
    700,
    PAGES - 2,
    PAGES - 1,
];

#[derive(Clone, Debug)]
enum Op {
    Map(Run, Prot),
    Unmap(Run),
    Protect(Run, Prot),
    Discard(Run),
    Advise(Run, Advice),
    /// Stores in each page of a slot, in an order that the step gives.
    Fill(usize, usize, u64),
    Store(usize, u64),
    Load(usize),
    RemoveAll(usize),
    Test(usize),
    /// Forks; a store to a page in the child, and in the parent; which of them goes on.
    Fork(usize, usize, bool),
}

fn page() -> impl Strategy<Value = usize> {
    prop_oneof![3 => prop::sample::select(&EDGES[..]), 1 => 0..PAGES]
}

fn run() -> impl Strategy<Value = Run> {
    prop_oneof![
        3 => (0..2usize).prop_map(|slot| Run { first: slot * SLOT, count: SLOT }),
        1 => Just(Run { first: 0, count: PAGES }),
        2 => (page(), 1..4usize)
            .prop_map(|(first, count)| Run { first, count: count.min(PAGES - first) }),
        1 => (page(), page()).prop_map(|(a, b)| Run { first: a.min(b), count: a.abs_diff(b) + 1 }),
    ]
}

fn prot() -> impl Strategy<Value = Prot> {
    prop_oneof![
        4 => Just(Prot::READ_WRITE),
        1 => Just(Prot::READ),
        1 => Just(Prot::NONE),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let advice = prop::sample::select(&[Advice::Huge, Advice::NoHuge, Advice::Random][..]);
    let step = prop::sample::select(&[1, SLOT - 1, 37][..]);
    prop_oneof![
        3 => (run(), prot()).prop_map(|(run, prot)| Op::Map(run, prot)),
        2 => run().prop_map(Op::Unmap),
        3 => (run(), prot()).prop_map(|(run, prot)| Op::Protect(run, prot)),
        2 => run().prop_map(Op::Discard),
        1 => (run(), advice).prop_map(|(run, advice)| Op::Advise(run, advice)),
        8 => (0..2usize, step, 1..1000u64)
            .prop_map(|(slot, step, seed)| Op::Fill(slot, step, seed)),
        4 => (page(), 1..100u64).prop_map(|(page, value)| Op::Store(page, value)),
        4 => page().prop_map(Op::Load),
        2 => page().prop_map(Op::RemoveAll),
        2 => page().prop_map(Op::Test),
        2 => (page(), page(), any::<bool>()).prop_map(|(a, b, child)| Op::Fork(a, b, child)),
    ]
}

/// The VM's specification, as simple as can be.
#[derive(Clone, Default)]
struct Model {
    pages: BTreeMap<usize, (Prot, u64)>,
}

impl Model {
    fn covers(&self, run: Run) -> Result<(), i32> {
        let covers = run.pages().all(|page| self.pages.contains_key(&page));
        covers.then_some(()).ok_or(12)
    }

    fn store(&mut self, page: usize, value: u64) -> Result<(), i32> {
        match self.pages.get_mut(&page) {
            Some((prot, content)) if prot.writes() => *content = value,
            _ => return Err(14),
        }
        Ok(())
    }

    fn load(&self, page: usize) -> Result<u64, i32> {
        match self.pages.get(&page) {
            Some((prot, content)) if prot.reads() => Ok(*content),
            _ => Err(14),
        }
    }
}

/// The system, and its specification.
struct World {
    vm: std::sync::Arc<Vm<Best<Hosted>>>,
    space: Space<Best<Hosted>>,
    model: Model,
}

fn errno<T>(result: Result<T, Error>) -> Result<T, i32> {
    result.map_err(|error| error.errno())
}

/// The order in which a slot is filled.
fn order(slot: usize, step: usize) -> impl Iterator<Item = usize> {
    (0..SLOT).map(move |index| slot * SLOT + index * step % SLOT)
}

impl World {
    fn apply(&mut self, op: &Op) -> Result<(), TestCaseError> {
        let World { vm, space, model } = self;
        match *op {
            Op::Map(run, prot) => {
                prop_assert_eq!(errno(space.map_fixed(run.range(), prot)), Ok(()));
                model
                    .pages
                    .extend(run.pages().map(|page| (page, (prot, 0))));
            }
            Op::Unmap(run) => {
                prop_assert_eq!(errno(space.unmap(run.range())), Ok(()));
                model.pages.retain(|page, _| !run.pages().contains(page));
            }
            Op::Protect(run, prot) => {
                let expected = model.covers(run);
                prop_assert_eq!(errno(space.protect(run.range(), prot)), expected);
                if expected.is_ok() {
                    let pages = model.pages.range_mut(run.pages());
                    pages.for_each(|(_, page)| page.0 = prot);
                }
            }
            Op::Discard(run) => {
                let expected = model.covers(run);
                prop_assert_eq!(errno(space.discard(run.range())), expected);
                if expected.is_ok() {
                    let pages = model.pages.range_mut(run.pages());
                    pages.for_each(|(_, page)| page.1 = 0);
                }
            }
            Op::Advise(run, advice) => {
                let expected = model.covers(run);
                prop_assert_eq!(errno(space.advise(run.range(), advice)), expected);
            }
            Op::Fill(slot, step, seed) => {
                for page in order(slot, step) {
                    let value = seed << 16 | page as u64;
                    let expected = model.store(page, value);
                    prop_assert_eq!(errno(space.store(at(page), value)), expected);
                }
            }
            Op::Store(page, value) => {
                let expected = model.store(page, value);
                prop_assert_eq!(errno(space.store(at(page), value)), expected);
            }
            Op::Load(page) => {
                prop_assert_eq!(errno(space.load(at(page))), model.load(page));
            }
            Op::RemoveAll(page) => {
                let frame = space.pmap().lookup(at(page));
                if let Some(hold) = frame.and_then(|frame| vm.hold(frame)) {
                    prop_assert_eq!(vm.remove_all(&hold).mappings, 1);
                    // Nowhere to go to: the content is lost.
                    model.pages.entry(page).and_modify(|page| page.1 = 0);
                }
            }
            Op::Test(page) => {
                let frame = space.pmap().lookup(at(page));
                if let Some(hold) = frame.and_then(|frame| vm.hold(frame)) {
                    vm.test_referenced(&hold);
                }
            }
            Op::Fork(in_child, in_parent, child_goes_on) => {
                let child = space.fork().expect("fork");
                let mut child = World {
                    vm: vm.clone(),
                    space: child,
                    model: model.clone(),
                };
                child.space.activate();
                child.apply(&Op::Store(in_child, 7777))?;
                space.activate();
                self.apply(&Op::Store(in_parent, 8888))?;
                self.check()?;
                child.space.activate();
                child.check()?;
                if child_goes_on {
                    *self = child;
                }
                self.space.activate();
            }
        }
        Ok(())
    }

    /// All of the content.
    fn check(&self) -> Result<(), TestCaseError> {
        for page in 0..PAGES {
            let loaded = errno(self.space.load(at(page)));
            prop_assert_eq!(loaded, self.model.load(page), "page {}", page);
        }
        Ok(())
    }
}

/// Plays `ops` on both; the first difference is an error. How often there was a superpage.
fn play(ops: &[Op], model: Model) -> Result<usize, TestCaseError> {
    let machine = Hosted::with_memory(2, 16 << 20).expect("memory");
    let ops = ops.to_vec();
    machine.clone().on_cpu(0, move || {
        let options = Options {
            superpages: Superpages::Always,
            ..Options::default()
        };
        let vm = Vm::<Best<Hosted>>::with_options(machine, options).expect("memory for the VM");
        let free = vm.frames().free_count();
        let space = Space::new(&vm).expect("a space");
        space.activate();
        let mut world = World {
            vm: vm.clone(),
            space,
            model,
        };
        let mut superpages = 0;
        for op in &ops {
            world.apply(op)?;
            superpages += world.space.pmap().superpages();
        }
        world.check()?;
        drop(world);
        prop_assert_eq!(vm.frames().free_count(), free, "frames leaked");
        prop_assert_eq!(vm.swap().reserved(), 0, "swap leaked");
        Ok(superpages)
    })
}

#[test]
fn superpages_do_what_the_model_says() {
    let seen = Cell::new(0);
    let mut runner = TestRunner::new(ProptestConfig::with_cases(300));
    let ops = prop::collection::vec(op(), 1..40);
    let result = runner.run(&ops, |ops| {
        seen.set(seen.get() + play(&ops, Model::default())?);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    assert!(seen.get() > 300, "superpages {} times only", seen.get());
}

/// The comparison notices a difference: here the model begins with a page too many.
#[test]
fn a_wrong_model_is_noticed() {
    let mut wrong = Model::default();
    wrong.pages.insert(3, (Prot::READ, 1));
    assert!(play(&[Op::Load(3)], wrong).is_err());
}
