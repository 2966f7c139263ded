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
//! A task that sees the owner change takes that for heavy contention and goes to sleep. So exactly
//! where contention is highest, each acquisition costs a sleep and a wake-up, and each release
//! wakes one task that finds the lock taken again (Linux 3.0-rc2, `kernel/mutex.c`,
//! `mutex_spin_on_owner` in `kernel/sched.c`).
//!
//! Spinning also ends if the owner is off its CPU (`mutex_spin_on_owner`), or if another task is to
//! run on the spinner's CPU (`need_resched`), if the machine can tell.
//!
//! The difference: in Linux `wait_lock` is a ticket lock, here a test-and-set lock.

use core::ptr::{self, null};
use machine::{Atomic, AtomicInt, Machine, Ordering, SharedCell};
use sync::RawLock;
use sync::spin::TestAndSet;
use sync::watch::{note_sleep, note_spins};

/// No task holds the lock.
const FREE: u32 = 1;
/// A task holds the lock, and none waits in the queue.
const HELD: u32 = 0;
/// A task holds the lock, and others may wait. All other negative values mean the same.
const AWAITED: u32 = u32::MAX;

/// A mutex of 32 bytes, as in Linux. The task that acquires it must release it.
#[repr(C)]
pub struct LinuxMutex<M: Machine> {
    /// [`FREE`], [`HELD`], [`AWAITED`] or another negative value.
    count: M::AtomicU32,
    /// Guards the queue.
    wait_lock: TestAndSet<M>,
    /// The address of the owner's local words, 0 for none: a hint for spinners.
    owner: M::AtomicUsize,
    queue: M::Cell<Queue<M>>,
}

/// The sleepers, those that have waited longest first. Null at the ends.
struct Queue<M: Machine> {
    first: *const Waiter<M>,
    last: *const Waiter<M>,
}

// SAFETY: followed only under `wait_lock`, and nodes stay while they are queued.
unsafe impl<M: Machine> Send for Queue<M> {}

/// A sleeping task's node: on its stack, on a cache line of its own, in place until the task itself
/// has left the queue.
#[repr(align(64))]
struct Waiter<M: Machine> {
    task: M::Task,
    /// The next waiter. Guarded by `wait_lock`.
    next: M::Cell<Next<M>>,
}

struct Next<M: Machine>(*const Waiter<M>);

// SAFETY: followed only under `wait_lock`, and nodes stay while they are queued.
unsafe impl<M: Machine> Send for Next<M> {}

impl<M: Machine> LinuxMutex<M> {
    /// Spins while that may help. Returns true if it acquired the lock.
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
                if M::is_wanted() || M::is_running(owner) == Some(false) {
                    return false;
                }
                M::relax(*rounds);
                *rounds = rounds.saturating_add(1);
                now = self.owner.load(Ordering::Relaxed);
            }
            // The owner has changed: the lock is contended.
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
        // Acquire: pairs with the release of the owner that freed the lock. The value tells each
        // later owner to wake a task.
        while self.count.swap(AWAITED, Ordering::Acquire) != FREE {
            // SAFETY: this task acquired `wait_lock` above.
            unsafe { self.wait_lock.unlock(()) };
            drop(pin);
            note_sleep::<M>();
            M::park();
            pin = M::pin();
            self.wait_lock.lock();
        }
        // SAFETY: the queue is locked, and the node is in it.
        if unsafe { self.leave(&waiter) } {
            // Relaxed: this task holds the lock, and the next waiter stores its mark under
            // `wait_lock`.
            self.count.store(HELD, Ordering::Relaxed);
        }
        self.own();
        // SAFETY: this task acquired `wait_lock` above.
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
        // SAFETY: the caller holds `wait_lock`, and queued nodes live.
        unsafe {
            let queue = self.queue.write();
            match (*queue).last.as_ref() {
                Some(last) => (*last.next.write()).0 = waiter,
                None => (*queue).first = waiter,
            }
            (*queue).last = waiter;
        }
    }

    /// Removes `waiter` from any position in the queue. Returns true if the queue is now empty.
    ///
    /// # Safety
    /// The queue is locked, and `waiter` is in it.
    unsafe fn leave(&self, waiter: &Waiter<M>) -> bool {
        // SAFETY: the caller holds `wait_lock`, and queued nodes live.
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

// SAFETY: a task acquires the lock by changing `count` from `FREE`, with acquire, and only the
// holder makes it `FREE` again, with release: each other change leaves it at or below `HELD`.
unsafe impl<M: Machine> RawLock<M> for LinuxMutex<M> {
    type Held = ();
    const NAME: &'static str = "linux mutex";
    const MAY_SLEEP: bool = true;

    fn new() -> Self {
        const {
            // A checker's atomics and cells are larger than the words they model.
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
        // Acquire: pairs with the release of the owner that freed the lock.
        if self.count.fetch_sub(1, Ordering::Acquire) == FREE {
            self.own();
        } else {
            self.lock_slow();
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        // Acquire: pairs with the release of the owner that freed the lock.
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
