//! Hazard pointers under the exhaustive checker, and one flaw for each point on which the protocol
//! rests.

use loomed::Loomed;
use loomed::flaw::{Flaw, Site, must_be_found};
use loomed::loom::model::Builder;
use machine::{Atomic, Atomics, Execute, Ordering, SharedCell, Topology};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::Arc;
use sync::hazard::{Deferred, Domain, Section, Slot};

type Pointer = <Loomed as Atomics>::AtomicPtr;

/// A domain, and two objects; the first is linked.
struct World {
    domain: Domain<Loomed>,
    source: Pointer,
    objects: [Object; 2],
}

#[repr(C)]
struct Object {
    node: Deferred<Loomed>,
    /// Read by readers; written once it is reclaimed. The checker reports a race.
    data: <Loomed as Atomics>::Cell<u32>,
}

// SAFETY: the objects' nodes are accessed as the domain's contract says.
unsafe impl Sync for World {}
// SAFETY: as above.
unsafe impl Send for World {}

impl Object {
    fn new() -> Self {
        Object {
            node: Deferred::new(),
            data: SharedCell::new(0),
        }
    }

    fn address(&self) -> *mut () {
        std::ptr::from_ref(self).cast_mut().cast()
    }
}

impl World {
    fn new(machine: &Loomed) -> Arc<Self> {
        let world = World {
            domain: Domain::new(machine.cpus()),
            source: Pointer::new(null_mut()),
            objects: [Object::new(), Object::new()],
        };
        let world = Arc::new(world);
        let first = world.objects[0].address();
        world.source.store(first, Ordering::Relaxed);
        world
    }

    /// Uses an object that was found.
    fn look(&self, found: *mut ()) {
        let object = self.objects.iter().find(|it| it.address() == found);
        if let Some(object) = object {
            object.data.read();
        }
    }

    /// Unlinks the object that is linked, puts `next` in its place, retires it, and scans.
    fn exchange(&self, next: *mut ()) {
        unsafe fn reclaim(node: *mut Deferred<Loomed>) {
            // SAFETY: the node is the first field of an object that the world keeps until after
            // its domain.
            unsafe { (*node.cast::<Object>()).data.write() };
        }
        let old = self.source.swap(next, Ordering::AcqRel);
        if !old.is_null() {
            // SAFETY: the object is unlinked, and no test links it again.
            unsafe { self.domain.retire(old.cast(), reclaim) };
        }
        self.domain.settle();
    }
}

type Job = fn(&World);

/// All interleavings of these jobs, one a CPU, with at most `preemptions`.
fn explore(preemptions: usize, jobs: &'static [Job]) {
    let mut model = Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let machine = Loomed::new(jobs.len());
        let world = World::new(&machine);
        let job = |&job: &Job| {
            let world = world.clone();
            Box::new(move || job(&world)) as machine::Job
        };
        machine.execute(jobs.iter().map(job).collect());
    });
}

/// Asserts that exploring fails.
fn caught(jobs: &'static [Job]) {
    let run = AssertUnwindSafe(|| explore(MOST, jobs));
    assert!(catch_unwind(run).is_err(), "a broken protocol passed");
}

/// Protects and uses an object by `protect`, which returns what may be used.
fn read_by(
    world: &World,
    protect: impl FnOnce(&World, &Section<'_, Loomed>, &mut Slot<'_, Loomed>) -> *mut (),
) {
    let section = world.domain.enter();
    let mut slot = section.slot();
    let found = protect(world, &section, &mut slot);
    world.look(found);
}

fn reader(world: &World) {
    read_by(world, |world, _, slot| slot.protect(&world.source));
}

/// Lets the first object go by naming another in the same slot.
fn reader_twice(world: &World) {
    read_by(world, |world, _, slot| {
        let found = slot.protect(&world.source);
        world.look(found);
        slot.protect(&world.source)
    });
}

