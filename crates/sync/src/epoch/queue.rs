//! One CPU's callbacks, in order: open, waiting, ready.
//!
//! ```text
//! call -> open --seal--> waiting --passed--> ready --run--> done
//! ```
//! - **open**: deferred, without a stamp.
//! - **waiting**: a batch under one stamp. To *seal* is to make the open list the
//!   waiting one: one fence a batch instead of one a call.
//! - **ready**: the stamp has passed.
//!
//! The queue's lock guards all of it and is held for a few instructions. Callbacks run without it,
//! by one CPU at a time (`busy`), so those of one queue run in order and `done` says exactly which
//! have run.

use super::stall::Blocked;
use super::{Domain, Protocol, Record};
use crate::deferred::{Deferred, List};
use machine::{Atomic, Machine, Ordering, SharedCell};

/// One CPU's callbacks.
pub(super) struct Queue<M: Machine> {
    /// 1 while a CPU uses `lists`. Acquired with the CPU pinned.
    lock: M::AtomicU32,
    lists: M::Cell<Lists<M>>,
}

/// The lists that a queue's lock guards.
pub(super) struct Lists<M: Machine> {
    open: List<M>,
    waiting: List<M>,
    ready: List<M>,
    /// The epoch of `waiting`.
    stamp: u64,
    /// Callbacks sealed so far: tells one waiting batch from the next.
    sealed: u64,
    /// Callbacks deferred so far.
    pub(super) deferred: u64,
    /// Callbacks run so far; the first `done` of those deferred.
    pub(super) done: u64,
    /// True if a CPU is running the ready callbacks.
    busy: bool,
}

impl<M: Machine> Queue<M> {
    pub(super) fn new() -> Self {
        Queue {
            lock: M::AtomicU32::new(0),
            lists: M::Cell::new(Lists {
                open: List::EMPTY,
                waiting: List::EMPTY,
                ready: List::EMPTY,
                stamp: 0,
                sealed: 0,
                deferred: 0,
                done: 0,
                busy: false,
            }),
        }
    }

    /// Runs `f`, which must not panic, on the lists under the lock.
    pub(super) fn with<R>(&self, _pin: &M::Pin, f: impl FnOnce(&mut Lists<M>) -> R) -> R {
        M::spin_until(|| {
            // Acquire: pairs with the release that ends this function.
            self.lock
                .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
        });
        // SAFETY: the caller's CPU holds the lock, so no other CPU accesses the lists.
        let result = f(unsafe { &mut *self.lists.write() });
        // Release: pairs with the acquire that begins this function.
        self.lock.store(0, Ordering::Release);
        result
    }
}

impl<M: Machine> Lists<M> {
    /// Callbacks deferred and not yet run.
    pub(super) fn pending(&self) -> usize {
        (self.deferred - self.done) as usize
    }

    /// Makes the waiting batch ready if it is the one that was sealed with this number. Another CPU
    /// may have done so first, and sealed the next batch.
    fn make_ready(&mut self, sealed: u64) -> bool {
        let is_same = self.sealed == sealed;
        if is_same {
            self.ready.append(&mut self.waiting);
        }
        is_same
    }

    /// Appends a callback.
    ///
    /// # Safety
    /// The conditions of [`List::push`] hold.
    pub(super) unsafe fn defer(
        &mut self,
        node: *mut Deferred<M>,
        run: unsafe fn(*mut Deferred<M>),
    ) {
        // SAFETY: so says the caller.
        unsafe { self.open.push(node, run) };
        self.deferred += 1;
    }
}

impl<M: Machine, P: Protocol> Domain<M, P> {
    /// One step for the callbacks of CPU `index`: seals, tries to advance, runs the ready
    /// callbacks. The caller is outside sections.
    pub(super) fn step(&self, pin: &M::Pin, index: usize) -> Result<(), Blocked> {
        let queue = self.queues.of(index);
        let waiting = queue.with(pin, |lists| {
            self.seal(lists, index);
            (!lists.waiting.is_empty()).then_some((lists.sealed, lists.stamp))
        });
        let mut result = Ok(());
        if let Some((sealed, stamp)) = waiting {
            match self.pass(stamp) {
                Ok(()) => queue.with(pin, |lists| {
                    if lists.make_ready(sealed) {
                        self.seal(lists, index);
                    }
                }),
                Err(cpu) => result = Err(Blocked::Reader(cpu)),
            }
        }
        self.run(pin, queue)?;
        result
    }

