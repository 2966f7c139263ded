//! Sets of semaphores with numbers and keys (System V).
//!
//! A call performs all its operations under the set's lock, or it waits. A thread that changes the
//! set then performs the operations of waiting calls, the oldest first, as far as they have become
//! possible: so no later call can take a value that was added for a waiter.

use crate::errno::Errno;
use crate::event_count::EventCount;
use crate::heap;
use crate::numbered::{Keyed, Numbered, Rights, seconds};
use crate::process::{PROCESSES, Process, Thread, Undo};
use crate::single::Single;
use crate::system::Lock;
use alloc::sync::Arc;
use alloc::vec::Vec;
use machine::Clock;
use metal::Metal;
use sync::adaptive::Adaptive;

/// The sets.
pub static SEMAPHORES: Single<Lock<Numbered<Arc<Set>>>> = Single::new();

/// The most sets; the most semaphores of one.
pub const MOST: usize = 32_000;
pub const MOST_OF_SET: usize = 32_000;
/// The largest value.
pub const LARGEST: i32 = 32_767;

/// One operation of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// The index of the semaphore.
    pub index: usize,
    /// The amount to add; 0 waits for the value 0.
    pub change: i32,
    /// True if the call fails instead of waiting.
    pub is_impatient: bool,
    /// True if the end of the process undoes the change.
    pub is_undone: bool,
}

/// A semaphore.
#[derive(Clone, Copy, Default)]
pub struct Semaphore {
    /// The semaphore's value.
    pub value: i32,
    /// The process that last operated on it; 0 for none.
    pub last: u32,
}

/// A set.
pub struct Set {
    /// The set's number.
    number: i32,
    /// The key by which it is found; 0 for none.
    pub key: i32,
    /// The state, under its lock.
    pub state: Lock<State>,
    /// Counts the outcomes of calls that wait.
    changes: EventCount,
}

/// The locked state of a set.
type Guard<'a> = sync::MutexGuard<'a, Metal, Adaptive<Metal>, State>;

/// The state of a set.
pub struct State {
    /// Who may use the set.
    pub rights: Rights,
    /// When it was last operated on and changed, in seconds since 1970; 0 for never.
    pub times: [u64; 2],
    /// The semaphores.
    pub all: Vec<Semaphore>,
    /// The calls that wait, the oldest first.
    waiters: Vec<Waiting>,
    /// True if the set has been removed.
    is_removed: bool,
}

/// A call that waits.
struct Waiting {
    waiter: Arc<Waiter>,
    /// The operation that is not possible.
    blocked: Operation,
}

/// The part of a waiting call that its thread shares.
struct Waiter {
    operations: Vec<Operation>,
    process: Arc<Process>,
    /// The outcome of the call, once another thread has set it under the set's lock.
    outcome: Lock<Option<Result<(), Errno>>>,
}

impl Keyed for Arc<Set> {
    fn key(&self) -> i32 {
        self.key
    }
}

impl Set {
    /// A set of `count` semaphores.
    pub fn new(number: i32, key: i32, count: usize, mode: u32) -> Result<Arc<Self>, Errno> {
        let mut all = Vec::new();
        all.try_reserve_exact(count).map_err(|_| Errno::NOMEM)?;
        all.resize(count, Semaphore::default());
        Ok(Arc::new(Set {
            number,
            key,
            state: Lock::new(State {
                rights: Rights::new(mode),
                times: [0, seconds()],
                all,
                waiters: Vec::new(),
                is_removed: false,
            }),
            changes: EventCount::default(),
        }))
    }

    /// Changes the state, and performs the waiting operations that have become possible.
    pub fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        change(&mut state);
        self.settle(state);
    }

    /// Ends the calls that have become possible, or impossible, with the state as it is now.
    fn settle(&self, mut state: Guard<'_>) {
        if state.settle(self.number) {
            self.changes.advance();
            drop(state);
            self.changes.wake();
        }
    }

    /// Marks the set as removed, and tells the calls that wait.
    pub fn remove(&self) {
        self.change(|state| state.is_removed = true);
        self.forget(|_| true);
    }

    /// Makes processes undo no changes of semaphores with these indices.
    pub fn forget(&self, which: impl Fn(usize) -> bool) {
        for process in PROCESSES.all() {
            let mut undo = process.undo.lock();
            undo.retain(|(number, index), _| *number != self.number || !which(*index));
        }
    }

    /// Performs all operations for the calling thread, atomically; waits until that is possible,
    /// with a timeout at `limit`.
    pub fn operate(
        &self,
        thread: &mut Thread,
        operations: Vec<Operation>,
        limit: u64,
    ) -> Result<(), Errno> {
        let limit = thread.until.unwrap_or(limit);
        let mut state = self.state.lock();
        let Err(blocked) = state.attempt(self.number, &thread.process, &operations)? else {
            self.settle(state);
            return Ok(());
        };
        if blocked.is_impatient {
            return Err(Errno::AGAIN);
        }
        let waiter = Arc::new(Waiter {
            operations,
            process: thread.process.clone(),
            outcome: Lock::new(None),
        });
        let waiting = Waiting {
            waiter: waiter.clone(),
            blocked,
        };
        heap::push(&mut state.waiters, waiting)?;
        let result = thread.wait_until(limit, || self.wait(thread, state, &waiter, limit));
        if result == Err(Errno::INTR) {
            thread.until = Some(limit);
        }
        result
    }

    /// Waits until the call has an outcome, or the thread is disturbed.
    fn wait<'a>(
        &'a self,
        thread: &Thread,
        mut state: Guard<'a>,
        waiter: &Arc<Waiter>,
        limit: u64,
    ) -> Result<(), Errno> {
        loop {
            let outcome = *waiter.outcome.lock();
            if let Some(outcome) = outcome {
                return outcome;
            }
            if thread.is_disturbed() {
                state.waiters.retain(|it| !Arc::ptr_eq(&it.waiter, waiter));
                return Err(if Metal::now() >= limit {
                    Errno::AGAIN
                } else {
                    Errno::INTR
                });
            }
            let seen = self.changes.read();
            drop(state);
            self.changes.wait(seen);
            state = self.state.lock();
        }
    }
}

