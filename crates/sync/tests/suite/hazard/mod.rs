//! Hazard pointers on threads: the bound on what is held, and structures that use them.

mod list;
mod map;

use crate::epoch::actor::{Actor, actors};
use hosted::Hosted;
use machine::Topology;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use sync::hazard::{Domain, SLOTS, Shared};

/// The most objects that may be held of a million retired ones while a reader sleeps.
const MOST_HELD: usize = 1_000;

/// A value that counts its drop, and is recognizably dead afterwards.
struct Counted {
    drops: Arc<AtomicUsize>,
    is_alive: AtomicBool,
    number: usize,
}

impl Counted {
    fn new(drops: &Arc<AtomicUsize>, number: usize) -> Self {
        Counted {
            drops: drops.clone(),
            is_alive: AtomicBool::new(true),
            number,
        }
    }

    /// The number of a value that has not been dropped.
    fn number(&self) -> usize {
        assert!(self.is_alive.load(Ordering::Relaxed), "a dropped object");
        self.number
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        assert!(self.is_alive.swap(false, Ordering::Relaxed), "two drops");
        self.drops.fetch_add(1, Ordering::Relaxed);
    }
}

/// A domain, a pointer, and a count of drops.
struct World {
    // Dropped before the domain, as its users are.
    shared: Shared<Hosted, Counted>,
    domain: Domain<Hosted>,
    drops: Arc<AtomicUsize>,
}

impl World {
    fn new(machine: &Hosted) -> Arc<Self> {
        let drops = Arc::default();
        let domain = Domain::new(machine.cpus());
        let shared = Shared::new(&domain, Some(Counted::new(&drops, 0)));
        Arc::new(World {
            shared,
            domain,
            drops,
        })
    }

    fn replace(&self, number: usize) {
        let value = Counted::new(&self.drops, number);
        self.shared.replace(&self.domain, Some(value));
    }

    fn dropped(&self) -> usize {
        self.drops.load(Ordering::Relaxed)
    }
}

/// Lets `reader` sleep in a section that protects the object, until the result is dropped.
fn sleep_in_section(world: &Arc<World>, reader: &Actor) -> Sender<()> {
    let world = world.clone();
    let (wake, sleep) = channel::<()>();
    let (begin, begun) = channel();
    reader.start(move || {
        let section = world.domain.enter();
        let object = section.protect(&world.shared).expect("an object");
        let before = object.number();
        begin.send(()).expect("the test waits");
        sleep.recv().expect_err("only the end wakes");
        assert_eq!(object.number(), before);
    });
    begun.recv().expect("the reader has begun");
    wake
}

fn panics<R>(job: impl FnOnce() -> R) -> String {
    let panic = catch_unwind(AssertUnwindSafe(job)).err();
    let panic = panic.expect("must panic");
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()))
        .expect("a message")
}

#[test]
fn a_sleeping_reader_holds_one_object_and_no_retirer() {
    const RETIRED: usize = 1_000_000;
    let machine = Hosted::new(2);
    let [reader, writer] = actors(&machine);
    let world = World::new(&machine);
    let wake = sleep_in_section(&world, &reader);
    let (shared, batch) = (world.clone(), world.domain.batch());
    let most = writer.run(move || {
        let mut most = 0;
        for number in 1..=RETIRED {
            shared.replace(number);
            most = most.max(shared.domain.pending(1));
        }
        most
    });
    // Every object retired is held or dropped, and the list is scanned when it is a batch.
    assert!(most < batch && batch <= MOST_HELD, "{most}, {batch}");
    assert_eq!(world.dropped() + world.domain.pending(1), RETIRED);
    let shared = world.clone();
    writer.run(move || shared.domain.settle());
    assert_eq!(world.domain.pending(1), 1, "the sleeper's object");
    drop(wake);
    reader.finish();
    let shared = world.clone();
    writer.run(move || shared.domain.settle());
    assert_eq!(world.dropped(), RETIRED);
}

#[test]
fn all_cpus_together_hold_what_is_promised() {
    const CPUS: usize = 4;
    let machine = Hosted::new(CPUS);
    let [reader, writers @ ..] = actors::<CPUS>(&machine);
    let world = World::new(&machine);
    let wake = sleep_in_section(&world, &reader);
    for writer in &writers {
        let shared = world.clone();
        writer.start(move || (1..100_000).for_each(|number| shared.replace(number)));
    }
    writers.iter().for_each(Actor::finish);
    let held: usize = (0..CPUS).map(|cpu| world.domain.pending(cpu)).sum();
    assert!(held <= CPUS * world.domain.batch());
    assert_eq!(world.dropped() + held, 3 * 99_999);
    drop(wake);
    reader.finish();
}

