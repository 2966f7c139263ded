//! Superpages: how they come and go, and that content, accessed and dirty bits and frames
//! survive it.

mod bits;
mod demotion;
mod failures;
mod promotion;
mod races;
mod scarcity;

use crate::world::{
    P, SLOT, System, TestSpace, World, active, is_segv, load, nothing_left, pages, store, world,
};
use hosted::{Hosted, Stats};
use machine::{Asid, Flush, Frame, Mmu, VaRange};
use vm::{Advice, At, Best, Bring, Content, Flags, Hold, Move, Prot, Request, Superpages};

const PAGES: usize = SLOT / P;
const AT: usize = 1 << 42;

/// Runs each round on a CPU of its own.
fn each<T: Send>(rounds: impl IntoIterator<Item = T>, round: impl Fn(T) + Sync) {
    for item in rounds {
        std::thread::scope(|scope| {
            scope.spawn(|| round(item));
        });
    }
}

/// Superpages wherever there can be any.
fn large(mib: usize) -> World {
    world(mib).superpages()
}

/// A space with `slots` slots mapped at [`AT`].
fn space(vm: &System, slots: usize) -> TestSpace {
    let space = active(vm);
    let range = VaRange::sized(AT, slots * SLOT);
    space.map_fixed(range, Prot::READ_WRITE).expect("map");
    space
}

/// Loads from all pages of the slot.
fn look(space: &TestSpace) {
    for page in 0..PAGES {
        space.load(at(page)).expect("load");
    }
}

/// Holds a page of the space.
fn held(space: &TestSpace, page: usize) -> Hold<Best<Hosted>> {
    let frame = space.pmap().lookup(at(page)).expect("a page");
    space.vm().hold(frame).expect("held")
}

fn at(page: usize) -> usize {
    AT + page * P
}

fn page(page: usize) -> VaRange {
    pages(at(page), 1)
}

fn whole() -> VaRange {
    VaRange::sized(AT, SLOT)
}

/// Stores in `pages` something that tells them apart.
fn fill(space: &TestSpace, pages: impl Iterator<Item = usize>) {
    for page in pages {
        space.store(at(page), page as u64 + 1).expect("store");
    }
}

/// Checks that `pages` have the content from [`fill`].
#[track_caller]
fn check(space: &TestSpace, pages: impl Iterator<Item = usize>) {
    space.activate();
    for page in pages {
        assert_eq!(space.load(at(page)), Ok(page as u64 + 1), "page {page}");
    }
}

/// A space whose one slot is a superpage.
fn promoted(vm: &System) -> TestSpace {
    let space = space(vm, 1);
    fill(&space, 0..PAGES);
    assert_eq!(space.pmap().superpages(), 1);
    space
}

fn stats(vm: &System) -> Stats {
    vm.machine().stats().into_iter().sum()
}

/// Drops the space, and sees that nothing is left of it.
#[track_caller]
fn end(vm: &System, space: TestSpace) {
    drop(space);
    nothing_left(vm);
    vm.frames().drain();
    let blocks = std::iter::from_fn(|| vm.frames().allocate_block(vm.machine()));
    let blocks: Vec<_> = blocks.collect();
    assert_eq!(blocks.len(), vm.frames().total() / PAGES, "whole blocks");
    // SAFETY: the frames were given out, and nothing uses them.
    let give_back = |first| unsafe { vm.frames().free_block(vm.machine(), first) };
    blocks.into_iter().for_each(give_back);
}

/// Makes all CPUs walk again, as after a long time.
fn forget(vm: &System) {
    for asid in 0..8 {
        vm.machine().flush_local(Asid(asid), Flush::All);
    }
}
