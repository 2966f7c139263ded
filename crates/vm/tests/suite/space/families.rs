//! Families of spaces that change at random, while pages go out and spaces end in any order.
//!
//! `check oracle` plays what calls mean. Here are the things that no task sees: who shares a table
//! or a superpage, removals by the reverse map, reclaim, and the counts of pages. So all memory is
//! always mapped and can be read, and the model is the content of its pages.

use crate::world::{P, System, TestSpace, World, active, is_segv, nothing_left, pages, world};
use machine::VaRange;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::Cell;
use std::ops::Range;
use vm::system::ForkTables;
use vm::{Advice, Bring, Error, Footprint, Move, Prot};

/// Pages of a slot, which can be a superpage.
const SLOT: usize = 512;
const PAGES: usize = 3 * SLOT;
/// Pages of each slot that are used mostly: enough for its table to be shared.
const USED: usize = 48;
/// The largest family.
const SPACES: usize = 6;

type Run = Range<usize>;

#[derive(Clone, Debug)]
enum Op {
    Fork,
    End,
    Store(usize, u64),
    Load(usize),
    /// Stores in each page of a slot, in an order that the step gives.
    Fill(usize, usize, u64),
    /// Maps anew what may have advice and be locked.
    Renew(Run),
    Discard(Run),
    /// Gives the right to write, or takes it.
    Protect(Run, bool),
    Lock(Run),
    Advise(Run, Advice),
    Reclaim(usize),
    /// What is used of slot 2 moves into slot 1.
    Move,
    /// Takes a page from all, where there is no swap space to find it in.
    RemoveAll(usize),
    /// Asks if a page was used.
    Test(usize),
}

fn page() -> impl Strategy<Value = usize> {
    let edge = prop::sample::select(&[0, 1, SLOT - 1][..]);
    let page = prop_oneof![6 => 0..USED, 2 => edge, 1 => 0..SLOT];
    (0..3usize, page).prop_map(|(slot, page)| slot * SLOT + page)
}