/// Two objects at a time, the second in a section inside.
fn nested_reader(world: &World) {
    let outer = world.domain.enter();
    let mut slot = outer.slot();
    let found = slot.protect(&world.source);
    reader(world);
    world.look(found);
}

/// Passes an object on from one slot to another.
fn passing_reader(world: &World) {
    let section = world.domain.enter();
    let mut slot = section.slot();
    let found = slot.protect(&world.source);
    let mut other = section.slot();
    other.name(found);
    drop(slot);
    world.look(found);
}

/// Looks again before the slot is stored.
fn names_late(world: &World) {
    read_by(world, |world, _, slot| {
        let seen = world.source.load(Ordering::Relaxed);
        Loomed::light_fence();
        let now = world.source.load(Ordering::Acquire);
        slot.name(now);
        if now == seen { now } else { null_mut() }
    });
}

/// Does not look again.
fn looks_once(world: &World) {
    read_by(world, |world, _, slot| {
        let seen = world.source.load(Ordering::Acquire);
        slot.name(seen);
        Loomed::light_fence();
        seen
    });
}

/// Returns the slot before the object is used.
fn lets_go_early(world: &World) {
    read_by(world, |world, section, _| {
        section.slot().protect(&world.source)
    });
}

fn unlinker(world: &World) {
    world.exchange(null_mut());
}

fn replacer(world: &World) {
    world.exchange(world.objects[1].address());
}

/// Replaces the object, and its replacement.
fn replacer_twice(world: &World) {
    replacer(world);
    unlinker(world);
}

const MOST: usize = 4;

#[test]
fn scans_against_readers() {
    explore(MOST, &[unlinker, reader]);
    explore(MOST, &[replacer, reader_twice]);
    explore(3, &[replacer_twice, reader]);
    explore(3, &[replacer, nested_reader]);
    explore(3, &[unlinker, passing_reader]);
}

#[test]
fn scans_of_two_cpus_and_two_readers() {
    explore(2, &[unlinker, reader, reader]);
    explore(2, &[replacer, unlinker, reader]);
}

#[test]
fn a_slot_stored_after_the_second_look_is_caught() {
    caught(&[unlinker, names_late]);
}

#[test]
fn a_missing_second_look_is_caught() {
    caught(&[unlinker, looks_once]);
}

#[test]
fn a_slot_cleared_too_early_is_caught() {
    caught(&[unlinker, lets_go_early]);
}

#[test]
fn a_scan_without_its_ping_is_caught() {
    let text = include_str!("../../src/hazard/retire.rs");
    let comment = "Pairs with the light fence of `Slot::protect`";
    let site = Site::after("hazard/retire.rs", text, comment);
    must_be_found(Flaw::Relaxed, site, || explore(MOST, &[unlinker, reader]));
}

#[test]
fn a_scan_that_does_not_see_a_slot_is_caught() {
    let text = include_str!("../../src/hazard/retire.rs");
    let comment = "Acquire: pairs with the release of the reader's stores";
    let site = Site::after("hazard/retire.rs", text, comment);
    must_be_found(Flaw::Blind, site, || explore(MOST, &[unlinker, reader]));
}

#[test]
fn orders_that_are_missing_are_caught() {
    let section = include_str!("../../src/hazard/section.rs");
    let retire = include_str!("../../src/hazard/retire.rs");
    let reads = |comment| Site::after("hazard/section.rs", section, comment);
    let scans = |comment| Site::after("hazard/retire.rs", retire, comment);
    let flawed = |site, jobs| must_be_found(Flaw::Relaxed, site, || explore(MOST, jobs));
    flawed(
        reads("Pairs with the heavy fence of a scan"),
        &[unlinker, reader],
    );
    flawed(
        reads("Release: pairs with the acquire of a scan, so that it sees"),
        &[unlinker, reader],
    );
    flawed(
        reads("Release: pairs with the acquire of a scan, which may see"),
        &[replacer, reader_twice],
    );
    flawed(
        scans("Acquire: pairs with the release of the reader's stores"),
        &[unlinker, reader],
    );
}