#[test]
fn readers_find_living_objects_while_writers_retire() {
    const CPUS: usize = 4;
    let machine = Hosted::new(CPUS);
    let world = World::new(&machine);
    let actors = actors::<CPUS>(&machine);
    for (cpu, actor) in actors.iter().enumerate() {
        let world = world.clone();
        actor.start(move || {
            for number in 0..100_000 {
                let section = world.domain.enter();
                let first = section.protect(&world.shared);
                let second = section.protect(&world.shared);
                let numbers = [&first, &second].map(|it| it.as_ref().map(|it| it.number()));
                assert!(numbers.iter().all(Option::is_some));
                if cpu % 2 == 0 {
                    world.replace(number);
                }
            }
        });
    }
    actors.iter().for_each(Actor::finish);
    let drops = world.drops.clone();
    drop(actors);
    while Arc::strong_count(&world) > 1 {
        std::thread::yield_now();
    }
    drop(world);
    assert_eq!(drops.load(Ordering::Relaxed), 200_001);
}

#[test]
fn sections_share_the_slots_of_their_cpu() {
    let machine = Hosted::new(1);
    machine.on_cpu(0, || {
        let world = World::new(&machine);
        let (outer, inner) = (world.domain.enter(), world.domain.enter());
        let mut slots: Vec<_> = (0..SLOTS / 2)
            .flat_map(|_| [outer.slot(), inner.slot()])
            .collect();
        let message = panics(|| inner.slot());
        assert_eq!(message, "hazard: all 8 slots of this CPU are in use");
        drop(slots.remove(3));
        drop(inner.protect(&world.shared));
        slots.push(outer.slot());
    });
}

#[test]
fn a_replacement_of_what_has_changed_is_refused() {
    let machine = Hosted::new(1);
    machine.on_cpu(0, || {
        let domain = Domain::<Hosted>::new(machine.cpus());
        let shared = Shared::new(&domain, None);
        let section = domain.enter();
        assert_eq!(shared.replace_if(&section, None, Some(1)), Ok(()));
        assert_eq!(shared.replace_if(&section, None, Some(2)), Err(Some(2)));
        let one = section.protect(&shared).expect("an object");
        assert_eq!(shared.replace_if(&section, Some(&one), Some(3)), Ok(()));
        assert_eq!(
            shared.replace_if(&section, Some(&one), Some(4)),
            Err(Some(4))
        );
        assert_eq!((*one, section.protect(&shared).as_deref()), (1, Some(&3)));
        assert!(shared.replace(&domain, None));
        assert!(section.protect(&shared).is_none());
        assert!(!shared.replace(&domain, None));
    });
}

#[test]
fn another_domains_pointer_is_refused() {
    let machine = Hosted::new(1);
    machine.on_cpu(0, || {
        let (one, other) = (Domain::new(machine.cpus()), Domain::new(machine.cpus()));
        let shared = Shared::<Hosted, u32>::new(&one, Some(1));
        let message = "hazard: another domain's pointer";
        assert_eq!(panics(|| shared.replace(&other, None)), message);
        let section = other.enter();
        assert_eq!(panics(|| section.protect(&shared).is_some()), message);
    });
}

/// Retires another object when it is dropped.
struct Chained {
    world: Arc<World>,
    depth: usize,
}

impl Drop for Chained {
    fn drop(&mut self) {
        self.world.replace(self.depth);
        if self.depth > 0 {
            let world = self.world.clone();
            let depth = self.depth - 1;
            let next = Shared::new(&self.world.domain, Some(Chained { world, depth }));
            next.replace(&self.world.domain, None);
        }
    }
}

#[test]
fn drops_may_retire_more() {
    let machine = Hosted::new(1);
    machine.on_cpu(0, || {
        let world = World::new(&machine);
        let first = Chained {
            world: world.clone(),
            depth: 500,
        };
        Shared::new(&world.domain, Some(first)).replace(&world.domain, None);
        for _ in 0..502 {
            world.domain.settle();
        }
        assert_eq!((world.domain.pending(0), world.dropped()), (0, 501));
    });
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("bang");
    }
}

#[test]
fn a_drop_that_panics_loses_no_other() {
    let machine = Hosted::new(1);
    machine.on_cpu(0, || {
        let world = World::new(&machine);
        world.replace(1);
        Shared::new(&world.domain, Some(Bomb)).replace(&world.domain, None);
        world.replace(2);
        assert_eq!(panics(|| world.domain.settle()), "bang");
        assert_eq!((world.domain.pending(0), world.dropped()), (1, 1));
        world.domain.settle();
        assert_eq!((world.domain.pending(0), world.dropped()), (0, 2));
    });
}

#[test]
fn a_short_list_waits_for_company() {
    let machine = Hosted::new(1);
    machine.on_cpu(0, || {
        let world = World::new(&machine);
        let batch = world.domain.batch();
        (1..batch).for_each(|number| world.replace(number));
        assert_eq!((world.domain.pending(0), world.dropped()), (batch - 1, 0));
        world.replace(batch);
        assert_eq!((world.domain.pending(0), world.dropped()), (0, batch));
        assert_eq!(Domain::<Hosted>::new(Hosted::new(96).cpus()).batch(), 1_536);
        assert!(Domain::<Hosted>::try_new(machine.cpus()).is_ok());
    });
}