fn run() -> impl Strategy<Value = Run> {
    prop_oneof![
        2 => (0..3usize).prop_map(|slot| slot * SLOT..(slot + 1) * SLOT),
        1 => Just(0..PAGES),
        3 => (page(), 1..20usize).prop_map(|(first, count)| first..(first + count).min(PAGES)),
        1 => (page(), page()).prop_map(|(a, b)| a.min(b)..a.max(b) + 1),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let step = prop::sample::select(&[1, SLOT - 1, 37][..]);
    let advice = &[Advice::Huge, Advice::NoHuge, Advice::Random][..];
    let advice = prop::sample::select(advice);
    prop_oneof![
        6 => Just(Op::Fork),
        4 => Just(Op::End),
        8 => (page(), 1..100u64).prop_map(|(page, value)| Op::Store(page, value)),
        4 => page().prop_map(Op::Load),
        6 => (0..3usize, step, 1..1000u64).prop_map(|(slot, step, n)| Op::Fill(slot, step, n)),
        2 => run().prop_map(Op::Renew),
        2 => run().prop_map(Op::Discard),
        3 => (run(), any::<bool>()).prop_map(|(run, writes)| Op::Protect(run, writes)),
        1 => run().prop_map(Op::Lock),
        1 => (run(), advice).prop_map(|(run, advice)| Op::Advise(run, advice)),
        2 => run().prop_map(|run| Op::Advise(run, Advice::PageOut)),
        2 => (1..200usize).prop_map(Op::Reclaim),
        1 => Just(Op::Move),
        2 => page().prop_map(Op::RemoveAll),
        2 => page().prop_map(Op::Test),
    ]
}

/// Steps of some space of the family.
fn steps() -> impl Strategy<Value = Vec<(usize, Op)>> {
    prop::collection::vec((0..SPACES, op()), 1..60)
}

fn at(page: usize) -> usize {
    (1 << 42) + page * P
}

fn range(run: &Run) -> VaRange {
    pages(at(run.start), run.len())
}

#[derive(Clone, Copy)]
struct Page {
    /// Its content, if it was ever used.
    word: Option<u64>,
    /// It may be written.
    writes: bool,
}

const NEW: Page = Page {
    word: None,
    writes: true,
};

type Member = (TestSpace, Vec<Page>);

struct Family {
    vm: System,
    members: Vec<Member>,
}

impl Family {
    fn new(vm: &System) -> Self {
        let space = active(vm);
        let mut first = (space, vec![NEW; PAGES]);
        renew(&mut first, 0..PAGES);
        let used = (0..3).flat_map(|slot| (0..USED).map(move |page| slot * SLOT + page));
        used.for_each(|page| store(&mut first, page, page as u64));
        Family {
            vm: vm.clone(),
            members: vec![first],
        }
    }

    fn apply(&mut self, which: usize, op: &Op) {
        let count = self.members.len();
        let member = &mut self.members[which % count];
        let (space, pages) = &mut *member;
        space.activate();
        match op.clone() {
            Op::Fork if count < SPACES => {
                let child = (space.fork().expect("fork"), pages.clone());
                self.members.push(child);
            }
            Op::End if count > 1 => drop(self.members.remove(which % count)),
            Op::Fork | Op::End => {}
            Op::Store(page, value) => store(member, page, value),
            Op::Load(page) => load(member, page),
            Op::Fill(slot, step, seed) => {
                let order = (0..SLOT).map(|index| slot * SLOT + index * step % SLOT);
                order.for_each(|page| store(member, page, seed << 16 | page as u64));
            }
            Op::Renew(run) => renew(member, run),
            Op::Discard(run) => discard(member, run),
            Op::Protect(run, writes) => protect(member, run, writes),
            Op::Lock(run) => space.lock(range(&run), Bring::OnFault).expect("lock"),
            Op::Advise(run, advice) => {
                let advised = space.advise(range(&run), advice);
                assert!(advised.is_ok() || advice == Advice::PageOut, "{advised:?}");
            }
            Op::Reclaim(pages) => drop(self.vm.reclaim(pages)),
            Op::Move => shift(member),
            Op::RemoveAll(page) => self.remove_all(which % count, page),
            Op::Test(page) => {
                let frame = space.pmap().lookup(at(page));
                if let Some(hold) = frame.and_then(|frame| self.vm.hold(frame)) {
                    self.vm.test_referenced(&hold);
                }
            }
        }
    }

    fn remove_all(&mut self, which: usize, page: usize) {
        let frame = self.members[which].0.pmap().lookup(at(page));
        let hold = frame.and_then(|frame| self.vm.hold(frame));
        let Some(hold) = hold.filter(|_| self.vm.swap_slots().is_none()) else {
            return;
        };
        let mut mappings = 0;
        for (space, pages) in &mut self.members {
            // Where it was moved, too.
            for index in (0..PAGES).filter(|&page| space.pmap().lookup(at(page)) == frame) {
                pages[index].word = None;
                mappings += 1;
            }
        }
        assert_eq!(self.vm.remove_all(&hold).mappings, mappings);
    }

    /// Looks at all of the content, and that each page is counted.
    fn check(&self) {
        for (space, pages) in &self.members {
            let footprints = space.scan(0, usize::MAX).expect("memory");
            let sum = |of: fn(&Footprint) -> u64| footprints.iter().map(of).sum::<u64>();
            let used = pages.iter().filter(|page| page.word.is_some());
            assert_eq!(sum(|one| one.resident + one.swapped), used.count() as u64);
            assert_eq!(sum(|one| one.resident), space.pmap().resident() as u64);
            space.activate();
            for (index, page) in pages.iter().enumerate() {
                if let Some(word) = page.word {
                    assert_eq!(space.load(at(index)), Ok(word), "page {index}");
                }
            }
        }
    }
}

fn store((space, pages): &mut Member, page: usize, value: u64) {
    let stored = space.store(at(page), value);
    if pages[page].writes {
        stored.expect("store");
        pages[page].word = Some(value);
    } else {
        assert!(is_segv(stored));
    }
}

/// As a task, and as the kernel.
fn load((space, pages): &mut Member, page: usize) {
    let word = *pages[page].word.get_or_insert(0);
    assert_eq!(space.load(at(page)), Ok(word), "page {page}");
    let mut bytes = [0; 8];
    assert_eq!(space.copy_in(at(page), &mut bytes), Ok(()));
    assert_eq!(u64::from_le_bytes(bytes), word, "page {page}");
}

fn renew((space, pages): &mut Member, run: Run) {
    let mapped = space.map_fixed(range(&run), Prot::READ_WRITE);
    mapped.expect("map");
    pages[run].fill(NEW);
}

fn discard((space, pages): &mut Member, run: Run) {
    match space.discard(range(&run)) {
        Ok(()) => pages[run].iter_mut().for_each(|page| page.word = None),
        // Some of it is locked.
        Err(Error::Invalid { .. }) => {}
        Err(error) => panic!("{error}"),
    }
}

fn protect((space, pages): &mut Member, run: Run, writes: bool) {
    let prot = Prot::new(true, writes, false);
    space.protect(range(&run), prot).expect("protect");
    pages[run].iter_mut().for_each(|page| page.writes = writes);
}

/// Moves what is used of slot 2 into slot 1.
fn shift(member: &mut Member) {
    let (from, to) = (2 * SLOT..2 * SLOT + USED, SLOT + 7);
    let moved = member.0.remap(range(&from), USED * P, Move::To(at(to)));
    assert_eq!(moved, Ok(at(to)));
    member.1.copy_within(from.clone(), to);
    renew(member, from);
}

/// Plays `steps`. Returns how often there was a superpage.
fn play(steps: &[(usize, Op)], world: World, spoil: fn(&mut [Page])) -> usize {
    let vm = world.apart();
    vm.machine().on_cpu(0, || {
        let mut family = Family::new(&vm);
        spoil(&mut family.members[0].1);
        let mut superpages = 0;
        for (index, (which, op)) in steps.iter().enumerate() {
            family.apply(*which, op);
            let seen = family
                .members
                .iter()
                .map(|(space, _)| space.pmap().superpages());
            superpages += seen.sum::<usize>();
            if index % 8 == 7 {
                family.check();
            }
        }
        family.check();
        drop(family);
        nothing_left(&vm);
        superpages
    })
}

fn tables(tables: ForkTables) -> World {
    world(32)
        .swap(1 << 14)
        .with(|options| options.fork_tables = tables)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn relatives_that_share_tables_have_their_content(steps in steps()) {
        play(&steps, tables(ForkTables::default()), |_| ());
    }

    #[test]
    fn relatives_that_copy_tables_have_their_content(steps in steps()) {
        play(&steps, tables(ForkTables::Copied), |_| ());
    }
}

#[test]
fn relatives_with_superpages_have_their_content() {
    let seen = Cell::new(0);
    let mut runner = TestRunner::new(ProptestConfig::with_cases(300));
    let result = runner.run(&steps(), |steps| {
        seen.set(seen.get() + play(&steps, world(64).superpages(), |_| ()));
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    assert!(seen.get() > 300, "superpages {} times only", seen.get());
}

#[test]
#[should_panic(expected = "page 5")]
fn a_wrong_content_is_noticed() {
    let wrong = |pages: &mut [Page]| pages[5].word = Some(1_000);
    play(&[(0, Op::Fork)], tables(ForkTables::default()), wrong);
}
