//! CPUs that come, leave and come back beside one that takes a page away, under all interleavings.

extern crate std;

use super::*;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use checked::Checked;
use checked::flaw::{Flaw, Site, must_be_found};
use checked::loom::model::Builder;
use machine::{Atomics, Execute, Job, SharedCell, Topology};

const TAG: Asid = Asid(1);
const OTHER: Asid = Asid(2);

/// Where CPU 0 is at first.
#[derive(Clone, Copy)]
enum Begins {
    /// It has never been in the space.
    New,
    /// It has the entry cached, and has left the space for another.
    Left,
    /// It is in the space, and has the entry cached.
    Here,
}

struct World {
    active: ActiveCpus<Checked>,
    current: CurrentSpaces<Checked>,
    /// 1 while the page is mapped.
    entry: <Checked as Atomics>::AtomicU64,
    /// The page: a CPU that reaches it through the entry races with its next owner.
    page: <Checked as Atomics>::Cell<u64>,
}

impl World {
    /// CPU 0 translates by the entry, or by what it has cached.
    fn access(&self, is_cached: bool) {
        if is_cached || self.entry.load(Ordering::Acquire) == 1 {
            self.page.read();
        }
    }

    /// CPU 0 comes to the space; its TLB, `is_cached`, forgets the entry if it flushes.
    fn come(&self, is_cached: &mut bool) {
        let flush = |flushes: bool| *is_cached &= !flushes;
        self.active.enter(&self.current, 0, TAG, false, flush);
    }

    /// CPU 0 leaves for another space.
    fn leave(&self) {
        let other = ActiveCpus::<Checked>::new();
        other.enter(&self.current, 0, OTHER, false, drop);
    }
}

/// CPU 0 uses the page beside CPU 1, which takes it away and has it for itself if no CPU is to be interrupted.
/// (Hosted and simulated accesses fence by themselves, and would hide that there is no fence.)
fn model(begins: Begins) {
    Builder::new().check(move || {
        let machine = Checked::new(2);
        let cpus = machine.cpus();
        let world = Arc::new(World {
            active: ActiveCpus::new(),
            current: CurrentSpaces::new(cpus).unwrap(),
            entry: Atomic::new(1),
            page: SharedCell::new(0),
        });
        // What CPU 0 has done before, which CPU 1 knows of.
        match begins {
            Begins::New => {}
            Begins::Left => {
                world.come(&mut true);
                world.leave();
            }
            Begins::Here => world.come(&mut true),
        }
        let other = world.clone();
        let use_page = move || {
            let mut is_cached = !matches!(begins, Begins::New);
            if !matches!(begins, Begins::Here) {
                world.come(&mut is_cached);
            }
            world.access(is_cached);
            world.leave();
        };
        let take = move || {
            other.entry.swap(0, Ordering::AcqRel);
            let (_, has_others) = other.active.look(cpus, 1);
            let interrupted = || other.active.others(&other.current, cpus, 1, TAG, false);
            if !has_others || interrupted().is_empty() {
                other.page.write();
            }
        };
        let jobs: vec::Vec<Job> = vec![Box::new(use_page), Box::new(take)];
        machine.execute(jobs);
    });
}

#[test]
fn who_is_not_in_the_set_finds_nothing() {
    model(Begins::New);
}

#[test]
fn who_comes_back_has_flushed_or_is_interrupted() {
    model(Begins::Left);
}

#[test]
fn who_has_left_has_ended_its_accesses() {
    model(Begins::Here);
}

fn must_matter(file: &'static str, text: &'static str, comment: &'static str, begins: Begins) {
    let site = Site::after(file, text, comment);
    must_be_found(Flaw::Relaxed, site, move || model(begins));
}

#[test]
fn a_missing_order_is_found() {
    let active = |comment, begins| {
        must_matter(
            "pmap/active.rs",
            include_str!("../active.rs"),
            comment,
            begins,
        );
    };
    active("// Pairs with the fence in `enter`.", Begins::New);
    active(
        "// Pairs with the fences in `look` and `others`.",
        Begins::New,
    );
    active(
        "// Pairs with the fences in `look` and `others`.",
        Begins::Left,
    );
    active("// Pairs with the fence in `enter`, for", Begins::Left);
    let current = include_str!("../../vm/current.rs");
    must_matter(
        "vm/current.rs",
        current,
        "// Acquire: pairs with `set`.",
        Begins::Left,
    );
}
