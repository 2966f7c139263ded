//! Epochs under the exhaustive checker, and one broken protocol for each point on
//! which the sound one rests.

use loomed::Loomed;
use loomed::flaw::{Flaw, Site, must_be_found};
use loomed::loom::model::Builder;
use machine::{Atomic, Atomics, Cpus, Execute, Machine, Ordering, SharedCell, Topology};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use sync::epoch::{Deferred, Domain, Options, Protocol, SectionId, Standard};

type Word = <Loomed as Atomics>::AtomicU64;

/// The epoch advanced one step too early.
enum EarlyGrace {}
// SAFETY: none; it is a flaw, made only where it is to be found.
unsafe impl Protocol for EarlyGrace {
    const GRACE: u64 = 1;
}

/// Callbacks stamped with their caller's own epoch: one epoch too early.
enum OwnStamp {}
// SAFETY: none; it is a flaw, made only where it is to be found.
unsafe impl Protocol for OwnStamp {
    fn stamp(_global: u64, section: u64) -> u64 {
        section
    }
}

/// A record's epoch stored without release.
enum RelaxedEpoch {}
// SAFETY: none; it is a flaw, made only where it is to be found.
unsafe impl Protocol for RelaxedEpoch {
    fn publish<M: Machine>(epoch: &M::AtomicU64, value: u64) {
        epoch.store(value, Ordering::Relaxed);
        M::fence(Ordering::SeqCst);
    }
}

/// A domain, and an object that readers find while it is linked.
struct World<P: Protocol> {
    domain: Domain<Loomed, P>,
    linked: Word,
    object: Arc<Object>,
}

#[repr(C)]
struct Object {
    node: Deferred<Loomed>,
    /// Read by readers; written once it is reclaimed. The checker reports a race.
    data: <Loomed as Atomics>::Cell<u32>,
}

impl<P: Protocol> World<P> {
    fn new(machine: &Loomed) -> Arc<Self> {
        let options = Options {
            limit: 1,
            on_stall: None,
        };
        Arc::new(World {
            domain: Domain::with_protocol(machine.cpus(), options),
            linked: Word::new(1),
            object: Arc::new(Object {
                node: Deferred::new(),
                data: SharedCell::new(0),
            }),
        })
    }

    /// A section that uses the object if it finds it.
    fn read(&self) {
        let _section = self.domain.enter();
        if self.linked.load(Ordering::Relaxed) == 1 {
            self.object.data.read();
        }
    }

    fn unlink(&self) {
        self.linked.store(0, Ordering::Relaxed);
    }

    fn reclaim(&self) {
        self.object.data.write();
    }

    fn call(&self) {
        unsafe fn reclaim(node: *mut Deferred<Loomed>) {
            // SAFETY: the node is the first field of an object that the world keeps
            // until after its domain.
            unsafe { (*node.cast::<Object>()).data.write() };
        }
        let node = Arc::as_ptr(&self.object).cast_mut().cast();
        // SAFETY: the object is unlinked, and deferred once.
        unsafe { self.domain.call(node, reclaim) };
    }
}

/// All interleavings of these jobs, one a CPU, with at most `preemptions`.
fn explore<P: Protocol>(preemptions: usize, jobs: &'static [fn(&World<P>)]) {
    let mut model = Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let machine = Loomed::new(jobs.len());
        let world = World::<P>::new(&machine);
        let job = |job: &'static fn(&World<P>)| {
            let world = world.clone();
            Box::new(move || job(&world)) as machine::Job
        };
        machine.execute(jobs.iter().map(job).collect());
    });
}

/// Asserts that exploring fails.
fn caught<P: Protocol>(preemptions: usize, jobs: &'static [fn(&World<P>)]) {
    let run = AssertUnwindSafe(|| explore(preemptions, jobs));
    assert!(catch_unwind(run).is_err(), "a broken protocol passed");
}

fn reader<P: Protocol>(world: &World<P>) {
    world.read();
}

fn reader_twice<P: Protocol>(world: &World<P>) {
    world.read();
    world.read();
}

fn nested_reader<P: Protocol>(world: &World<P>) {
    let _outer = world.domain.enter();
    drop(world.domain.enter());
    world.read();
}

fn waiter<P: Protocol>(world: &World<P>) {
    world.unlink();
    world.domain.wait();
    world.reclaim();
}

fn second_waiter<P: Protocol>(world: &World<P>) {
    world.domain.wait();
}

fn caller<P: Protocol>(world: &World<P>) {
    world.unlink();
    world.call();
}

fn caller_in_section<P: Protocol>(world: &World<P>) {
    let _section = world.domain.enter();
    world.unlink();
    world.call();
}

fn poller<P: Protocol>(world: &World<P>) {
    world.unlink();
    let snapshot = world.domain.snapshot();
    Loomed::spin_until(|| world.domain.has_passed(&snapshot));
    world.reclaim();
}

/// Advances the epoch if it can.
fn advancer<P: Protocol>(world: &World<P>) {
    let snapshot = world.domain.snapshot();
    world.domain.has_passed(&snapshot);
}

/// Leaves the section's id where [`id_poller`] finds it.
fn marked_reader<P: Protocol>(world: &World<P>) {
    let section = world.domain.enter();
    world
        .linked
        .store(section.id().to_bits(), Ordering::Release);
    world.object.data.read();
}

