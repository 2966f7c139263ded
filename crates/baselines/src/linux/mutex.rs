//! The mutex of Linux 2.6.36 to 3.9: a count, an owner to spin on, a queue to sleep in.
//!
//! ```text
//! lock:    if count-- == 1: done
//!          while the owner is one and the same: spin; gone: try cas(count, 1, 0)
//!          another owner has come: stop spinning
//!          under wait_lock: join the queue; until swap(count, -1) == 1: unlock, sleep, lock
//!          leave the queue; if it is empty: count = 0
//! unlock:  if count++ == 0: done
//!          count = 1; under wait_lock: wake the first in the queue
//! ```
//! Who sees the lock change hands takes that for heavy contention and goes to sleep. So just where
//! a spin lock is busiest, each acquisition costs a sleep and a wake-up, and who releases
//! wakes one task that finds the lock taken again (Linux 3.0-rc2, `kernel/mutex.c`,
//! `mutex_spin_on_owner` in `kernel/sched.c`).
//!
//! What differs: Linux also stops spinning if the owner does not run, which a machine here does not
//! say; and `wait_lock` is a ticket lock there.

use core::ptr::{self, null};
use machine::{Atomic, AtomicInt, Machine, Ordering, SharedCell};
use sync::RawLock;
use sync::spin::TestAndSet;
use sync::watch::{note_sleep, note_spins};

/// Nobody has the lock.
const FREE: u32 = 1;
/// Somebody has it, nobody waits in the queue.
const HELD: u32 = 0;
/// Somebody has it, and others may wait. So does each other value that is negative.
const AWAITED: u32 = u32::MAX;

/// A mutex of 32 bytes, as in Linux. It must be released by the task that took it.
#[repr(C)]
pub struct LinuxMutex<M: Machine> {
    /// See [`FREE`], [`HELD`], [`AWAITED`].
    count: M::AtomicU32,
    /// Guards the queue.
    wait_lock: TestAndSet<M>,
    /// The address of the owner's local words, 0 for none: a hint for who spins.
    owner: M::AtomicUsize,
    queue: M::Cell<Queue<M>>,
}

/// Who sleeps, longest first. Null at the ends.
struct Queue<M: Machine> {
    first: *const Waiter<M>,
    last: *const Waiter<M>,
}

// SAFETY: followed under `wait_lock` only, and nodes stay while they are queued.
unsafe impl<M: Machine> Send for Queue<M> {}

/// A task that sleeps; on its stack, on a line of its own, in place until it has left the queue by itself.
#[repr(align(64))]
struct Waiter<M: Machine> {
    task: M::Task,
    /// The one behind it. Under `wait_lock`.
    next: M::Cell<Next<M>>,
}

struct Next<M: Machine>(*const Waiter<M>);

// SAFETY: as for `Queue`.
unsafe impl<M: Machine> Send for Next<M> {}

impl<M: Machine> LinuxMutex<M> {
    /// Spins while that may help; whether it got the lock.
    fn spin(&self) -> bool {
        let mut rounds = 0;
        let taken = self.spin_counting(&mut rounds);
        note_spins::<M>(rounds);
        taken
    }

    fn spin_counting(&self, rounds: &mut u32) -> bool {
        loop {
            let owner = self.owner.load(Ordering::Relaxed);
            let mut now = owner;
            while now == owner && now != 0 {
                M::relax(*rounds);
                *rounds = rounds.saturating_add(1);
                now = self.owner.load(Ordering::Relaxed);
            }
            // It has changed hands: there is a crowd.
            if owner != 0 && now != 0 {
                return false;
            }
            if self.try_lock().is_some() {
                return true;
            }
            M::relax(*rounds);
            *rounds = rounds.saturating_add(1);
        }
    }

