//! The lock of a VMA, with which a fault needs no lock of the map, under the checker.

use baselines::linux::{LockSeq, VmaLock};
use loomed::Loomed;
use loomed::flaw::{Flaw, Site, must_be_found};
use loomed::loom::model::Builder;
use machine::{Atomics, CpuRange, Execute, Job, SharedCell, Topology};
use std::sync::Arc;
use sync::epoch::Domain;

struct World {
    seq: LockSeq<Loomed>,
    /// The lock under test; its writers hardly spin.
    lock: VmaLock<Loomed, 0>,
    domain: Domain<Loomed>,
    /// What a change writes and a fault reads.
    content: <Loomed as Atomics>::Cell<u32>,
}

impl World {
    fn new(cpus: CpuRange) -> Self {
        World {
            seq: LockSeq::new(),
            lock: VmaLock::new(),
            domain: Domain::new(cpus),
            content: SharedCell::new(0),
        }
    }

    fn fault(&self) {
        let held = {
            let _section = self.domain.enter();
            self.lock.read(&self.seq, &self.domain)
        };
        if held.is_some() {
            // SAFETY: the VMA is locked for a fault; the checker reports a change meanwhile.
            assert_eq!(unsafe { *self.content.read() } % 2, 0);
        }
    }

    /// Changes the content in two steps, with the map's lock held.
    fn change(&self) {
        self.lock.write(&self.seq);
        for _ in 0..2 {
            // SAFETY: as above.
            unsafe { *self.content.write() += 1 };
        }
        self.seq.unlock_all();
    }

    /// Removes the VMA from the tree; from then on another task owns it.
    fn remove(&self) {
        self.lock.write(&self.seq);
        self.lock.detach();
        self.seq.unlock_all();
        // SAFETY: as above.
        unsafe { *self.content.write() += 2 };
    }
}

fn model(jobs: &'static [fn(&World)]) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(3);
    builder.max_branches = 20_000;
    builder.check(|| {
        let machine = Loomed::new(jobs.len());
        let world = Arc::new(World::new(machine.cpus()));
        let job = |job: fn(&World)| {
            let world = world.clone();
            Box::new(move || job(&world)) as Job
        };
        machine.execute(jobs.iter().map(|&one| job(one)).collect());
    });
}

#[test]
fn a_fault_sees_a_change_wholly_or_not() {
    model(&[World::fault, World::change]);
    model(&[World::fault, |world| {
        world.change();
        world.change();
    }]);
}

#[test]
fn a_fault_leaves_a_vma_that_has_gone() {
    model(&[World::fault, World::remove]);
}

fn found(flaw: Flaw, comment: &str, jobs: &'static [fn(&World)]) {
    let text = include_str!("../../src/linux/alone.rs");
    let site = Site::after("linux/alone.rs", text, comment);
    must_be_found(flaw, site, || model(jobs));
}

#[test]
fn a_fault_that_does_not_look_again_is_found() {
    let second = "Acquire: pairs with the release in `unlock_all`";
    found(Flaw::Blind, second, &[World::fault, World::change]);
    found(Flaw::Relaxed, second, &[World::fault, World::change]);
}

#[test]
fn an_unlocking_that_releases_nothing_is_found() {
    let release = "Release: pairs with the acquire in `VmaLock::read`";
    found(Flaw::Relaxed, release, &[World::fault, World::change]);
}

#[test]
fn a_fault_that_does_not_ask_whether_the_vma_has_gone_is_found() {
    let asks = "let is_in_tree";
    found(Flaw::Blind, asks, &[World::fault, World::remove]);
}
