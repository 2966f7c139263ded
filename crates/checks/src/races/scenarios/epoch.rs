//! Epochs: after a wait no earlier section is open, and callbacks run once and not too early.

use super::pause;
use crate::races::play::{Play, Scenario, Stage};
use machine::{Atomic, AtomicInt, Atomics, Cpus, Ordering, SharedCell, Topology};
use sim::Sim;
use sync::Padded;
use sync::epoch::{Deferred, Domain, Options, Protocol, Standard};

/// Rounds of each CPU, which retires at most this many objects.
const ROUNDS: usize = 16;
/// Callbacks that may be pending on a CPU.
const PENDING: usize = 3;
/// Lines of noise.
const NOISE: usize = 4;

/// The sound protocol.
pub fn all() -> Vec<Scenario> {
    vec![named::<Standard>("epoch.retire")]
}

/// Objects come and go, with the protocol `P`.
pub fn named<P: Protocol>(name: &str) -> Scenario {
    Scenario::new(name, build::<P>).on(2..=6)
}

/// One object is in place; readers use it in sections, and the task that replaces it
/// retires the old one.
struct World<P: Protocol> {
    domain: Domain<Sim, P>,
    /// The index of the object in place.
    current: <Sim as Atomics>::AtomicUsize,
    objects: Box<[Object]>,
    /// Cache lines that all CPUs write. A store to a line that no other CPU uses is soon visible;
    /// the store that opens a section is not if it follows stores to these lines.
    noise: [Padded<<Sim as Atomics>::AtomicU64>; NOISE],
}

#[repr(C)]
struct Object {
    /// The first field, so that a pointer to it is also one to the object.
    node: Deferred<Sim>,
    /// How often the object has been retired: a plain word, which readers read.
    retired: <Sim as Atomics>::Cell<u32>,
    /// 1 once its callback has been requested.
    called: <Sim as Atomics>::AtomicU32,
}

fn build<P: Protocol>(stage: &Stage) -> Play {
    let object = |_| Object {
        node: Deferred::new(),
        retired: SharedCell::new(0),
        called: Atomic::new(0),
    };
    let options = Options {
        limit: PENDING,
        on_stall: None,
    };
    let jobs = stage.jobs;
    let world = World::<P> {
        domain: Domain::with_protocol(stage.machine.cpus(), options),
        current: Atomic::new(jobs * ROUNDS),
        objects: (0..=jobs * ROUNDS).map(object).collect(),
        noise: std::array::from_fn(|_| Padded(Atomic::new(0))),
    };
    Play::new(stage, world, job::<P>, |world| {
        world.domain.barrier();
        for object in &world.objects {
            // SAFETY: all CPUs but this have ended.
            let retired = unsafe { *object.retired.read() };
            let called = object.called.load(Ordering::Relaxed);
            assert!(retired >= called, "a callback has not run");
        }
    })
}

fn job<P: Protocol>(world: &World<P>, cpu: usize) {
    for round in 0..ROUNDS {
        match sim::dice(5) {
            0 => world.retire(cpu * ROUNDS + round, World::wait),
            1 => world.retire(cpu * ROUNDS + round, World::poll),
            2 => world.retire(cpu * ROUNDS + round, World::call),
            3 => {
                let _outer = world.domain.enter();
                world.read();
                world.read();
            }
            _ => world.read(),
        }
    }
}

impl<P: Protocol> World<P> {
    /// Uses the object that is in place, for a while.
    fn read(&self) {
        let noise = &self.noise[..sim::dice(1 + NOISE as u64) as usize];
        noise
            .iter()
            .for_each(|line| line.store(1, Ordering::Relaxed));
        let _section = self.domain.enter();
        let object = &self.objects[self.current.load(Ordering::Acquire)];
        for _ in 0..=sim::dice(3) {
            // SAFETY: the machine runs one CPU at a time, so this read is atomic.
            let retired = unsafe { *object.retired.read() };
            assert_eq!(retired, 0, "retired while a reader was inside");
            pause(300);
        }
    }

    /// Puts `new` in place, and gives the old object to `how`.
    fn retire(&self, new: usize, how: fn(&Self, &Object)) {
        let old = self.current.swap(new, Ordering::AcqRel);
        how(self, &self.objects[old]);
    }

    fn wait(&self, object: &Object) {
        self.domain.wait();
        object.retire();
    }

    fn poll(&self, object: &Object) {
        let snapshot = self.domain.snapshot();
        Sim::spin_until(|| self.domain.has_passed(&snapshot));
        object.retire();
    }

    fn call(&self, object: &Object) {
        unsafe fn run(node: *mut Deferred<Sim>) {
            // SAFETY: the node is an object's first field, and the objects stay.
            unsafe { &*node.cast::<Object>() }.retire();
        }
        object.called.fetch_add(1, Ordering::Relaxed);
        let node = std::ptr::from_ref(object).cast_mut().cast();
        // SAFETY: the object cannot be found any more, this is its only call, and it
        // stays until the world goes, after the barrier.
        unsafe { self.domain.call(node, run) };
    }
}

impl Object {
    fn retire(&self) {
        let retired = self.retired.write();
        // SAFETY: the machine runs one CPU at a time, so no other code accesses the count.
        unsafe {
            assert_eq!(*retired, 0, "retired twice");
            *retired += 1;
        }
    }
}
