//! Linux's `rw_semaphore`: a reader-writer lock whose writers spin while the owner runs, and whose
//! waiters form one queue.
//!
//! The steps are those of `kernel/locking/rwsem.c` in Linux 6.12, on x86-64.
//!
//! | bits of `count` | meaning |
//! |---|---|
//! | `WRITER` | a writer holds the lock |
//! | `WAITERS` | tasks wait in the queue |
//! | `HANDOFF` | the first of the queue has waited for 4 ms: no other task acquires the lock before it |
//! | the rest | the number of readers, and of tasks that try to be |
//!
//! `owner` is a hint for spinners: the task that writes, or, with `BY_READERS`, one that reads or
//! has read. It has `UNSPINNABLE` after a writer has spun behind readers for too long, so that no
//! other does.
//!
//! ```text
//! read:          count += READER; if none of WRITER, WAITERS, HANDOFF: done
//!                if neither WRITER nor HANDOFF, and `owner` names no reader: done,
//!                    and as the only reader wake those in the queue
//!                lock the queue; if it is empty and not WRITER: done
//!                join it; count -= READER; wake the first if it can go on; sleep until granted
//! read unlock:   count -= READER; if that left WAITERS and no holder: wake the first
//! write:         cas(count, 0, WRITER)
//!                else as the first of the spinners (`Osq`): spin while the owner runs;
//!                    if neither held nor HANDOFF: cas(count, count | WRITER)
//!                    readers: for 10 µs and half a µs for each of them;
//!                    then UNSPINNABLE, and no spinning
//!                else lock the queue; join it;
//!                    until cas(count, count | WRITER, less WAITERS if alone):
//!                        unlock the queue, sleep, lock it;
//!                    after 4 ms set HANDOFF, then also spin
//! write unlock:  owner = none; count -= WRITER; if WAITERS: wake the first
//! downgrade:     count += READER - WRITER; if WAITERS: wake the readers
//! wake:          lock the queue; the first is a writer: wake it, and it tries again
//!                a reader: count += READER;
//!                    if WRITER: it was stolen, count -= READER (and after 4 ms: HANDOFF)
//!                    else grant the lock to up to 256 readers anywhere in the queue
//! ```
//! So a release wakes one writer, which finds the lock free or stolen, or many readers, to which it
//! has granted the lock. Readers that come while tasks wait queue behind them, unless the lock is
//! free; writers that spin overtake all.
//!
//! No wake-up is lost: `WAITERS` is set under the queue's lock while the lock is held, or the task
//! looks once more. A task that releases the last acquisition, or a reader that gives up its
//! attempt, sees `WAITERS`, locks the queue, and finds the task.
//!
//! A release looks at the queue after it has freed the lock. So the memory of a lock may be freed
//! only when all releases have returned, not as soon as the lock is free.
//!
//! The differences: a woken reader learns that it has the lock when its waker has released the
//! queue; spinners' places belong to tasks, not to CPUs ([`crate::spin::Queued`]); waits cannot be
//! interrupted; there are no real-time tasks.

mod queue;
mod spin;
mod wake;

use super::RawRw;
use crate::effort::note_sleep;
use crate::raw::{RawGuard, RawLock};
use crate::spin::Qspinlock;
use crate::spin::osq::Osq;
use core::ptr;
use machine::{Atomic, AtomicInt, Machine, Ordering, SharedCell};
use queue::{LockedQueue, Queue, Waiter};
use wake::Reason;

const WRITER: usize = 1;
const WAITERS: usize = 2;
const HANDOFF: usize = 4;
/// What one reader adds to `count`; [`READERS`] masks all of them.
const READER: usize = 1 << 8;
const READERS: usize = !(READER - 1);
const HELD: usize = WRITER | READERS;

/// Bits of `owner`.
const BY_READERS: usize = 1;
const UNSPINNABLE: usize = 2;

/// The reader-writer lock of Linux: 40 bytes, as in Linux. Writers may starve readers for 4 ms, and
/// readers writers.
///
/// A writer spins behind readers for `SPIN` nanoseconds, and a 20th of that for each reader up to
/// 30. A waiter asks for the lock to be handed over after `WAIT` nanoseconds. The task that
/// acquires it for writing must release it.
#[repr(C)]
pub struct Rwsem<M: Machine, const SPIN: u64 = 10_000, const WAIT: u64 = 4_000_000> {
    count: M::AtomicUsize,
    owner: M::AtomicUsize,
    spinners: Osq<M>,
    /// Guards the queue. Acquired under a pin.
    wait_lock: Qspinlock<M>,
    queue: M::Cell<Queue<M>>,
}