fn id_poller<P: Protocol>(world: &World<P>) {
    let bits = world.linked.load(Ordering::Acquire);
    if bits == 1 {
        return; // not yet marked
    }
    let id = SectionId::from_bits(bits).expect("a section's id");
    Loomed::spin_until(|| world.domain.has_left(id));
    world.reclaim();
}

/// A reader that leaves its section's id, and enters a second section, which must not be mistaken
/// for the first.
fn marked_then_another<P: Protocol>(world: &World<P>) {
    marked_reader(world);
    drop(world.domain.enter());
}

fn barrier<P: Protocol>(world: &World<P>) {
    world.domain.barrier();
}

/// Advances the epoch twice, from outside sections; without this no stamp would have to wait.
fn advancing_reader<P: Protocol>(world: &World<P>) {
    for _ in 0..2 {
        let _section = world.domain.enter();
        if world.linked.load(Ordering::Relaxed) == 1 {
            world.object.data.read();
        }
        advancer(world);
    }
}

/// Asks once; the epoch may have moved on by two.
fn asker<P: Protocol>(world: &World<P>) {
    world.unlink();
    let snapshot = world.domain.snapshot();
    if world.domain.has_passed(&snapshot) {
        world.reclaim();
    }
}

const MOST: usize = 5;

#[test]
fn wait_against_sections() {
    explore::<Standard>(MOST, &[waiter, reader]);
    explore::<Standard>(MOST, &[waiter, reader_twice]);
    explore::<Standard>(MOST, &[waiter, nested_reader]);
}

#[test]
fn wait_against_two_readers() {
    explore::<Standard>(2, &[waiter, reader, reader]);
}

#[test]
fn wait_against_reader_and_waiter() {
    explore::<Standard>(2, &[waiter, reader, second_waiter]);
}

#[test]
fn snapshot_against_sections() {
    explore::<Standard>(MOST, &[poller, reader]);
    explore::<Standard>(2, &[poller, reader, advancer]);
}

#[test]
fn id_against_sections() {
    explore::<Standard>(MOST, &[id_poller, marked_reader]);
    explore::<Standard>(MOST, &[id_poller, marked_then_another]);
}

#[test]
fn call_against_sections() {
    explore::<Standard>(MOST, &[caller, reader]);
    explore::<Standard>(2, &[caller_in_section, reader]);
}

#[test]
fn call_against_reader_one_epoch_ahead() {
    explore::<Standard>(2, &[caller_in_section, reader, advancer]);
}

#[test]
fn barrier_against_caller() {
    explore::<Standard>(2, &[caller, barrier]);
}

/// A CPU that finds the epoch two further looks at no section: their effects come with the epoch,
/// from the CPU that advanced it.
fn two_further() {
    explore::<Standard>(2, &[advancing_reader, asker, reader]);
}

#[test]
fn an_epoch_that_moved_on_hands_on_what_sections_did() {
    two_further();
}

#[test]
fn an_advance_that_orders_nothing_is_caught() {
    let wait = include_str!("../../src/epoch/wait.rs");
    let comments = [
        "Acquire: pairs with the release of the exchange below.",
        "Release: hands on what the scan acquired.",
    ];
    for comment in comments {
        let site = Site::after("epoch/wait.rs", wait, comment);
        must_be_found(Flaw::Relaxed, site, two_further);
    }
}

#[test]
fn a_scan_that_orders_nothing_is_caught() {
    let wait = include_str!("../../src/epoch/wait.rs");
    let scans = || explore::<Standard>(MOST, &[waiter, reader]);
    for comment in [
        "// Pairs with the publication of sections.\n        M::fence(Ordering::SeqCst);\n        \
         // Relaxed: only the value",
        "Acquire: pairs with the release of an exit.",
    ] {
        let site = Site::after("epoch/wait.rs", wait, comment);
        must_be_found(Flaw::Relaxed, site, scans);
    }
}

#[test]
fn early_grace_is_caught() {
    caught::<EarlyGrace>(MOST, &[waiter, reader]);
    caught::<EarlyGrace>(MOST, &[poller, reader]);
    caught::<EarlyGrace>(MOST, &[caller, reader]);
}

#[test]
fn own_stamp_is_caught() {
    caught::<OwnStamp>(2, &[caller_in_section, reader, advancer]);
}

#[test]
fn missing_fence_is_caught() {
    let text = include_str!("../../src/epoch/protocol.rs");
    let comment = "makes the section visible before anything it reads";
    let site = Site::after("epoch/protocol.rs", text, comment);
    must_be_found(Flaw::Relaxed, site, || {
        explore::<Standard>(MOST, &[waiter, reader])
    });
}

#[test]
fn dropped_release_is_caught() {
    let text = include_str!("../../src/epoch/section.rs");
    let after = |comment| Site::after("epoch/section.rs", text, comment);
    let exit = after("// Release: pairs with a scan's acquire load");
    let entry = after("// Release: pairs with the acquire loads of `section`");
    must_be_found(Flaw::Relaxed, exit, || {
        explore::<Standard>(MOST, &[waiter, reader])
    });
    must_be_found(Flaw::Relaxed, exit, || {
        explore::<Standard>(MOST, &[id_poller, marked_reader])
    });
    must_be_found(Flaw::Relaxed, entry, || {
        explore::<Standard>(MOST, &[id_poller, marked_then_another])
    });
}

#[test]
fn relaxed_epoch_is_caught() {
    caught::<RelaxedEpoch>(6, &[waiter, reader_twice]);
}
