//! The shootdown protocol under loom: the very code of the hosted machine, on
//! checked atomics, and flaws of it that loom catches.

use hosted::shootdown::{self, Gate, Order};
use loomed::Loomed;
use loomed::flaw::{Flaw, Site, must_be_found};
use loomed::loom::model::Builder;
use machine::{Asid, Atomic, Atomics, Execute, Flush, Job, Ordering, SharedCell};
use std::iter;
use std::sync::Arc;

/// A page, the entry that maps it, and the CPU that has both in its TLB.
struct Shared {
    gate: Gate<Loomed>,
    /// 1 while the page is mapped.
    entry: <Loomed as Atomics>::AtomicU64,
    /// Plain memory: an access that races with its reuse ends the model.
    page: <Loomed as Atomics>::Cell<u64>,
}

/// One access: through the TLB's entry, or the tables if it has none.
fn access(shared: &Shared, cached: &mut bool) {
    let _access = shared.gate.begin();
    shared.gate.serve(|order| {
        let request = Order::Flush(Asid(1), Flush::All);
        assert_eq!(order, request, "an order that was not given");
        *cached = false;
    });
    if *cached || shared.entry.load(Ordering::Acquire) == 1 {
        // SAFETY: the model checks this access; loom reports a race.
        unsafe { *shared.page.write() += 1 };
    }
}

/// Unmaps the page; after that no CPU but this one accesses it.
fn take(shared: &Shared) {
    shared.entry.swap(0, Ordering::AcqRel);
    let gates = || iter::once(&shared.gate);
    shootdown::reach(gates, Asid(1), Flush::All, || (), drop);
    // SAFETY: the model checks this access; loom reports a race.
    unsafe { *shared.page.write() = 0 };
}

/// One takes the page that another uses twice.
fn explore() {
    let model = move || {
        let shared = Arc::new(Shared {
            gate: Gate::new(),
            entry: Atomic::new(1),
            page: SharedCell::new(0),
        });
        let target = shared.clone();
        let jobs: Vec<Job> = vec![
            Box::new(move || take(&shared)),
            Box::new(move || {
                let mut cached = true;
                access(&target, &mut cached);
                access(&target, &mut cached);
            }),
        ];
        Loomed::new(2).execute(jobs);
    };
    let mut builder = Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

#[test]
fn no_access_outlives_a_shootdown() {
    explore();
}

#[test]
fn a_shootdown_or_an_access_that_orders_nothing_is_found() {
    let text = include_str!("../../src/shootdown.rs");
    for comment in [
        "// Pairs with the fence at the beginning of an access.",
        "// Pairs with the fence in `reach`; see the protocol.",
        "// Release: pairs with the acquire in `settle`; the access is performed.",
        "// Acquire: pairs with the release of each `post` whose bit is found.",
    ] {
        let site = Site::after("src/shootdown.rs", text, comment);
        must_be_found(Flaw::Relaxed, site, explore);
    }
}
