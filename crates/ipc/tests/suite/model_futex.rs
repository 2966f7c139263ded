//! Futexes under all interleavings: a waiter that gives up while a task moves it to another word,
//! and while one wakes it.

use ipc::futex::Name;
use ipc::{Futexes, Kernel, Wait};
use loomed::Loomed;
use loomed::flaw::{Flaw, Site, must_be_found};
use loomed::loom::model::Builder;
use machine::{Atomic, AtomicInt, Atomics, CpuRange, Cpus, Execute, Job, Ordering, Topology};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use sync::sleepq::{GlobalQueue, SleepQueue};
use sync::turnstile::Turnstiles;

/// Two words, each in a bucket of its own.
const WORD: Name = Name { of: 0, at: 0 };
const OTHER: Name = Name { of: 1, at: 0 };

/// Two buckets. The first sleep ends by itself, and the waiter gives up; if it sleeps again, a task
/// has it and must wake it.
struct Impatient {
    sleepers: Arc<GlobalQueue<Loomed>>,
    /// How often the waiter was asked if it waits on. No part of the model.
    looks: AtomicU32,
}

impl Impatient {
    fn of(sleepers: &Arc<GlobalQueue<Loomed>>) -> Self {
        Impatient {
            sleepers: sleepers.clone(),
            looks: AtomicU32::new(0),
        }
    }
}

impl Kernel<Loomed> for Impatient {
    fn sleep(&self, key: *const (), still: impl FnOnce() -> bool) -> bool {
        if self.looks.load(Ordering::Relaxed) > 1 {
            return self.sleepers.sleep(key, still);
        }
        Loomed::relax(0);
        still()
    }

    fn wake(&self, key: *const (), count: usize) -> usize {
        self.sleepers.wake(key, count)
    }

    fn futex_buckets(&self, _cpus: usize) -> usize {
        2
    }
}

type Number = <Loomed as Atomics>::AtomicU32;

struct World {
    sleepers: Arc<GlobalQueue<Loomed>>,
    futexes: Futexes<Loomed>,
    /// Wake-ups that were given, and that waiters have got.
    given: Number,
    got: Number,
}

impl World {
    fn new(cpus: CpuRange) -> Self {
        let sleepers = Arc::new(GlobalQueue::new());
        World {
            futexes: Futexes::new(&Impatient::of(&sleepers), cpus),
            sleepers,
            given: Atomic::new(0),
            got: Atomic::new(0),
        }
    }

    fn give_up(&self) {
        let (kernel, always) = (Impatient::of(&self.sleepers), || Ok::<_, ()>(true));
        let waits = || kernel.looks.fetch_add(1, Ordering::Relaxed) == 0;
        let wait = self.futexes.wait_while(&kernel, WORD, waits, always);
        if wait == Ok(Wait::Woken) {
            self.got.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn wake(&self, name: Name, count: usize) -> usize {
        self.futexes
            .wake(&Impatient::of(&self.sleepers), name, count)
    }

    fn wake_one(&self, name: Name) {
        let woken = self.wake(name, 1);
        self.given.fetch_add(woken as u32, Ordering::Relaxed);
    }

    fn shift(&self, names: [Name; 2], counts: [usize; 2]) {
        let (kernel, always) = (Impatient::of(&self.sleepers), || Ok::<_, ()>(true));
        let requeued = self.futexes.requeue(&kernel, names, counts, always);
        let [woken, _] = requeued.expect("no error").expect("the value holds");
        self.given.fetch_add(woken as u32, Ordering::Relaxed);
    }

    /// Checks that no task waits, and that each wake-up has reached one.
    fn end(&self) {
        for name in [WORD, OTHER] {
            let left = self.wake(name, usize::MAX);
            assert_eq!(left, 0, "a waiter that has gone");
        }
        let [given, got] = [&self.given, &self.got].map(|count| count.load(Ordering::Relaxed));
        assert_eq!(given, got, "wake-ups were lost");
    }
}

fn give_up(world: &World) {
    world.give_up();
}

fn wake(world: &World) {
    world.wake_one(WORD);
}

fn wake_other(world: &World) {
    world.wake_one(OTHER);
}

fn there(world: &World) {
    world.shift([WORD, OTHER], [0, 1]);
}

fn there_and_back(world: &World) {
    there(world);
    world.shift([OTHER, WORD], [0, 1]);
}

fn one_each(world: &World) {
    world.shift([WORD, OTHER], [1, 1]);
}

fn model(preemptions: usize, jobs: &'static [fn(&World)]) -> impl FnOnce() {
    move || {
        let mut builder = Builder::new();
        builder.preemption_bound = Some(preemptions);
        builder.max_branches = 20_000;
        builder.check(move || {
            // Made before the jobs, so that the checker sees them as tables that are made once.
            Turnstiles::<Loomed>::global();
            let machine = Loomed::new(jobs.len());
            let world = Arc::new(World::new(machine.cpus()));
            let start = |job: &'static fn(&World)| {
                let world = world.clone();
                Box::new(move || job(&world)) as Job
            };
            machine.execute(jobs.iter().map(start).collect());
            let last: Vec<Job> = vec![Box::new(move || world.end())];
            machine.execute(last);
        });
    }
}

#[test]
fn a_waiter_that_gives_up_loses_no_wake_up() {
    model(2, &[give_up, wake])();
    model(1, &[give_up, give_up, wake])();
}

#[test]
fn a_waiter_gives_up_while_it_is_moved() {
    model(2, &[give_up, there])();
    model(2, &[give_up, there_and_back])();
}

#[test]
fn a_waiter_gives_up_while_it_is_moved_and_woken() {
    model(1, &[give_up, there, wake_other])();
    model(1, &[give_up, give_up, one_each])();
}

#[test]
fn a_wake_up_that_orders_nothing_is_found() {
    let text = include_str!("../../src/futex.rs");
    for comment in [
        "Release: pairs with the acquire in `wait`.",
        "Acquire: pairs with the release in `wake`;",
    ] {
        let site = Site::after("src/futex.rs", text, comment);
        must_be_found(Flaw::Relaxed, site, model(2, &[give_up, wake]));
    }
}