impl<M: Machine, const SPIN: u64, const WAIT: u64> Rwsem<M, SPIN, WAIT> {
    /// The name of the calling task in `owner`: the address of its local words, whose low bits are
    /// free.
    fn name() -> usize {
        M::with_locals(|locals| ptr::from_ref(locals) as usize)
    }

    /// Records a reader as the owner. Relaxed, as everywhere: `owner` is a hint.
    fn own_as_reader(&self, name: usize) {
        let kept = self.owner.load(Ordering::Relaxed) & UNSPINNABLE;
        self.owner
            .store(name | BY_READERS | kept, Ordering::Relaxed);
    }

    fn own_as_writer(&self) {
        self.owner.store(Self::name(), Ordering::Relaxed);
    }

    fn lock_queue(&self) -> LockedQueue<'_, M> {
        let pin = M::pin();
        LockedQueue::new(&self.queue, RawGuard::new(&self.wait_lock), pin)
    }

    /// Acquires the lock for reading. The caller has counted itself, which gave `count`.
    #[cold]
    fn read_slow(&self, count: usize) {
        let is_only = count & READERS == READER;
        // A stream of readers must not keep writers out, so a reader queues behind other readers.
        let is_stream =
            !is_only && count & WRITER == 0 && self.owner.load(Ordering::Relaxed) & BY_READERS != 0;
        if !is_stream && count & (WRITER | HANDOFF) == 0 {
            self.own_as_reader(Self::name());
            if is_only && count & WAITERS != 0 {
                self.wake(Reason::Reading);
            }
            return;
        }
        let mut queue = self.lock_queue();
        let mut change = 0usize.wrapping_sub(READER);
        if queue.is_empty() {
            // Acquire: pairs with the release of the last writer.
            if self.count.load(Ordering::Acquire) & WRITER == 0 {
                drop(queue);
                return self.own_as_reader(Self::name());
            }
            change = change.wrapping_add(WAITERS);
        }
        let waiter = Waiter::new(false, Self::name(), WAIT);
        // SAFETY: the waiter stays in place until it has been granted the lock, and has left the
        // queue.
        unsafe { queue.push(&waiter) };
        // Relaxed: a change under the queue's lock that acquires nothing.
        let left = self.count.fetch_add(change, Ordering::Relaxed);
        let wakes = self.next_to_wake(left.wrapping_add(change), &mut queue);
        drop(queue);
        wakes.wake();
        waiter.wait();
    }

    /// Acquires the lock for writing.
    #[cold]
    fn write_slow(&self) {
        if self.spin() {
            return self.own_as_writer();
        }
        let waiter = Waiter::new(true, Self::name(), WAIT);
        let mut queue = self.lock_queue();
        // SAFETY: the waiter stays in place until it leaves the queue, in `try_write_queued`.
        unsafe { queue.push(&waiter) };
        if queue.is_first(&waiter) {
            self.count.fetch_or(WAITERS, Ordering::Relaxed);
        } else {
            let count = self.count.load(Ordering::Relaxed);
            let wakes = self.next_to_wake(count, &mut queue);
            if wakes.are_some() {
                drop(queue);
                wakes.wake();
                queue = self.lock_queue();
            }
        }
        while !self.try_write_queued(&mut queue, &waiter) {
            let may_be_next = queue.is_handed_to(&waiter);
            drop(queue);
            // The lock is to be handed to this task: if its owner writes and runs, it is free in a
            // moment.
            if !(may_be_next && self.spin_on_owner() == spin::Owner::None) {
                note_sleep::<M>();
                M::park();
            }
            queue = self.lock_queue();
        }
        self.own_as_writer();
    }

    /// Acquires the lock for `waiter`, which then leaves the queue; or sets `HANDOFF` if the waiter
    /// is late. Returns true if it acquired the lock.
    fn try_write_queued(&self, queue: &mut LockedQueue<'_, M>, waiter: &Waiter<M>) -> bool {
        let mut count = self.count.load(Ordering::Relaxed);
        loop {
            let is_handed = count & HANDOFF != 0;
            if is_handed && !queue.is_first(waiter) && queue.is_first_handed() {
                return false;
            }
            let is_held = count & HELD != 0;
            let new = if is_held {
                if is_handed || !waiter.is_late() {
                    return false;
                }
                count | HANDOFF
            } else {
                let waiters = if queue.is_single() { WAITERS } else { 0 };
                (count | WRITER) & !(HANDOFF | waiters)
            };
            // Acquire: pairs with the releases of the readers and the writer before.
            match self
                .count
                .compare_exchange(count, new, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) if is_held => {
                    queue.hand_to_first();
                    return false;
                }
                Ok(_) => {
                    queue.remove(waiter);
                    return true;
                }
                Err(other) => count = other,
            }
        }
    }
}

