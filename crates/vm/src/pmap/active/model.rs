//! A CPU that begins to translate beside one that takes a page away, under all interleavings.

extern crate std;

use super::*;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use checked::Checked;
use checked::flaw::{Flaw, Site, must_be_found};
use checked::loom::model::Builder;
use machine::{Atomics, Execute, Job, SharedCell, Topology};

struct World {
    active: ActiveCpus<Checked>,
    /// 1 while the page is mapped.
    entry: <Checked as Atomics>::AtomicU64,
    /// The page: a CPU that reaches it through the entry races with its next owner.
    page: <Checked as Atomics>::Cell<u64>,
}

/// CPU 0 begins to translate while CPU 1 takes the page away, and has it for itself if
/// no CPU is to be flushed. (Hosted and simulated accesses fence by themselves, and would hide
/// that there is no fence.)
fn model() {
    Builder::new().check(|| {
        let world = Arc::new(World {
            active: ActiveCpus::new(),
            entry: Atomic::new(1),
            page: SharedCell::new(0),
        });
        let other = world.clone();
        let translate = move || {
            world.active.insert(0);
            if world.entry.load(Ordering::Acquire) == 1 {
                world.page.read();
            }
        };
        let machine = Checked::new(2);
        let cpus = machine.cpus();
        let take = move || {
            other.entry.swap(0, Ordering::AcqRel);
            let (_, has_others) = other.active.look(cpus, 1);
            if !has_others {
                other.page.write();
            }
        };
        let jobs: vec::Vec<Job> = vec![Box::new(translate), Box::new(take)];
        machine.execute(jobs);
    });
}

#[test]
fn who_is_not_in_the_set_finds_nothing() {
    model();
}

#[test]
fn a_missing_fence_is_found() {
    for comment in [
        "// Pairs with the fence in `look`.",
        "// Pairs with the fence in `insert`.",
    ] {
        let site = Site::after("pmap/active.rs", include_str!("../active.rs"), comment);
        must_be_found(Flaw::Relaxed, site, model);
    }
}