    /// Makes the open list the waiting one, if no batch waits.
    fn seal(&self, lists: &mut Lists<M>, index: usize) {
        if lists.waiting.is_empty() && !lists.open.is_empty() {
            // The lock orders the stamp's fence after each call in the list.
            let record = self.records.of(index).epoch.load(Ordering::Relaxed);
            lists.stamp = P::stamp(self.stamp(), record);
            lists.waiting = lists.open.take();
            lists.sealed = lists.deferred;
        }
    }

    /// Runs the ready callbacks of `queue`.
    fn run(&self, pin: &M::Pin, queue: &Queue<M>) -> Result<(), Blocked> {
        let ready = queue.with(pin, |lists| {
            if lists.busy {
                return Err(Blocked::Busy);
            }
            lists.busy = !lists.ready.is_empty();
            Ok(lists.ready.take())
        })?;
        if !ready.is_empty() {
            let record = self.index(pin).map(|own| self.records.of(own));
            Batch::new(queue, record, pin, ready).run();
        }
        Ok(())
    }

    /// Runs all callbacks; the caller has the domain exclusively, so no section is open.
    fn run_all(&mut self) {
        let pin = M::pin();
        for queue in self.queues.iter() {
            // A callback may defer another.
            while queue.with(&pin, |lists| {
                let (waiting, open) = (&mut lists.waiting, &mut lists.open);
                lists.ready.append(waiting);
                lists.ready.append(open);
                !lists.busy && !lists.ready.is_empty()
            }) {
                // The queue is not busy, by the loop's condition.
                let _ = self.run(&pin, queue);
            }
        }
    }
}

impl<M: Machine, P: Protocol> Drop for Domain<M, P> {
    fn drop(&mut self) {
        self.run_all();
    }
}

/// Callbacks being run; puts the rest back if one panics.
struct Batch<'a, M: Machine> {
    queue: &'a Queue<M>,
    /// The record of the CPU that runs them; `None` outside the domain's CPUs.
    record: Option<&'a Record<M>>,
    pin: &'a M::Pin,
    rest: List<M>,
    ran: u64,
}

impl<'a, M: Machine> Batch<'a, M> {
    fn new(
        queue: &'a Queue<M>,
        record: Option<&'a Record<M>>,
        pin: &'a M::Pin,
        rest: List<M>,
    ) -> Self {
        let batch = Batch {
            queue,
            record,
            pin,
            rest,
            ran: 0,
        };
        batch.mark(true);
        batch
    }

    fn run(mut self) {
        while let Some((node, link)) = self.rest.pop() {
            self.ran += 1;
            // SAFETY: the caller of `Domain::call` promised that `run` may be called on the node
            // once, on any CPU, when no section is left that could see the object.
            unsafe { (link.run)(node) };
        }
    }

    fn mark(&self, running: bool) {
        if let Some(record) = self.record {
            // SAFETY: pinned, so no other CPU accesses `running`.
            unsafe { *record.running.write() = running };
        }
    }
}

impl<M: Machine> Drop for Batch<'_, M> {
    fn drop(&mut self) {
        self.mark(false);
        self.queue.with(self.pin, |lists| {
            self.rest.append(&mut lists.ready);
            lists.ready = self.rest.take();
            lists.done += self.ran;
            lists.busy = false;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::boxed::Box;
    use hosted::Hosted;
    use machine::{Cpus, Topology};

    /// A CPU that has seen a batch and returns after others have sealed later ones leaves those
    /// alone.
    #[test]
    fn a_batch_is_made_ready_by_its_own_number() {
        let machine = Hosted::new(1);
        machine.on_cpu(0, || {
            let domain = Domain::<Hosted>::new(machine.cpus());
            let (queue, pin) = (domain.queues.of(0), Hosted::pin());
            let seal_one = || {
                let node = Box::leak(Box::new(Deferred::new()));
                queue.with(&pin, |lists| {
                    // SAFETY: the node is new, and is never freed.
                    unsafe { lists.defer(node, |_| ()) };
                    domain.seal(lists, 0);
                    lists.sealed
                })
            };
            let mut earlier = alloc::vec::Vec::new();
            for _ in 0..3 {
                let sealed = seal_one();
                for &other in &earlier {
                    let made = queue.with(&pin, |lists| lists.make_ready(other));
                    assert!(!made, "batch {sealed} by the number {other}");
                }
                assert!(queue.with(&pin, |lists| lists.make_ready(sealed)));
                earlier.push(sealed);
            }
        });
    }
}