// SAFETY: a writer sets WRITER in a count without holds, by an exchange. A reader adds itself, and
// has the lock if WRITER was not set, or if its waker had added it to a count without WRITER; both
// with acquire. They leave by subtracting what they had added, with release, and all changes are
// exchanges.
unsafe impl<M: Machine, const SPIN: u64, const WAIT: u64> RawRw<M> for Rwsem<M, SPIN, WAIT> {
    const NAME: &'static str = "rwsem";
    const MAY_SLEEP: bool = true;

    fn new() -> Self {
        const {
            // A checker's atomics and cells are larger than the words they model.
            let plain = size_of::<M::AtomicU8>() == 1;
            assert!(!plain || size_of::<Self>() == 40);
        }
        Rwsem {
            count: M::AtomicUsize::new(0),
            owner: M::AtomicUsize::new(0),
            spinners: Osq::new(),
            wait_lock: RawLock::new(),
            queue: M::Cell::new(Queue::new()),
        }
    }

    #[inline]
    fn read(&self) {
        // Acquire: pairs with the release of the last writer.
        let count = self.count.fetch_add(READER, Ordering::Acquire) + READER;
        match count & (WRITER | WAITERS | HANDOFF) {
            0 => self.own_as_reader(Self::name()),
            _ => self.read_slow(count),
        }
    }

    #[inline]
    fn try_read(&self) -> bool {
        let mut count = self.count.load(Ordering::Relaxed);
        while count & (WRITER | WAITERS | HANDOFF) == 0 {
            // Acquire: pairs with the release of the last writer.
            match self.count.compare_exchange_weak(
                count,
                count + READER,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    self.own_as_reader(Self::name());
                    return true;
                }
                Err(other) => count = other,
            }
        }
        false
    }

    #[inline]
    unsafe fn read_unlock(&self) {
        // Release: pairs with the acquire of the next writer.
        let left = self.count.fetch_sub(READER, Ordering::Release) - READER;
        if left & (HELD | WAITERS) == WAITERS {
            self.allow_spinning();
            self.wake(Reason::Free);
        }
    }

    #[inline]
    fn write(&self) {
        if !self.try_write() {
            self.write_slow();
        }
    }

    #[inline]
    fn try_write(&self) -> bool {
        // Acquire: pairs with the releases of the readers and the writer before.
        let taken = self
            .count
            .compare_exchange(0, WRITER, Ordering::Acquire, Ordering::Relaxed);
        if taken.is_ok() {
            self.own_as_writer();
        }
        taken.is_ok()
    }

    #[inline]
    unsafe fn write_unlock(&self) {
        self.owner.store(0, Ordering::Relaxed);
        // Release: pairs with the acquire of the next readers or writer.
        let old = self.count.fetch_sub(WRITER, Ordering::Release);
        if old & WAITERS != 0 {
            self.wake(Reason::Free);
        }
    }

    unsafe fn try_downgrade(&self) -> bool {
        // Release: pairs with the acquire of the next readers.
        let old = self.count.fetch_add(READER - WRITER, Ordering::Release);
        self.own_as_reader(Self::name());
        if old & WAITERS != 0 {
            self.wake(Reason::Reading);
        }
        true
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.count.load(Ordering::Relaxed) & HELD != 0
    }

    #[inline]
    fn is_write_locked(&self) -> bool {
        self.count.load(Ordering::Relaxed) & WRITER != 0
    }
}
