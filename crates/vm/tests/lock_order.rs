//! The VM's locks are watched: their order is that of `vm::lock`, breaking it is
//! reported with both call sites, and being watched takes no memory.

use hosted::Hosted;
use machine::{PAGE_SIZE, VaRange};
use std::panic::{AssertUnwindSafe, catch_unwind};
use sync::Mutex;
use sync::adaptive::Adaptive;
use sync::obm::Obm;
use sync::spin::{TestAndSet, Ticket};
use sync::watch::{ClassState, DefaultObserver, LockClass, Order, Watched, order};
use vm::lock::{FrameCache, FramePool, ObjectSize, PagePv, TreeSlot};
use vm::{Best, Page, Prot, Space, Vm};

const _: () = assert!(size_of::<Page<Best<Hosted>>>() == 32);
const _: () = assert!(size_of::<Watched<Hosted, Obm<Hosted>, PagePv, DefaultObserver>>() == 1);
const _: () = assert!(size_of::<Watched<Hosted, Obm<Hosted>, PagePv, Order>>() == 1);
const _: () = assert!(size_of::<Watched<Hosted, Obm<Hosted>, TreeSlot, Order>>() == 1);
const _: () = assert!(size_of::<Watched<Hosted, Adaptive<Hosted>, ObjectSize, Order>>() == 8);

/// True if this build checks the VM's locks.
const CHECKED: bool = cfg!(any(debug_assertions, feature = "lock-order"));

/// The message of a panic of `f`; its locations are in this file.
fn report(f: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(f)).expect_err("a wrong order was not noticed");
    match panic.downcast::<String>() {
        Ok(report) => *report,
        Err(_) => panic!("a panic without a report"),
    }
}

fn class<C: LockClass>() -> &'static ClassState {
    C::state()
}

/// A VM does operations that take its locks in all possible combinations.
fn exercise() {
    let machine = Hosted::with_memory(1, 16 << 20).expect("memory");
    machine.attach(0);
    let vm = Vm::<Best<Hosted>>::new(machine).expect("memory for the VM");
    let space = Space::new(&vm).expect("a space");
    space.activate();
    let pages = 300;
    let at = space.map(pages * PAGE_SIZE, Prot::READ_WRITE).expect("map");
    for page in 0..pages {
        space.store(at + page * PAGE_SIZE, 1).expect("store");
    }
    let page = vm.new_page().expect("a page");
    let near = VaRange::page(1 << 30);
    space.map_fixed(near, Prot::READ).expect("map");
    let entered = space.pmap().enter(near.start, &page, Prot::READ);
    assert_eq!(entered, Ok(true));
    assert_eq!(vm.remove_all(&page).mappings, 1);
    let range = VaRange::sized(at, pages * PAGE_SIZE);
    space.protect(range, Prot::READ).expect("protect");
    space.unmap(range).expect("unmap");
}

#[test]
fn the_vm_takes_its_locks_in_the_declared_order() {
    exercise();
    let seen: Vec<_> = order::edges()
        .filter_map(|edge| Some((edge.from?, edge.to?, edge.held_at?, edge.taken_at?)))
        .collect();
    let find = |from: &'static str, to: &'static str| {
        let named =
            |edge: &&(&ClassState, &ClassState, _, _)| edge.0.name() == from && edge.1.name() == to;
        seen.iter().find(named)
    };
    let pairs = [
        (class::<TreeSlot>(), class::<PagePv>(), "pmap/enter"),
        (class::<TreeSlot>(), class::<FrameCache>(), "space/fault"),
        (class::<FrameCache>(), class::<FramePool>(), "frames/"),
    ];
    for (from, to, held_in) in pairs {
        assert!(from.rank() < to.rank(), "{} {}", from.name(), to.name());
        match find(from.name(), to.name()) {
            // The sites are the VM's, not those of the wrappers in between.
            Some((_, _, held_at, taken_at)) if CHECKED => {
                assert!(held_at.file().contains(held_in), "{held_at}");
                assert!(!taken_at.file().contains("crates/sync"), "{taken_at}");
            }
            found => assert_eq!(found.is_some(), CHECKED, "{} {}", from.name(), to.name()),
        }
    }
}

#[test]
fn a_wrong_order_is_reported_with_both_sites() {
    let pool = Mutex::<Hosted, Watched<Hosted, Ticket<Hosted>, FramePool, Order>, ()>::new(());
    type Cache = Watched<Hosted, TestAndSet<Hosted>, FrameCache, Order>;
    let cache = Mutex::<Hosted, Cache, ()>::new(());
    let lines = (line!() + 2, line!() + 3);
    let report = report(|| {
        let _pool = pool.lock();
        let _cache = cache.lock();
    });
    assert!(report.contains("(rank 60, then 50)"), "{report}");
    for (name, line) in [("frame pool", lines.0), ("frame cache", lines.1)] {
        let site = format!("{}:{line}:", file!());
        assert!(report.contains(name) && report.contains(&site), "{report}");
    }
    assert!(
        !pool.is_locked() && !cache.is_locked(),
        "released by the panic"
    );
}

/// The planted mistake is the caller's: it calls the VM with a lock held that comes last.
#[test]
fn the_vms_own_locks_are_checked() {
    let machine = Hosted::with_memory(1, 4 << 20).expect("memory");
    machine.attach(0);
    let vm = Vm::<Best<Hosted>>::new(machine).expect("memory for the VM");
    let space = Space::new(&vm).expect("a space");
    let pool = Mutex::<Hosted, Watched<Hosted, Ticket<Hosted>, FramePool>, ()>::new(());
    let line = line!() + 2;
    let call = || {
        let _pool = pool.lock();
        space.map(PAGE_SIZE, Prot::READ).expect("map");
    };
    if !CHECKED {
        return call();
    }
    let report = report(call);
    let here = format!("{}:{line}:", file!());
    assert!(report.contains("(rank 60, then 30)"), "{report}");
    assert!(
        report.contains(&here) && report.contains("src/space/map.rs:"),
        "{report}"
    );
}
