//! Contexts and interrupts, by way of the smallest scheduler.

use crate::{Atomic, Contexts, CpuRange, Job, Ordering, Pinned, Scheduler, SharedCell, TaskName};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

/// Nanoseconds after which a running task makes room for a waiting one.
const SLICE: u64 = 100_000;

/// The smallest scheduler: one queue, first come, first served, and one lock, which is held across
/// a switch and released by the context that goes on.
pub struct Smallest<M: Contexts> {
    cpus: CpuRange,
    /// 1 while locked.
    locked: M::AtomicU32,
    /// Guarded by the lock.
    state: M::Cell<State<M::Context>>,
}

struct State<C> {
    ready: VecDeque<Task<C>>,
    /// The parked tasks, by name.
    parked: BTreeMap<u64, C>,
    permits: BTreeSet<u64>,
    /// The sleeping tasks, by the time.
    sleepers: BTreeSet<(u64, u64)>,
    /// The CPUs: the tasks that they run, and their own contexts.
    running: Vec<Option<u64>>,
    idle: Vec<Option<C>>,
    /// CPUs that wait for an interrupt.
    waiting: BTreeSet<usize>,
    names: u64,
}

struct Task<C> {
    name: u64,
    context: C,
    since: u64,
}

impl<M: Contexts> Smallest<M> {
    /// The scheduler of these CPUs.
    pub fn new(cpus: CpuRange) -> Self {
        Smallest {
            cpus,
            locked: M::AtomicU32::new(0),
            state: M::Cell::new(State {
                ready: VecDeque::new(),
                parked: BTreeMap::new(),
                permits: BTreeSet::new(),
                sleepers: BTreeSet::new(),
                running: vec![None; cpus.len()],
                idle: vec![None; cpus.len()],
                waiting: BTreeSet::new(),
                names: 0,
            }),
        }
    }

    /// Calls `f` under the lock, with the index of the CPU.
    fn with<R>(&self, f: impl FnOnce(&mut State<M::Context>, usize) -> R) -> R {
        let pin = M::pin();
        let cpu = self.cpus.index_of(pin.cpu());
        self.lock();
        // SAFETY: the state is touched only under the lock.
        let result = f(unsafe { &mut *self.state.write() }, cpu);
        self.unlock();
        result
    }

    fn lock(&self) {
        // Acquire: pairs with the release in `unlock`.
        M::spin_until(|| self.locked.swap(1, Ordering::Acquire) == 0);
    }

    /// Completes the switch to the calling context.
    fn arrive(&self) {
        self.unlock();
        M::with_locals(|locals| {
            if let Some(at_switch) = locals.at_switch.get() {
                at_switch(locals);
            }
        });
    }

    fn unlock(&self) {
        // Release: pairs with the acquire in `lock`.
        self.locked.store(0, Ordering::Release);
    }

    /// The calling task leaves its CPU if `leaves` says so, which puts it where it waits.
    fn leave(&self, leaves: impl FnOnce(&mut State<M::Context>, Task<M::Context>) -> bool) {
        let pin = M::pin();
        let cpu = self.cpus.index_of(pin.cpu());
        self.lock();
        // SAFETY: this task has locked the state.
        let state = unsafe { &mut *self.state.write() };
        let name = state.running[cpu].expect("a task runs");
        let me = Task {
            name,
            context: M::context(),
            since: M::now(),
        };
        if leaves(state, me) {
            let (next, since) = state.next(cpu);
            // SAFETY: tasks in the queue run nowhere, and nor does this CPU's own context.
            unsafe { M::switch(next, since) };
            self.arrive();
        } else {
            self.unlock();
        }
        drop(pin);
    }
}

impl<C: Copy> State<C> {
    /// The context that `cpu` continues with, and since when it has been ready.
    fn next(&mut self, cpu: usize) -> (C, u64) {
        let next = self.ready.pop_front();
        self.running[cpu] = next.as_ref().map(|task| task.name);
        let own = self.idle[cpu].expect("each CPU has its own");
        next.map_or((own, 0), |task| (task.context, task.since))
    }

