//! A whole VM with the baselines' locks keeps the order that `vm::lock` declares. Debug builds and
//! the VM's feature `lock-order` check it; others run the same operations.

use baselines::freebsd::swap::MutexSwap;
use baselines::freebsd::{Di, OneLock, Pvh};
use hosted::Hosted;
use machine::{PAGE_SIZE, VaRange};
use sync::watch::order;
use vm::system::{Invalidation, System};
use vm::{Prot, Space, Vm};

struct With<I>(std::marker::PhantomData<I>);

impl<I: Invalidation<Hosted>> System for With<I> {
    type Machine = Hosted;
    type Invalidation = I;
    type Swap = MutexSwap<Hosted>;
    type Gate = OneLock<Hosted>;
    type Queues = vm::system::NoQueues;
    type PvLocks = vm::system::PvBytes;
    type PvChunks = vm::system::NoChunks;
}

/// Maps, faults, unmaps, and removes by the reverse map; a violation of the order panics.
fn exercise<I: Invalidation<Hosted>>() {
    let machine = Hosted::with_memory(1, 4 << 20).expect("memory");
    machine.attach(0);
    let vm = Vm::<With<I>>::new(machine).expect("memory for the VM");
    let space = Space::new(&vm).expect("a space");
    space.activate();
    let at = space.map(4 * PAGE_SIZE, Prot::READ_WRITE).expect("map");
    for page in 0..4 {
        space.store(at + page * PAGE_SIZE, 1).expect("store");
    }
    let page = vm.new_page().expect("a page");
    let near = VaRange::page(1 << 30);
    space.map_fixed(near, Prot::READ).expect("map");
    let entered = space.pmap().enter(near.start, &page, Prot::READ);
    assert_eq!(entered, Ok(true));
    assert_eq!(vm.remove_all(&page).mappings, 1);
    space
        .unmap(VaRange::sized(at, 4 * PAGE_SIZE))
        .expect("unmap");
}

fn seen(from: &str, to: &str) -> bool {
    order::edges().any(|edge| {
        let named = |class: Option<&sync::watch::ClassState>, name| {
            class.is_some_and(|class| class.name() == name)
        };
        named(edge.from, from) && named(edge.to, to)
    })
}

#[test]
fn the_generation_mutex_is_taken_between_map_and_pmap() {
    exercise::<Di<Hosted>>();
    if cfg!(debug_assertions) {
        assert!(seen("space map", "invl gen"));
        assert!(seen("space map", "swap devices"));
        assert!(seen("space map", "swap user"));
        // Blocks hold no lock: the mutex is released before the pmap's is acquired.
        assert!(!seen("invl gen", "pmap"));
        assert!(!seen("swap devices", "swap user"));
    }
}

#[test]
fn the_global_lock_is_held_around_pmap_and_pv_list() {
    exercise::<Pvh<Hosted>>();
    if cfg!(debug_assertions) {
        assert!(seen("space map", "pvh global"));
        assert!(seen("pvh global", "pmap"));
        assert!(seen("pvh global", "page pv"));
    }
}
