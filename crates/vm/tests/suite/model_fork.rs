//! Trees of forks against a naive model: random changes anywhere, while pages go out and
//! spaces end in any order.

use hosted::Hosted;
use machine::Topology;
use proptest::prelude::*;
use run::{Run, at};
use std::collections::BTreeMap;
use std::sync::Arc;
use vm::pager::MemoryPager;
use vm::swap::SwapSpace;
use vm::system::{ForkTables, Reservation};
use vm::{Advice, Best, Bring, Error, Move, Options, Prot, Space, Vm};

use crate::run;

const SLOT: usize = 512;
const PAGES: usize = 3 * SLOT;
/// Pages of each slot that are used at first, and mostly.
const USED: usize = 48;
const SPACES: usize = 6;

#[derive(Clone, Debug)]
enum Op {
    Fork(usize),
    End(usize),
    Store(usize, usize, u64),
    Load(usize, usize),
    Map(usize, Run),
    Unmap(usize, Run),
    Discard(usize, Run),
    Protect(usize, Run, Prot),
    Lock(usize, Run),
    PageOut(usize, Run),
    Reclaim(usize),
    /// Slot 2, or the part of it that is mapped, is moved to slot 1.
    Move(usize),
}

fn page() -> impl Strategy<Value = usize> {
    (0..3usize, prop_oneof![9 => 0..USED, 1 => 0..SLOT]).prop_map(|(slot, page)| slot * SLOT + page)
}