    /// Makes a task ready; returns a waiting CPU to be told, if there is one.
    fn wake(&mut self, name: u64, context: C, since: u64) -> Option<usize> {
        self.ready.push_back(Task {
            name,
            context,
            since,
        });
        self.waiting.pop_first()
    }

    /// Gives a permit; returns a waiting CPU to be told, if there is one.
    fn unpark(&mut self, name: u64, now: u64) -> Option<usize> {
        match self.parked.remove(&name) {
            Some(context) => self.wake(name, context, now),
            None => {
                self.permits.insert(name);
                None
            }
        }
    }
}

impl<M: Contexts> Scheduler for Smallest<M> {
    fn run(&'static self) -> ! {
        self.with(|state, cpu| state.idle[cpu] = Some(M::context()));
        loop {
            let pin = M::pin();
            let cpu = self.cpus.index_of(pin.cpu());
            self.lock();
            // SAFETY: this CPU has locked the state.
            let state = unsafe { &mut *self.state.write() };
            if !state.ready.is_empty() {
                let (next, since) = state.next(cpu);
                M::set_timer(M::now() + SLICE);
                // SAFETY: tasks in the queue run nowhere.
                unsafe { M::switch(next, since) };
                self.unlock();
                continue;
            }
            state.waiting.insert(cpu);
            let first = state.sleepers.first();
            M::set_timer(first.map_or(u64::MAX, |&(time, _)| time));
            self.unlock();
            M::wait_for_interrupt(pin);
        }
    }

    fn start(&'static self, job: Job) {
        let begin = move || {
            let pin = M::first_pin();
            self.unlock();
            drop(pin);
            job();
        };
        let exit = move || {
            let pin = M::pin();
            let cpu = self.cpus.index_of(pin.cpu());
            self.lock();
            // SAFETY: this task has locked the state.
            let (next, _) = unsafe { &mut *self.state.write() }.next(cpu);
            core::mem::forget(pin);
            next
        };
        let context = M::create(Box::new(begin), Box::new(exit)).expect("memory for a stack");
        let now = M::now();
        let told = self.with(|state, _| {
            state.names += 1;
            state.wake(state.names, context, now)
        });
        told.into_iter().for_each(M::kick);
    }

    fn interrupt(&self) {
        let now = M::now();
        let told = self.with(|state, cpu| {
            state.waiting.remove(&cpu);
            let mut told = Vec::new();
            while let Some(&(time, name)) = state.sleepers.first()
                && time <= now
            {
                state.sleepers.pop_first();
                told.extend(state.unpark(name, now));
            }
            (told, state.running[cpu].is_some())
        });
        told.0.into_iter().for_each(M::kick);
        if told.1 {
            self.yield_now();
        }
    }

    fn current_task(&self) -> TaskName {
        let running = |state: &mut State<_>, cpu: usize| state.running[cpu];
        TaskName(self.with(running).unwrap_or(0))
    }

    fn park(&self) {
        self.leave(|state, me| {
            let parks = !state.permits.remove(&me.name);
            if parks {
                state.parked.insert(me.name, me.context);
            }
            parks
        });
    }

    fn unpark(&self, task: TaskName) {
        let now = M::now();
        let told = self.with(|state, _| state.unpark(task.0, now));
        told.into_iter().for_each(M::kick);
    }

    fn yield_now(&self) {
        M::set_timer(M::now() + SLICE);
        self.leave(|state, me| {
            let leaves = !state.ready.is_empty();
            if leaves {
                state.ready.push_back(me);
            }
            leaves
        });
    }

    fn sleep_until(&self, time: u64) {
        while M::now() < time {
            self.with(|state, cpu| {
                let name = state.running[cpu].expect("a task runs");
                state.sleepers.insert((time, name));
            });
            M::set_timer(time);
            self.park();
        }
    }
}

/// Runs jobs to their ends, on CPUs that have `Smallest` for their scheduler.
type Machine<'a> = &'a dyn Fn(Vec<Job>);

