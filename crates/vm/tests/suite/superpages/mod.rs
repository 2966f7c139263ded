//! Superpages: how they come and go, and that
//! content, accessed and dirty bits and frames survive it.

mod bits;
mod demotion;
mod promotion;
mod scarcity;

use hosted::{Hosted, Stats};
use machine::{Asid, Flush, Mmu, PAGE_SIZE, Topology, VaRange};
use std::sync::Arc;
use vm::pager::MemoryPager;
use vm::swap::SwapSpace;
use vm::system::Reservation;
use vm::{
    Advice, At, Best, Bring, Error, Flags, Move, Options, Prot, Request, Space, Superpages, Vm,
};

const MIB: usize = 1 << 20;
const HUGE: usize = 2 * MIB;
const PAGES: usize = HUGE / PAGE_SIZE;
const AT: usize = 1 << 42;

type System = Arc<Vm<Best<Hosted>>>;
type TestSpace = Space<Best<Hosted>>;

fn system_with(mib: usize, superpages: Superpages) -> System {
    let machine = Hosted::with_memory(2, mib * MIB).expect("memory");
    machine.attach(0);
    let options = Options {
        superpages,
        ..Options::default()
    };
    Vm::with_options(machine, options).expect("memory for the VM")
}

/// With a swap space of 64 MiB.
fn system_with_swap(mib: usize) -> System {
    let machine = Hosted::with_memory(2, mib * MIB).expect("memory");
    machine.attach(0);
    let swap = SwapSpace::new(machine.cpus(), Box::new(MemoryPager::new()), 16_384);
    let options = Options {
        superpages: Superpages::Always,
        swap_pages: Some(1 << 30),
        swap_space: Some(Arc::new(swap.expect("a swap space"))),
        ..Options::default()
    };
    Vm::with_options(machine, options).expect("memory for the VM")
}

fn system(mib: usize) -> System {
    system_with(mib, Superpages::Always)
}

/// Runs each round on a CPU of its own.
fn each<T: Send>(rounds: impl IntoIterator<Item = T>, round: impl Fn(T) + Sync) {
    for item in rounds {
        std::thread::scope(|scope| {
            scope.spawn(|| round(item));
        });
    }
}

/// A space with `slots` slots mapped at [`AT`].
fn space(vm: &System, slots: usize) -> TestSpace {
    let space = Space::new(vm).expect("a space");
    let range = VaRange::sized(AT, slots * HUGE);
    space.map_fixed(range, Prot::READ_WRITE).expect("map");
    space.activate();
    space
}

fn at(page: usize) -> usize {
    AT + page * PAGE_SIZE
}

fn page(page: usize) -> VaRange {
    VaRange::sized(at(page), PAGE_SIZE)
}

fn whole() -> VaRange {
    VaRange::sized(AT, HUGE)
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
    assert_eq!(vm.frames().free_count(), vm.frames().total(), "frames");
    assert_eq!(vm.swap().reserved(), 0, "swap");
    vm.frames().drain();
    let blocks = std::iter::from_fn(|| vm.frames().allocate_block(vm.machine()));
    let blocks: Vec<_> = blocks.collect();
    assert_eq!(blocks.len(), vm.frames().total() / PAGES, "whole blocks");
    let give_back = |first| vm.frames().free_block(vm.machine(), first);
    blocks.into_iter().for_each(give_back);
}

/// Makes all CPUs walk again, as after a long time.
fn forget(vm: &System) {
    for asid in 0..8 {
        vm.machine().flush_local(Asid(asid), Flush::All);
    }
}