fn run() -> impl Strategy<Value = Run> {
    prop_oneof![
        1 => (0..3usize).prop_map(|slot| Run { first: slot * SLOT, count: SLOT }),
        1 => Just(Run { first: 0, count: PAGES }),
        3 => (page(), 1..20usize)
            .prop_map(|(first, count)| Run { first, count: count.min(PAGES - first) }),
        1 => (page(), page()).prop_map(|(a, b)| Run { first: a.min(b), count: a.abs_diff(b) + 1 }),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let space = || 0..SPACES;
    let prot = prop_oneof![2 => Just(Prot::READ_WRITE), 1 => Just(Prot::READ)];
    prop_oneof![
        6 => space().prop_map(Op::Fork),
        3 => space().prop_map(Op::End),
        8 => (space(), page(), 1..100u64)
            .prop_map(|(space, page, value)| Op::Store(space, page, value)),
        4 => (space(), page()).prop_map(|(space, page)| Op::Load(space, page)),
        1 => (space(), run()).prop_map(|(space, run)| Op::Map(space, run)),
        2 => (space(), run()).prop_map(|(space, run)| Op::Unmap(space, run)),
        2 => (space(), run()).prop_map(|(space, run)| Op::Discard(space, run)),
        1 => (space(), run(), prot).prop_map(|(space, run, prot)| Op::Protect(space, run, prot)),
        1 => (space(), run()).prop_map(|(space, run)| Op::Lock(space, run)),
        2 => (space(), run()).prop_map(|(space, run)| Op::PageOut(space, run)),
        2 => (1..200usize).prop_map(Op::Reclaim),
        1 => space().prop_map(Op::Move),
    ]
}

/// The state of a space: for each page its rights, whether it is locked, and its content, if it was
/// ever used.
#[derive(Clone, Default)]
struct Model(BTreeMap<usize, (Prot, bool, Option<u64>)>);

impl Model {
    fn covers(&self, run: Run) -> Result<(), i32> {
        let covers = run.pages().all(|page| self.0.contains_key(&page));
        covers.then_some(()).ok_or(12)
    }

    fn change(&mut self, run: Run, change: impl Fn(&mut (Prot, bool, Option<u64>))) {
        self.0
            .range_mut(run.pages())
            .for_each(|(_, page)| change(page));
    }

    fn access(&mut self, page: usize, writes: bool) -> Result<&mut u64, i32> {
        match self.0.get_mut(&page) {
            Some((prot, _, content)) if !writes || prot.writes() => Ok(content.get_or_insert(0)),
            _ => Err(14),
        }
    }

    fn is_locked(&self, run: Run) -> bool {
        run.pages()
            .any(|page| self.0.get(&page).is_some_and(|page| page.1))
    }

    fn used(&self) -> usize {
        self.0.values().filter(|page| page.2.is_some()).count()
    }
}

struct World {
    vm: Arc<Vm<Best<Hosted>>>,
    spaces: Vec<(Space<Best<Hosted>>, Model)>,
}

fn errno<T>(result: Result<T, Error>) -> Result<T, i32> {
    result.map_err(|error| error.errno())
}

impl World {
    fn apply(&mut self, op: &Op) -> Result<(), TestCaseError> {
        let World { vm, spaces } = self;
        let count = spaces.len();
        let of = |space: usize| space % count;
        match *op {
            Op::Fork(parent) if count < SPACES => {
                let (space, model) = &spaces[of(parent)];
                let child = space.fork().expect("fork");
                let mut model = model.clone();
                model.0.values_mut().for_each(|page| page.1 = false);
                spaces.push((child, model));
            }
            Op::End(space) if count > 1 => drop(spaces.remove(of(space))),
            Op::Fork(_) | Op::End(_) => {}
            Op::Store(space, page, value) => {
                let (space, model) = &mut spaces[of(space)];
                space.activate();
                let stored = errno(space.store(at(page), value));
                prop_assert_eq!(stored, model.access(page, true).map(|word| *word = value));
            }
            Op::Load(space, page) => {
                let (space, model) = &mut spaces[of(space)];
                space.activate();
                let loaded = errno(space.load(at(page)));
                prop_assert_eq!(loaded, model.access(page, false).map(|word| *word));
                let mut bytes = [0; 8];
                let copied = errno(space.copy_in(at(page), &mut bytes));
                prop_assert_eq!(copied.map(|()| u64::from_le_bytes(bytes)), loaded);
            }
            Op::Map(space, run) => {
                let (space, model) = &mut spaces[of(space)];
                let mapped = space.map_fixed(run.range(), Prot::READ_WRITE);
                prop_assert_eq!(errno(mapped), Ok(()));
                let new = (Prot::READ_WRITE, false, None);
                model.0.extend(run.pages().map(|page| (page, new)));
            }
            Op::Unmap(space, run) => {
                let (space, model) = &mut spaces[of(space)];
                prop_assert_eq!(errno(space.unmap(run.range())), Ok(()));
                model.0.retain(|page, _| !run.pages().contains(page));
            }
            Op::Discard(space, run) => {
                let (space, model) = &mut spaces[of(space)];
                let discarded = errno(space.discard(run.range()));
                let covers = model.covers(run);
                if covers.is_ok() && !model.is_locked(run) {
                    prop_assert_eq!(discarded, Ok(()));
                    model.change(run, |page| page.2 = None);
                } else {
                    prop_assert!(discarded.is_err());
                }
            }
            Op::Protect(space, run, prot) => {
                let (space, model) = &mut spaces[of(space)];
                let covers = model.covers(run);
                prop_assert_eq!(errno(space.protect(run.range(), prot)), covers);
                if covers.is_ok() {
                    model.change(run, |page| page.0 = prot);
                }
            }
            Op::Lock(space, run) => {
                let (space, model) = &mut spaces[of(space)];
                let covers = model.covers(run);
                prop_assert_eq!(errno(space.lock(run.range(), Bring::OnFault)), covers);
                if covers.is_ok() {
                    model.change(run, |page| page.1 = true);
                }
            }
            Op::PageOut(space, run) => {
                let (space, _) = &spaces[of(space)];
                // A range that is not mapped, or locked, is refused.
                let _ = space.advise(run.range(), Advice::PageOut);
            }
            Op::Reclaim(pages) => {
                vm.reclaim(pages);
            }
            Op::Move(space) => {
                let (space, model) = &mut spaces[of(space)];
                let (from, to) = (
                    Run {
                        first: 2 * SLOT,
                        count: USED,
                    },
                    SLOT + 7,
                );
                if model.covers(from).is_err() {
                    return Ok(());
                }
                let moved = space.remap(from.range(), from.range().len(), Move::To(at(to)));
                prop_assert_eq!(errno(moved), Ok(at(to)));
                for page in from.pages() {
                    let moved = model.0.remove(&page).expect("it is mapped");
                    model.0.insert(page - from.first + to, moved);
                }
            }
        }
        Ok(())
    }

    /// All of the content, and that each page is counted.
    fn check(&mut self) -> Result<(), TestCaseError> {
        for (space, model) in &mut self.spaces {
            let footprints = space.footprints().expect("memory");
            let pages: u64 = footprints
                .iter()
                .map(|one| one.resident + one.swapped)
                .sum();
            prop_assert_eq!(pages as usize, model.used());
            let resident: u64 = footprints.iter().map(|one| one.resident).sum();
            prop_assert_eq!(space.pmap().resident(), resident as usize);
            space.activate();
            for (&page, content) in &model.0 {
                if let Some(word) = content.2 {
                    prop_assert_eq!(errno(space.load(at(page))), Ok(word), "page {}", page);
                }
            }
        }
        Ok(())
    }
}

fn play(ops: &[Op], fork_tables: ForkTables, wrong: bool) -> Result<(), TestCaseError> {
    let machine = Hosted::with_memory(2, 32 << 20).expect("memory");
    let ops = ops.to_vec();
    machine.clone().on_cpu(0, move || {
        let swap = SwapSpace::new(machine.cpus(), Box::new(MemoryPager::new()), 1 << 14);
        let options = Options {
            swap_space: Some(Arc::new(swap.expect("a swap space"))),
            fork_tables,
            ..Options::default()
        };
        let vm = Vm::with_options(machine, options).expect("memory for the VM");
        let free = vm.frames().free_count();
        let first = Space::new(&vm).expect("a space");
        let mut world = World {
            vm: vm.clone(),
            spaces: vec![(first, Model::default())],
        };
        let all = Run {
            first: 0,
            count: PAGES,
        };
        world.apply(&Op::Map(0, all))?;
        for page in (0..3).flat_map(|slot| (0..USED).map(move |page| slot * SLOT + page)) {
            world.apply(&Op::Store(0, page, page as u64))?;
        }
        if wrong {
            world.spaces[0]
                .1
                .0
                .insert(5, (Prot::READ, false, Some(1_000)));
        }
        for (index, op) in ops.iter().enumerate() {
            world.apply(op)?;
            if index % 8 == 7 {
                world.check()?;
            }
        }
        world.check()?;
        drop(world);
        let swap = vm.swap_space().expect("a swap space");
        prop_assert_eq!((swap.used(), swap.cached()), (0, 0), "swap slots leaked");
        prop_assert_eq!(vm.frames().free_count(), free, "frames leaked");
        prop_assert_eq!(vm.swap().reserved(), 0, "swap leaked");
        Ok(())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn trees_that_share_tables_do_what_the_model_says(ops in prop::collection::vec(op(), 1..80)) {
        play(&ops, ForkTables::default(), false)?;
    }

    #[test]
    fn trees_that_copy_tables_do_what_the_model_says(ops in prop::collection::vec(op(), 1..80)) {
        play(&ops, ForkTables::Copied, false)?;
    }
}

/// The comparison notices a difference.
#[test]
fn a_wrong_model_is_noticed() {
    assert!(play(&[Op::Fork(0)], ForkTables::default(), true).is_err());
}