impl State {
    /// The number of calls that wait for a semaphore: for a larger value, and for 0.
    pub fn waiting(&self, index: usize) -> [usize; 2] {
        let at = self.waiters.iter().filter(|it| it.blocked.index == index);
        let for_zero = at.clone().filter(|it| it.blocked.change == 0).count();
        [at.count() - for_zero, for_zero]
    }

    /// Performs the operations of the calls that wait, the oldest first, as far as they are
    /// possible. Returns true if a call has ended: one that has changed a value may have made
    /// earlier ones possible.
    fn settle(&mut self, number: i32) -> bool {
        let mut has_ended = false;
        let mut at = 0;
        while let Some(Waiting { waiter, .. }) = self.waiters.get(at) {
            let waiter = waiter.clone();
            let outcome = match self.attempt(number, &waiter.process, &waiter.operations) {
                Ok(Err(blocked)) => {
                    self.waiters[at].blocked = blocked;
                    at += 1;
                    continue;
                }
                Ok(Ok(())) => Ok(()),
                Err(errno) => Err(errno),
            };
            self.waiters.remove(at);
            *waiter.outcome.lock() = Some(outcome);
            has_ended = true;
            let changes = waiter.operations.iter().any(|it| it.change != 0);
            if outcome.is_ok() && changes {
                at = 0;
            }
        }
        has_ended
    }

    /// Performs all operations, or none; then returns the one that has to wait.
    fn attempt(
        &mut self,
        number: i32,
        process: &Process,
        operations: &[Operation],
    ) -> Result<Result<(), Operation>, Errno> {
        if self.is_removed {
            return Err(Errno::IDRM);
        }
        let mut undo = process.undo.lock();
        let mut done = 0;
        let mut answer = Ok(Ok(()));
        for operation in operations {
            let value = self.all[operation.index].value + operation.change;
            let waits = value < 0 || operation.change == 0 && value != 0;
            let back = if operation.is_undone {
                undo.get(&(number, operation.index)).unwrap_or(&0) - operation.change
            } else {
                0
            };
            answer = match waits {
                true => Ok(Err(*operation)),
                false if value > LARGEST || !(-LARGEST..=LARGEST).contains(&back) => {
                    Err(Errno::RANGE)
                }
                false => Ok(Ok(())),
            };
            if answer != Ok(Ok(())) {
                break;
            }
            self.apply(&mut undo, number, operation, operation.change);
            done += 1;
        }
        match answer {
            Ok(Ok(())) => {
                for operation in operations {
                    self.all[operation.index].last = process.pid;
                }
                self.times[0] = seconds();
            }
            _ => {
                for operation in operations[..done].iter().rev() {
                    self.apply(&mut undo, number, operation, -operation.change);
                }
            }
        }
        answer
    }

    /// Adds `change` to the operation's semaphore, and records the undo.
    fn apply(&mut self, undo: &mut Undo, number: i32, operation: &Operation, change: i32) {
        self.all[operation.index].value += change;
        if operation.is_undone && change != 0 {
            *undo.entry((number, operation.index)).or_default() -= change;
        }
    }
}

/// Undoes the changes of a process that has ended.
pub fn undo(process: &Process) {
    let undo = core::mem::take(&mut *process.undo.lock());
    for ((number, index), change) in undo {
        let set = SEMAPHORES.lock().get(number).cloned();
        if let Ok(set) = set {
            set.change(|state| {
                let semaphore = &mut state.all[index];
                semaphore.value = (semaphore.value + change).clamp(0, LARGEST);
                semaphore.last = process.pid;
            });
        }
    }
}