    #[cold]
    fn lock_slow(&self) {
        if self.spin() {
            return;
        }
        let waiter = Waiter {
            task: M::current_task(),
            next: M::Cell::new(Next(null())),
        };
        let mut pin = M::pin();
        self.wait_lock.lock();
        // SAFETY: the queue is locked, and the node stays until it has left.
        unsafe { self.enqueue(&waiter) };
        // Acquire: pairs with the release of whoever freed the lock. The value says to each that
        // frees it from now on that somebody is to be woken.
        while self.count.swap(AWAITED, Ordering::Acquire) != FREE {
            // SAFETY: locked above.
            unsafe { self.wait_lock.unlock(()) };
            drop(pin);
            note_sleep::<M>();
            M::park();
            pin = M::pin();
            self.wait_lock.lock();
        }
        // SAFETY: as above.
        if unsafe { self.leave(&waiter) } {
            // Relaxed: the lock is ours, and who waits next says so under `wait_lock`.
            self.count.store(HELD, Ordering::Relaxed);
        }
        self.own();
        // SAFETY: locked above.
        unsafe { self.wait_lock.unlock(()) };
        drop(pin);
    }

    #[cold]
    fn unlock_slow(&self) {
        // Release: pairs with the acquires of the next owner.
        self.count.store(FREE, Ordering::Release);
        let pin = M::pin();
        self.wait_lock.lock();
        // SAFETY: the queue is locked, and queued nodes live.
        unsafe {
            let first = (*self.queue.read()).first;
            if !first.is_null() {
                M::unpark((*first).task);
            }
            self.wait_lock.unlock(());
        }
        drop(pin);
    }

    fn own(&self) {
        let me = M::with_locals(|locals| ptr::from_ref(locals) as usize);
        self.owner.store(me, Ordering::Relaxed);
    }

    /// # Safety
    /// The queue is locked, and `waiter` stays in place until it has left.
    unsafe fn enqueue(&self, waiter: &Waiter<M>) {
        // SAFETY: by contract.
        unsafe {
            let queue = self.queue.write();
            match (*queue).last.as_ref() {
                Some(last) => (*last.next.write()).0 = waiter,
                None => (*queue).first = waiter,
            }
            (*queue).last = waiter;
        }
    }

    /// Takes `waiter` from the queue, wherever it stands; whether the queue is empty now.
    ///
    /// # Safety
    /// The queue is locked, and `waiter` is in it.
    unsafe fn leave(&self, waiter: &Waiter<M>) -> bool {
        // SAFETY: by contract.
        unsafe {
            let queue = self.queue.write();
            let next = (*waiter.next.read()).0;
            let mut before = null::<Waiter<M>>();
            let mut here = (*queue).first;
            while !ptr::eq(here, waiter) {
                before = here;
                here = (*(*here).next.read()).0;
            }
            match before.as_ref() {
                Some(before) => (*before.next.write()).0 = next,
                None => (*queue).first = next,
            }
            if next.is_null() {
                (*queue).last = before;
            }
            (*queue).first.is_null()
        }
    }
}

// SAFETY: the lock is taken by changing `count` from `FREE`, with acquire, and only its holder
// makes it `FREE` again, with release: each other change leaves it at or below `HELD`.
unsafe impl<M: Machine> RawLock<M> for LinuxMutex<M> {
    type Held = ();
    const NAME: &'static str = "linux mutex";

    fn new() -> Self {
        const {
            // A checker's atomics and cells are larger than what they stand for.
            let plain = size_of::<M::AtomicU8>() == 1;
            assert!(!plain || size_of::<Self>() == 32);
        }
        LinuxMutex {
            count: M::AtomicU32::new(FREE),
            wait_lock: TestAndSet::new(),
            owner: M::AtomicUsize::new(0),
            queue: M::Cell::new(Queue {
                first: null(),
                last: null(),
            }),
        }
    }

    #[inline]
    fn lock(&self) {
        // Acquire: pairs with the release of whoever freed the lock.
        if self.count.fetch_sub(1, Ordering::Acquire) == FREE {
            self.own();
        } else {
            self.lock_slow();
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        // Acquire: as in `lock`.
        let taken = self
            .count
            .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed);
        taken.ok()?;
        self.own();
        Some(())
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        self.owner.store(0, Ordering::Relaxed);
        // Release: pairs with the acquire of the next owner. If others wait this frees nothing yet.
        if self.count.fetch_add(1, Ordering::Release) != HELD {
            self.unlock_slow();
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.count.load(Ordering::Relaxed) != FREE
    }
}
