//! Tasks begin, wait, go on elsewhere and end, however many there are.

use crate::support;

use crate::fifo;

use fifo::Fifo;
use machine::{Atomic, AtomicInt, Clock, Cpus, Locals, Ordering, Pinned, Tasks};
use sched::Best;
use sim::Sim;
use std::cell::Cell;
use std::sync::Arc;
use support::{
    MICRO, MILLI, best, finish, machine, quiet, shared, spread, wait_for, with_delays, words,
};
use sync::EMBEDDER;

#[test]
fn more_tasks_than_cpus_all_end() {
    for seed in 0..4 {
        let sim = machine::<Best<Sim>>(with_delays(3, seed));
        let ended = words(&sim, 1);
        spread(&sim, 100, |index| {
            let ended = ended.clone();
            Box::new(move || {
                for round in 0..5 {
                    sim::compute(((index + round) % 7 * 100) as f64);
                    match (index + round) % 3 {
                        0 => Sim::yield_now(),
                        1 => Sim::sleep_until(Sim::now() + 5 * MICRO),
                        _ => {}
                    }
                }
                ended[0].fetch_add(1, Ordering::Relaxed);
            })
        });
        assert_eq!(ended[0].load(Ordering::Relaxed), 100, "seed {seed}");
    }
}

/// Each task waits for the one before it in a ring, while others wake it spuriously.
#[test]
fn no_permit_is_lost() {
    const TASKS: usize = 10;
    const ROUNDS: u64 = 30;
    for seed in 0..30 {
        let sim = machine::<Best<Sim>>(with_delays(1 + seed as usize % 4, seed));
        let turns = words(&sim, TASKS);
        let names = shared(&sim, || {
            let none = |_| std::sync::Mutex::new(None);
            (0..TASKS).map(none).collect::<Vec<_>>()
        });
        spread(&sim, TASKS, |me| {
            let (turns, names) = (turns.clone(), names.clone());
            Box::new(move || {
                *names[me].lock().expect("no panic") = Some(Sim::current_task());
                let wake = |other: usize| {
                    let name = *names[other].lock().expect("no panic");
                    name.into_iter().for_each(Sim::unpark);
                };
                let next = (me + 1) % TASKS;
                for round in 1..=ROUNDS {
                    if me > 0 || round > 1 {
                        wait_for(&turns[me], round - u64::from(me == 0));
                    }
                    wake(sim::dice(TASKS as u64) as usize);
                    if sim::dice(4) == 0 {
                        Sim::sleep_until(Sim::now() + sim::dice(3_000));
                    }
                    turns[next].fetch_add(1, Ordering::Release);
                    wake(next);
                }
            })
        });
        let sum: u64 = turns.iter().map(|turn| turn.load(Ordering::Relaxed)).sum();
        assert_eq!(sum, TASKS as u64 * ROUNDS, "seed {seed}");
    }
}

/// A permit from before a sleep, or during it, ends the next park.
#[test]
fn a_sleeper_keeps_its_permit() {
    let sim = best(2);
    let name = shared(&sim, || std::sync::Mutex::new(None));
    let sleeper = {
        let name = name.clone();
        move || {
            *name.lock().expect("no panic") = Some(Sim::current_task());
            let end = Sim::now() + MILLI;
            Sim::sleep_until(end);
            assert!(Sim::now() >= end, "the permit has ended the sleep");
            // Without a permit this would wait forever.
            Sim::park();
        }
    };
    let waker = move || {
        Sim::sleep_until(Sim::now() + 300 * MICRO);
        let name = name.lock().expect("no panic").expect("it sleeps");
        Sim::unpark(name);
    };
    finish(&sim, vec![(0, Box::new(sleeper)), (1, Box::new(waker))]);
}

#[test]
fn unparking_a_task_that_has_ended_has_no_effect() {
    let sim = best(1);
    let old = sim.on_cpu(0, Sim::current_task);
    // The new task has the place of the old one.
    let parked = words(&sim, 1);
    let waits = parked.clone();
    let new = move || {
        assert!(Sim::current_task() != old, "a name is given twice");
        Sim::unpark(old);
        let before = Sim::now();
        Sim::unpark(old);
        waits[0].store(1, Ordering::Relaxed);
        Sim::park();
        assert!(
            Sim::now() - before >= MILLI,
            "the old name is the new task's"
        );
    };
    let names: Arc<std::sync::Mutex<Option<sim::Task>>> = Arc::default();
    let tell = names.clone();
    let new = move || {
        *tell.lock().expect("no panic") = Some(Sim::current_task());
        new();
    };
    let waker = move || {
        Sim::sleep_until(Sim::now() + 2 * MILLI);
        assert_eq!(parked[0].load(Ordering::Relaxed), 1);
        Sim::unpark(old);
        Sim::sleep_until(Sim::now() + MILLI);
        Sim::unpark(names.lock().expect("no panic").expect("it has begun"));
    };
    finish(&sim, vec![(0, Box::new(new)), (0, Box::new(waker))]);
}

