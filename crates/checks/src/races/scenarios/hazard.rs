//! Hazard pointers: an object that a reader has protected is not reclaimed, and no more are held
//! than readers may protect.

use super::pause;
use crate::races::play::{Play, Scenario, Stage};
use machine::{Atomic, Atomics, Ordering, SharedCell, Topology};
use sim::Sim;
use sync::Padded;
use sync::hazard::{Deferred, Domain, Slot};

/// Rounds of each CPU, which retires at most this many objects.
const ROUNDS: usize = 16;
/// Lines of noise.
const NOISE: usize = 4;

type Pointer = <Sim as Atomics>::AtomicPtr;

/// How a reader protects what `source` names.
pub trait Protect: 'static {
    /// Returns what the reader may use.
    fn protect(slot: &mut Slot<'_, Sim>, source: &Pointer) -> *mut () {
        slot.protect(source)
    }
}

/// As the library does.
enum Sound {}

impl Protect for Sound {}

/// The sound protocol.
pub fn all() -> Vec<Scenario> {
    vec![named::<Sound>("hazard.retire")]
}

/// Objects come and go, and readers protect them by `P`.
pub fn named<P: Protect>(name: &str) -> Scenario {
    Scenario::new(name, build::<P>).on(2..=6)
}

/// One object is in place; readers protect it, and the task that replaces it retires the old one.
struct World {
    domain: Domain<Sim>,
    /// The object in place.
    current: Pointer,
    objects: Box<[Object]>,
    /// Cache lines that all CPUs write, so that the store of a slot that follows is late, too.
    noise: [Padded<<Sim as Atomics>::AtomicU64>; NOISE],
}

#[repr(C)]
struct Object {
    /// The first field, so that a pointer to it is also one to the object.
    node: Deferred<Sim>,
    /// How often the object has been reclaimed: a plain word, which readers read.
    reclaimed: <Sim as Atomics>::Cell<u32>,
}

impl Object {
    fn address(&self) -> *mut () {
        std::ptr::from_ref(self).cast_mut().cast()
    }
}

fn build<P: Protect>(stage: &Stage) -> Play {
    let object = |_| Object {
        node: Deferred::new(),
        reclaimed: SharedCell::new(0),
    };
    let jobs = stage.jobs;
    let objects: Box<[_]> = (0..=jobs * ROUNDS).map(object).collect();
    let world = World {
        domain: Domain::new(stage.machine.cpus()),
        current: Atomic::new(objects[jobs * ROUNDS].address()),
        objects,
        noise: std::array::from_fn(|_| Padded(Atomic::new(0))),
    };
    let cpus = 0..stage.machine.cpus().len();
    Play::new(stage, world, job::<P>, move |world| {
        // A scan keeps what slots name, and a reader uses two.
        for cpu in cpus.clone() {
            let held = world.domain.pending(cpu);
            assert!(held <= 2 * cpus.len(), "CPU {cpu} holds {held}");
        }
    })
}

fn job<P: Protect>(world: &World, cpu: usize) {
    for round in 0..ROUNDS {
        match sim::dice(4) {
            0 | 1 => world.retire(cpu * ROUNDS + round),
            2 => {
                let section = world.domain.enter();
                let mut slot = section.slot();
                let found = P::protect(&mut slot, &world.current);
                world.read::<P>();
                world.look(found);
            }
            _ => world.read::<P>(),
        }
    }
}

impl World {
    /// Protects the object that is in place, and uses it for a while.
    fn read<P: Protect>(&self) {
        let noise = &self.noise[..sim::dice(1 + NOISE as u64) as usize];
        noise
            .iter()
            .for_each(|line| line.store(1, Ordering::Relaxed));
        let section = self.domain.enter();
        let mut slot = section.slot();
        let found = P::protect(&mut slot, &self.current);
        self.look(found);
    }

    /// Uses an object that is protected.
    fn look(&self, found: *mut ()) {
        // SAFETY: the pointers in `current` are those of the world's objects.
        let object = unsafe { &*found.cast::<Object>() };
        for _ in 0..=sim::dice(3) {
            // SAFETY: the machine runs one CPU at a time, so this read is atomic.
            let reclaimed = unsafe { *object.reclaimed.read() };
            assert_eq!(reclaimed, 0, "reclaimed while a reader protected it");
            pause(300);
        }
    }

    /// Puts object `new` in place, retires the old one, and scans.
    fn retire(&self, new: usize) {
        unsafe fn run(node: *mut Deferred<Sim>) {
            // SAFETY: the node is an object's first field, and the objects stay.
            let reclaimed = unsafe { &*node.cast::<Object>() }.reclaimed.write();
            // SAFETY: the machine runs one CPU at a time, so no other code accesses the count.
            unsafe {
                assert_eq!(*reclaimed, 0, "reclaimed twice");
                *reclaimed += 1;
            }
        }
        let old = self
            .current
            .swap(self.objects[new].address(), Ordering::AcqRel);
        // SAFETY: the object was in place, and is not put there again; it stays until the world
        // goes.
        unsafe { self.domain.retire(old.cast(), run) };
        self.domain.settle();
    }
}
