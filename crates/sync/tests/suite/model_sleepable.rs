//! Sections in which tasks may sleep, under the exhaustive checker, and one broken protocol for
//! each point on which the sound one rests.

use loomed::Loomed;
use loomed::flaw::{Flaw, Site, must_be_found};
use loomed::loom::model::Builder;
use machine::{Atomic, Atomics, Cpus, Execute, Ordering, SharedCell, Topology};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use sync::epoch::{Protocol, Sleepable, SleepableSection, Standard};

type Word = <Loomed as Atomics>::AtomicU64;

/// A wait for one side only.
enum OneSide {}
// SAFETY: none; it is a flaw, made only where it is to be found.
unsafe impl Protocol for OneSide {
    const BOTH_SIDES: bool = false;
}

/// A domain, and an object that readers find while it is linked.
struct World<P: Protocol> {
    domain: Sleepable<Loomed, P>,
    linked: Word,
    data: <Loomed as Atomics>::Cell<u32>,
    /// 1 when a section is begun that another CPU is to end.
    begun: Word,
}

impl<P: Protocol> World<P> {
    fn look(&self) {
        if self.linked.load(Ordering::Relaxed) == 1 {
            self.data.read();
        }
    }

    fn read(&self) {
        let _section = self.domain.enter();
        self.look();
    }

    fn wait(&self) {
        self.linked.store(0, Ordering::Relaxed);
        self.domain.wait();
        self.data.write();
    }
}

/// All interleavings of these jobs, one a CPU, with at most `preemptions`.
fn explore<P: Protocol>(preemptions: usize, jobs: &'static [fn(&'static World<P>)]) {
    let mut model = Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let machine = Loomed::new(jobs.len());
        // Leaked, so that a section can go from one job to another.
        let world: &'static World<P> = Box::leak(Box::new(World {
            domain: Sleepable::with_protocol(machine.cpus()).expect("room"),
            linked: Word::new(1),
            data: SharedCell::new(0),
            begun: Word::new(0),
        }));
        let job =
            |&job: &'static fn(&'static World<P>)| Box::new(move || job(world)) as machine::Job;
        machine.execute(jobs.iter().map(job).collect());
    });
}

fn caught<P: Protocol>(preemptions: usize, jobs: &'static [fn(&'static World<P>)]) {
    let run = AssertUnwindSafe(|| explore(preemptions, jobs));
    assert!(catch_unwind(run).is_err(), "a broken protocol passed");
}

fn reader<P: Protocol>(world: &'static World<P>) {
    world.read();
}

fn reader_twice<P: Protocol>(world: &'static World<P>) {
    world.read();
    world.read();
}

fn waiter<P: Protocol>(world: &'static World<P>) {
    world.wait();
}

fn other_waiter<P: Protocol>(world: &'static World<P>) {
    world.domain.wait();
}

/// Begins a section here that [`ends_it`] ends on another CPU.
fn begins_it<P: Protocol>(world: &'static World<P>) {
    let section = world.domain.enter();
    world.look();
    let section: usize = Box::into_raw(Box::new(section)).expose_provenance();
    world.begun.store(section as u64, Ordering::Release);
}

fn ends_it<P: Protocol>(world: &'static World<P>) {
    Loomed::spin_until(|| world.begun.load(Ordering::Acquire) != 0);
    let section = world.begun.load(Ordering::Relaxed) as usize;
    // SAFETY: `begins_it` has given it away.
    drop(unsafe {
        Box::from_raw(ptr::with_exposed_provenance_mut::<
            SleepableSection<'static, Loomed, P>,
        >(section))
    });
}

const MOST: usize = 5;

#[test]
fn wait_against_sections_that_may_sleep() {
    explore::<Standard>(MOST, &[waiter, reader]);
    explore::<Standard>(3, &[waiter, reader_twice]);
    explore::<Standard>(2, &[waiter, reader, reader]);
    explore::<Standard>(2, &[waiter, reader, other_waiter]);
}

#[test]
fn wait_against_a_section_that_moves() {
    explore::<Standard>(2, &[waiter, begins_it, ends_it]);
}

#[test]
fn broken_sections_that_may_sleep_are_caught() {
    caught::<OneSide>(MOST, &[waiter, reader]);
}

#[test]
fn a_missing_fence_is_found() {
    let text = include_str!("../../src/epoch/protocol.rs");
    let comment = "makes the section visible before anything it reads";
    let site = Site::after("epoch/protocol.rs", text, comment);
    must_be_found(Flaw::Relaxed, site, here);
}

#[test]
fn a_wait_that_orders_nothing_is_found() {
    for comment in [
        "// Acquire: pairs with the release of an exit on another CPU; and `here` is read later.",
        "// Pairs with the publication of sections.",
        "// Release: pairs with `Record::is_empty`.",
    ] {
        must_be_found(Flaw::Relaxed, after(comment), moving);
    }
    for comment in [
        "// Acquire: pairs with the release of an exit on this CPU.",
        "// Relaxed: only this CPU writes it. Release: pairs with `Record::is_empty`.",
    ] {
        must_be_found(Flaw::Relaxed, after(comment), here);
    }
}

fn after(comment: &str) -> Site {
    let text = include_str!("../../src/epoch/sleepable.rs");
    Site::after("epoch/sleepable.rs", text, comment)
}

fn here() {
    explore::<Standard>(MOST, &[waiter, reader]);
}

fn moving() {
    explore::<Standard>(2, &[waiter, begins_it, ends_it]);
}