/// More jobs than CPUs all end, and each has its own words wherever it goes on.
pub fn outnumber<M: Contexts>(run: Machine) {
    const JOBS: usize = 20;
    let ended = Arc::new(M::AtomicUsize::new(0));
    let job = |index: usize| -> Job {
        let ended = ended.clone();
        Box::new(move || {
            M::with_locals(|locals| locals.words[0].set(index + 1));
            for _ in 0..10 {
                M::yield_now();
                M::with_locals(|locals| assert_eq!(locals.words[0].get(), index + 1));
            }
            M::with_locals(|locals| locals.words[0].set(0));
            crate::AtomicInt::fetch_add(&*ended, 1, Ordering::Relaxed);
        })
    };
    run((0..JOBS).map(job).collect());
    assert_eq!(ended.load(Ordering::Relaxed), JOBS);
    // Contexts of ended jobs are used again.
    run((0..JOBS).map(job).collect());
    assert_eq!(ended.load(Ordering::Relaxed), 2 * JOBS);
}

/// A task that computes (`compute` nanoseconds) is taken off its CPU, but not while it holds a pin
/// (`pinned`): the same, where the machine finds safe points by itself.
pub fn pins<M: Contexts>(run: Machine, compute: fn(u64), pinned: fn(u64)) {
    const JOBS: usize = 8;
    let inside: Arc<Vec<M::AtomicU32>> =
        Arc::new((0..crate::MAX_CPUS).map(|_| M::AtomicU32::new(0)).collect());
    let longest = Arc::new(M::AtomicU64::new(0));
    let job = |_| -> Job {
        let (inside, longest) = (inside.clone(), longest.clone());
        Box::new(move || {
            for _ in 0..20 {
                let pin = M::pin();
                let cpu = pin.cpu().index();
                assert_eq!(inside[cpu].swap(1, Ordering::Relaxed), 0, "two pins");
                pinned(3 * SLICE);
                inside[cpu].store(0, Ordering::Relaxed);
                drop(pin);
                let before = M::now();
                compute(SLICE);
                let took = M::now() - before;
                let most = longest.load(Ordering::Relaxed).max(took);
                longest.store(most, Ordering::Relaxed);
            }
        })
    };
    run((0..JOBS).map(job).collect());
    let longest = longest.load(Ordering::Relaxed);
    assert!(longest >= 3 * SLICE, "no task was ever taken off its CPU");
}

/// A wake-up reaches an idle CPU, no wake-up is lost, and sleepers sleep as long as they ask.
pub fn wake_ups<M: Contexts>(run: Machine) {
    const ROUNDS: u32 = 50;
    struct Pair<M: Contexts> {
        turn: M::AtomicU32,
        tasks: [M::AtomicU32; 2],
        names: M::Cell<[Option<M::Task>; 2]>,
    }
    let pair = Arc::new(Pair::<M> {
        turn: M::AtomicU32::new(0),
        tasks: [M::AtomicU32::new(0), M::AtomicU32::new(0)],
        names: M::Cell::new([None; 2]),
    });
    let job = |me: usize| -> Job {
        let pair = pair.clone();
        Box::new(move || {
            // SAFETY: each task writes its own place, and the other reads it after it was told.
            unsafe { (*pair.names.write())[me] = Some(M::current_task()) };
            pair.tasks[me].store(1, Ordering::Release);
            while pair.tasks[1 - me].load(Ordering::Acquire) == 0 {
                M::yield_now();
            }
            // SAFETY: the other task has written its place before it told so, and writes it once.
            let other = unsafe { (*pair.names.read())[1 - me] }.expect("told");
            for round in 0..ROUNDS {
                while pair.turn.load(Ordering::Acquire) != 2 * round + me as u32 {
                    M::park();
                }
                pair.turn
                    .store(2 * round + me as u32 + 1, Ordering::Release);
                M::unpark(other);
            }
        })
    };
    run((0..2).map(job).collect());
    assert_eq!(pair.turn.load(Ordering::Relaxed), 2 * ROUNDS);
    let sleeper = |index: u64| -> Job {
        Box::new(move || {
            for round in 1..4 {
                let until = M::now() + round * 1_000 * (index + 1);
                M::sleep_until(until);
                assert!(M::now() >= until, "woken too early");
            }
        })
    };
    run((0..12).map(sleeper).collect());
}