/// Tasks that move keep their words, and are told whenever their space may not be active.
#[test]
fn a_task_takes_its_words_along() {
    let best: fn(_) -> Sim = machine::<Best<Sim>>;
    // Tasks go to any CPU, and come back to one that has run no other.
    let fifo: fn(_) -> Sim = machine::<Fifo<Sim>>;
    for (tasks, make) in [(5, best), (12, best), (2, fifo), (3, fifo)] {
        let sim = make(with_delays(4, 5));
        let active = words(&sim, 4);
        let moves = words(&sim, tasks);
        spread(&sim, tasks, |me| {
            let (active, moves) = (active.clone(), moves.clone());
            Box::new(move || moves[me].store(wander(&active, me), Ordering::Relaxed))
        });
        let moved = moves.iter().filter(|m| m.load(Ordering::Relaxed) > 0);
        assert!(moved.count() > 0, "no task has moved");
    }
}

/// A task sleeps and computes, in a space of its own; returns how often it has moved.
fn wander(active: &[support::Word], me: usize) -> u64 {
    let space = Space::new(active, me);
    space.enter();
    let mut moves = 0;
    let (mut last, mut told) = (Sim::pin().cpu().index(), 0);
    for _ in 0..60 {
        Sim::sleep_until(Sim::now() + sim::dice(20) * MICRO);
        sim::compute(sim::dice(20_000) as f64);
        let pin = Sim::pin();
        let cpu = pin.cpu().index();
        let now_told = space.check();
        drop(pin);
        if cpu != last {
            moves += 1;
            assert!(
                now_told > told,
                "on another CPU, the space was not activated"
            );
        }
        (last, told) = (cpu, now_told);
    }
    space.leave();
    moves
}

/// An "address space": a word for each CPU says which task's is active there.
struct Space<'a> {
    active: &'a [support::Word],
    owner: u64,
    /// How often it was activated at a switch.
    told: Cell<usize>,
}

impl<'a> Space<'a> {
    fn new(active: &'a [support::Word], me: usize) -> Self {
        Space {
            active,
            owner: me as u64 + 1,
            told: Cell::new(0),
        }
    }

    fn enter(&self) {
        Sim::with_locals(|locals| {
            let word = std::ptr::from_ref(self).expose_provenance();
            locals.words[EMBEDDER].set(word);
            locals.at_switch.set(Some(Self::at_switch));
        });
        self.activate();
    }

    fn leave(&self) {
        Sim::with_locals(|locals| {
            locals.at_switch.set(None);
            locals.words[EMBEDDER].set(0);
        });
    }

    fn at_switch(locals: &Locals) {
        assert!(Sim::pins() > 0, "not pinned");
        let word = locals.words[EMBEDDER].get();
        // SAFETY: `wander` keeps the space, on its task's stack, until `leave`.
        let space = unsafe { &*std::ptr::with_exposed_provenance::<Space>(word) };
        space.activate();
        space.told.set(space.told.get() + 1);
    }

    fn activate(&self) {
        let pin = Sim::pin();
        self.active[pin.cpu().index()].store(self.owner, Ordering::Relaxed);
    }

    /// The caller is pinned. Returns how often it was told.
    fn check(&self) -> usize {
        let here = self.active[Sim::pin().cpu().index()].load(Ordering::Relaxed);
        assert_eq!(here, self.owner, "another task's space is active");
        self.told.get()
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let mut options = with_delays(4, seed);
        options.spread = 500;
        let sim = machine::<Best<Sim>>(options);
        let sums = words(&sim, 20);
        let time = spread(&sim, 20, |me| {
            let sums = sums.clone();
            Box::new(move || {
                for _ in 0..20 {
                    sim::compute(sim::dice(30_000) as f64);
                    match sim::dice(3) {
                        0 => Sim::yield_now(),
                        1 => Sim::sleep_until(Sim::now() + sim::dice(9_000)),
                        _ => {}
                    }
                    let cpu = Sim::pin().cpu().index() as u64;
                    sums[me].store(
                        sums[me].load(Ordering::Relaxed) * 5 + cpu,
                        Ordering::Relaxed,
                    );
                }
            })
        });
        let sums: Vec<u64> = sums.iter().map(|s| s.load(Ordering::Relaxed)).collect();
        (time, sums, sim.times(), sim.counts().accesses)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).1, run(2).1);
}

#[test]
fn a_run_does_not_depend_on_how_far_cpus_run_ahead() {
    let run = |lookahead| {
        let mut options = quiet(4, 7);
        options.lookahead = lookahead;
        let sim = machine::<Best<Sim>>(options);
        let time = spread(&sim, 10, |_| {
            Box::new(|| {
                for _ in 0..20 {
                    sim::compute(sim::dice(30_000) as f64);
                    Sim::sleep_until(Sim::now() + sim::dice(9_000));
                }
            })
        });
        (time, sim.times(), sim.counts().accesses)
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn a_calm_machine_neither_delays_nor_preempts() {
    let sim = machine::<Best<Sim>>(sim::Options {
        preempt: Some(sim::Preempt { one_in: 2 }),
        ..with_delays(1, 0)
    });
    let word = words(&sim, 1);
    let run = || {
        let (before, word) = (sim.counts().preemptions, word.clone());
        let job = move || (0..100).for_each(|_| _ = word[0].load(Ordering::Relaxed));
        let time = finish(&sim, vec![(0, Box::new(job))]);
        (time, sim.counts().preemptions - before)
    };
    let (restless, preempted) = run();
    sim.calm();
    let (calm, never) = run();
    assert!(preempted > 0 && never == 0, "{preempted}, then {never}");
    assert!(calm < restless / 10, "{restless} ns, then {calm}");
}
