//! The two handshakes under the checker: parking and unparking, going idle and enqueueing. Every
//! memory ordering in them is needed: a model fails without it.

use loomed::Loomed;
use loomed::flaw::{Flaw, Site, must_be_found};
use loomed::loom::model::Builder;
use machine::{Atomic, Atomics, Execute, Job, Ordering, SharedCell, Tasks, Topology};
use sched::best::idle::{Idle, Waiting};
use sched::state::State;
use std::sync::Arc;
use sync::Mutex;
use sync::spin::Ticket;

type Word = <Loomed as Atomics>::AtomicU32;
type Plain = <Loomed as Atomics>::Cell<u32>;

/// Explores the schedules with at most this many preemptions.
fn explore(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// A task that ends when all its words are set, and sleeps while they are not.
struct Task {
    state: State<Loomed>,
    /// Set by the wakers, which order them by the unpark only.
    words: Vec<Word>,
    /// State saved when the task leaves a CPU: only the CPU that runs the task may access it.
    context: Plain,
    ended: Word,
}

impl Task {
    fn new(wakers: usize) -> Self {
        Task {
            state: State::new(),
            words: (0..wakers).map(|_| Word::new(0)).collect(),
            context: Plain::new(0),
            ended: Word::new(0),
        }
    }

    /// The calling CPU runs the task until it parks or ends. (The switch to another context and
    /// back is left out: the CPU settles the task at once.)
    fn run(&self) {
        loop {
            // SAFETY: the state is to give the task to one CPU at a time; the checker finds races.
            unsafe { *self.context.write() += 1 };
            if self
                .words
                .iter()
                .all(|word| word.load(Ordering::Relaxed) == 1)
            {
                self.ended.store(1, Ordering::Relaxed);
                return;
            }
            if !self.state.take_permit() && self.state.settle() {
                return;
            }
        }
    }

    fn wake(&self, waker: usize) {
        self.words[waker].store(1, Ordering::Relaxed);
        if self.state.unpark(1) {
            self.run();
        }
    }
}

fn parks(wakers: usize, preemptions: usize) {
    explore(preemptions, move || {
        let task = Arc::new(Task::new(wakers));
        let sleeper = task.clone();
        let mut jobs: Vec<Job> = vec![Box::new(move || sleeper.run())];
        for waker in 0..wakers {
            let task = task.clone();
            jobs.push(Box::new(move || task.wake(waker)));
        }
        Loomed::new(wakers + 1).execute(jobs);
        assert_eq!(task.ended.load(Ordering::Relaxed), 1, "it sleeps for ever");
    });
}

#[test]
fn a_task_runs_once_and_does_not_sleep_for_ever() {
    parks(1, 5);
    parks(2, 3);
}

#[test]
fn every_ordering_of_the_state_is_needed() {
    let text = include_str!("../../src/state.rs");
    for comment in [
        "Only the task itself takes its permit",
        "Release: the waker that finds PARKED",
        "The other can only have been an `unpark`",
        "Release: pairs with the acquire of the one who takes",
    ] {
        let site = Site::after("src/state.rs", text, comment);
        must_be_found(Flaw::Relaxed, site, || parks(2, 3));
    }
}

/// A task ends while a stale name is unparked; the next one in its place parks.
#[test]
fn a_stale_name_never_wakes_the_next_task() {
    explore(5, || {
        let state = Arc::new(State::<Loomed>::new());
        let other = state.clone();
        let ends: Job = Box::new(move || {
            state.end();
            assert!(!state.take_permit(), "a permit for the one before");
            assert!(state.settle(), "a permit for the one before");
        });
        let unparks: Job = Box::new(move || assert!(!other.unpark(1), "woken by a stale name"));
        Loomed::new(2).execute(vec![ends, unparks]);
    });
}

/// One CPU takes the items that others enqueue, and waits for an interrupt while there are none.
struct Place {
    idle: Idle<Loomed>,
    waiting: Waiting<Loomed>,
    queue: Mutex<Loomed, Ticket<Loomed>, u32>,
    kicked: Word,
    owner: Mutex<Loomed, Ticket<Loomed>, Option<<Loomed as Tasks>::Task>>,
}

fn take(place: &Place, mut wanted: u32) {
    *place.owner.lock() = Some(Loomed::current_task());
    while wanted > 0 {
        let mut queue = place.queue.lock();
        let taken = *queue;
        (0..taken).for_each(|_| place.waiting.remove());
        *queue = 0;
        drop(queue);
        wanted -= taken;
        if taken > 0 {
            place.idle.end(0);
            continue;
        }
        if place.idle.begin(0, || place.waiting.get() > 0) {
            while place.kicked.swap(0, Ordering::Acquire) == 0 {
                Loomed::park();
            }
        }
    }
}

fn enqueue(place: &Place) {
    let mut queue = place.queue.lock();
    *queue += 1;
    place.waiting.announce();
    drop(queue);
    if place.idle.claim(0) {
        place.kicked.swap(1, Ordering::Release);
        let owner = *place.owner.lock();
        owner.into_iter().for_each(Loomed::unpark);
    }
}

fn idles(enqueuers: usize, preemptions: usize) {
    explore(preemptions, move || {
        let machine = Loomed::new(enqueuers + 1);
        let place = Arc::new(Place {
            idle: Idle::new(machine.cpus()),
            waiting: Waiting::new(),
            queue: Mutex::new(0),
            kicked: Word::new(0),
            owner: Mutex::new(None),
        });
        let taker = place.clone();
        let mut jobs: Vec<Job> = vec![Box::new(move || take(&taker, enqueuers as u32))];
        for _ in 0..enqueuers {
            let place = place.clone();
            jobs.push(Box::new(move || enqueue(&place)));
        }
        machine.execute(jobs);
    });
}

#[test]
fn no_task_is_forgotten() {
    idles(1, 3);
    idles(2, 1);
}

#[test]
fn both_fences_are_needed() {
    let text = include_str!("../../src/best/idle.rs");
    for comment in [
        "A fence follows: pairs with the one in `Waiting::announce`",
        "A fence follows: pairs with the one in `Idle::begin`",
    ] {
        let site = Site::after("src/best/idle.rs", text, comment);
        must_be_found(Flaw::Relaxed, site, || idles(1, 3));
    }
}
