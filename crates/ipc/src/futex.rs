//! Futexes: waiting at a word of memory as long as it has a value.
//!
//! # Protocol
//! Waiters are in a bucket, found by hashing the word's name, each with a node on its stack. A
//! waiter checks the word under the bucket's lock and enqueues itself. A waker has changed the word
//! before it locks the bucket: it either comes after the check and finds the waiter, or before, and
//! the check sees the change. The waker dequeues nodes under the lock; once it has set `woken`, in
//! its last access to a node, it wakes the node's task.
//!
//! ```text
//! waiter: lock the bucket; look; enqueue; unlock; while not woken: sleep(node, while not woken)
//! waker:  lock the bucket; dequeue; unlock; woken = 1; wake(node)
//! mover:  lock both buckets; dequeue; rename; enqueue in the other; unlock
//! ```
//! A waiter that gives up looks for its node where `place` says, and looks again if the node was
//! moved before it had that bucket's lock.

use crate::Kernel;
use alloc::boxed::Box;
use core::cell::Cell;
use core::cmp::Ordering::{Equal, Greater, Less};
use core::ptr::{self, null};
use machine::{Atomic, CpuRange, Machine, Ordering, SharedCell};
use sync::adaptive::Adaptive;
use sync::lock_class;
use sync::watch::Watched;
use sync::{Mutex, MutexGuard, Padded};

lock_class!(
    /// The lock of a bucket of futexes. Held while a waiter looks at its word.
    pub FutexLock = "futex", rank 75, nesting ByAddress
);

/// The name of a word, the same in all its mappings: its object, or its space if it is private, and
/// the place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// The object or the space.
    pub of: u64,
    /// The place in it.
    pub at: u64,
}

/// The futexes of a machine.
pub struct Futexes<M: Machine> {
    buckets: Box<[Padded<Bucket<M>>]>,
}

/// A bucket: its first waiter, and its lock.
type Bucket<M> = Mutex<M, Watched<M, Adaptive<M>, FutexLock>, Link<M>>;
/// A locked bucket.
type Locked<'a, M> = MutexGuard<'a, M, Watched<M, Adaptive<M>, FutexLock>, Link<M>>;

/// A waiting task; on its stack, on a cache line of its own, in place until `woken` is set.
#[repr(align(64))]
struct Waiter<M: Machine> {
    /// Guarded by its bucket's lock.
    name: Cell<Name>,
    /// The number of its bucket. Written under the locks of the old and the new one: relaxed.
    place: M::AtomicU32,
    /// Set to 1 by the waker, in its last access to the node.
    woken: M::AtomicU32,
    /// The next in the bucket, guarded by its lock; once dequeued, in the waker's list.
    next: M::Cell<Link<M>>,
}

/// A waiter, or null.
struct Link<M: Machine>(*const Waiter<M>);

impl<M: Machine> Clone for Link<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Machine> Copy for Link<M> {}

// SAFETY: a link is followed only under the bucket's lock, or by the waker that dequeued its
// target.
unsafe impl<M: Machine> Send for Link<M> {}

/// How a wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// A task has woken the waiter.
    Woken,
    /// The word had another value: there was no wait.
    Differs,
    /// The waiter was not to wait any longer.
    Stopped,
}

impl<M: Machine> Futexes<M> {
    /// Futexes without waiters, on the machine of these CPUs.
    pub fn new<K: Kernel<M>>(kernel: &K, cpus: CpuRange) -> Self {
        let buckets = kernel.futex_buckets(cpus.len()).max(1).next_power_of_two();
        let bucket = || Padded(Mutex::new(Link(null())));
        Futexes {
            buckets: (0..buckets).map(|_| bucket()).collect(),
        }
    }

    /// Waits at the word until woken, if `still` holds. Returns true if it waited. `still` checks
    /// the word under the bucket's lock, and takes no lock of this crate.
    ///
    /// # Errors
    /// Those of `still`.
    pub fn wait<K: Kernel<M>, E>(
        &self,
        kernel: &K,
        name: Name,
        still: impl FnOnce() -> Result<bool, E>,
    ) -> Result<bool, E> {
        let wait = self.wait_while(kernel, name, || true, still)?;
        Ok(wait == Wait::Woken)
    }

    /// Waits for a wake-up while `waits` returns true; it is called before each sleep.
    ///
    /// # Errors
    /// Those of `still`.
    pub fn wait_while<K: Kernel<M>, E>(
        &self,
        kernel: &K,
        name: Name,
        waits: impl Fn() -> bool,
        still: impl FnOnce() -> Result<bool, E>,
    ) -> Result<Wait, E> {
        let place = self.place(name);
        let waiter = Waiter {
            name: Cell::new(name),
            place: M::AtomicU32::new(place as u32),
            woken: M::AtomicU32::new(0),
            next: M::Cell::new(Link(null())),
        };
        {
            let mut first = self.buckets[place].0.lock();
            if !still()? {
                return Ok(Wait::Differs);
            }
            // SAFETY: the node stays until `woken` is set, and the lock is held.
            unsafe { append(&mut first, Link(ptr::from_ref(&waiter))) };
        }
        let key = ptr::from_ref(&waiter).cast();
        // Acquire: pairs with the release in `wake`; the node is this task's again.
        while waiter.woken.load(Ordering::Acquire) == 0 {
            // Not in the bucket any more: a waker has the node, and is about to set `woken`.
            if !waits() && self.withdraw(&waiter) {
                return Ok(Wait::Stopped);
            }
            kernel.sleep(key, || waiter.woken.load(Ordering::Relaxed) == 0);
        }
        // Tells a checker that the node is this task's; else nothing.
        waiter.next.into_inner();
        Ok(Wait::Woken)
    }

    /// Wakes the `count` tasks that have waited longest at the word; returns how many there were.
    /// O(waiters in the bucket).
    pub fn wake<K: Kernel<M>>(&self, kernel: &K, name: Name, count: usize) -> usize {
        let mut bucket = self.buckets[self.place(name)].0.lock();
        // SAFETY: the lock is held.
        let waiters = unsafe { dequeue(&mut bucket, name, count) };
        drop(bucket);
        Self::wake_all(kernel, waiters)
    }

    /// Wakes the `woken` tasks that have waited longest at the first word, and lets the next
    /// `moved` ones wait at the second one instead, if `still` holds, which checks the first word
    /// under its bucket's lock; returns how many there were.
    ///
    /// # Errors
    /// Those of `still`.
    pub fn requeue<K: Kernel<M>, E>(
        &self,
        kernel: &K,
        [from, to]: [Name; 2],
        [woken, moved]: [usize; 2],
        still: impl FnOnce() -> Result<bool, E>,
    ) -> Result<Option<[usize; 2]>, E> {
        let place = self.place(to);
        let (mut here, mut there) = self.lock_both(self.place(from), place);
        if !still()? {
            return Ok(None);
        }
        // SAFETY: the locks are held; moved nodes are in a bucket again before they are released.
        let (waiters, moved) = unsafe {
            let waiters = dequeue(&mut here, from, woken);
            let list = dequeue(&mut here, from, moved);
            let moved = rename(list, to, place as u32);
            append(there.as_deref_mut().unwrap_or(&mut here), list);
            (waiters, moved)
        };
        drop((here, there));
        Ok(Some([Self::wake_all(kernel, waiters), moved]))
    }

    /// Wakes the tasks of a list of dequeued nodes; returns how many there were.
    fn wake_all<K: Kernel<M>>(kernel: &K, waiters: Link<M>) -> usize {
        let (mut next, mut woken) = (waiters, 0);
        while !next.0.is_null() {
            let key = next.0.cast();
            // SAFETY: the caller has dequeued the node, and `woken` is not set, so it exists and
            // belongs to this call.
            unsafe {
                let waiter = &*next.0;
                next = *waiter.next.read();
                // Release: pairs with the acquire in `wait`. The node may be gone from here on.
                waiter.woken.store(1, Ordering::Release);
            }
            kernel.wake(key, 1);
            woken += 1;
        }
        woken
    }

    /// Removes `waiter` from its bucket. Returns true if it was in one.
    fn withdraw(&self, waiter: &Waiter<M>) -> bool {
        loop {
            let place = waiter.place.load(Ordering::Relaxed);
            let mut first = self.buckets[place as usize].0.lock();
            // A task that moves it needs this lock.
            if waiter.place.load(Ordering::Relaxed) == place {
                // SAFETY: the lock is held.
                return unsafe { withdraw(&mut first, waiter) };
            }
        }
    }

    /// Locks two buckets, in the order of their addresses; the second is `None` if they are one.
    fn lock_both(&self, one: usize, other: usize) -> (Locked<'_, M>, Option<Locked<'_, M>>) {
        let lock = |place: usize| self.buckets[place].0.lock();
        match one.cmp(&other) {
            Less => {
                let one = lock(one);
                (one, Some(lock(other)))
            }
            Equal => (lock(one), None),
            Greater => {
                let other = lock(other);
                (lock(one), Some(other))
            }
        }
    }

    /// The number of the bucket for a name.
    fn place(&self, name: Name) -> usize {
        // Fibonacci hashing of both halves, as for turnstiles.
        let mixed = name.of.rotate_left(32) ^ name.at;
        let hash = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        hash as usize & (self.buckets.len() - 1)
    }

    /// Labels the buckets, for machines that attribute cache lines to names.
    pub fn label(&self) {
        M::label_value::<[_]>(&self.buckets, "Futexes.buckets");
    }
}

/// Appends a list of waiters to the bucket.
///
/// # Safety
/// The bucket's lock is held; the waiters stay until they are dequeued and `woken`.
unsafe fn append<M: Machine>(first: &mut Link<M>, list: Link<M>) {
    if first.0.is_null() {
        *first = list;
        return;
    }
    let mut last = *first;
    // SAFETY: queued nodes live, and the lock is held.
    unsafe {
        while let next = *(*last.0).next.read()
            && !next.0.is_null()
        {
            last = next;
        }
        *(*last.0).next.write() = list;
    }
}

/// Makes the waiters of a list wait for `name`, in the bucket with the number `place`; returns how
/// many they are.
///
/// # Safety
/// The caller has dequeued them, and holds the locks of both buckets.
unsafe fn rename<M: Machine>(list: Link<M>, name: Name, place: u32) -> usize {
    let (mut here, mut count) = (list, 0);
    // SAFETY: dequeued nodes live until `woken` is set, and belong to this call.
    unsafe {
        while !here.0.is_null() {
            (*here.0).name.set(name);
            (*here.0).place.store(place, Ordering::Relaxed);
            here = *(*here.0).next.read();
            count += 1;
        }
    }
    count
}

/// Removes `waiter` from the bucket. Returns true if it was there.
///
/// # Safety
/// The bucket's lock is held.
unsafe fn withdraw<M: Machine>(first: &mut Link<M>, waiter: &Waiter<M>) -> bool {
    let (mut before, mut here) = (Link::<M>(null()), *first);
    // SAFETY: queued nodes live, and the lock is held.
    unsafe {
        while !here.0.is_null() {
            let next = *(*here.0).next.read();
            if !ptr::eq(here.0, waiter) {
                (before, here) = (here, next);
                continue;
            }
            if before.0.is_null() {
                *first = next
            } else {
                *(*before.0).next.write() = next
            }
            return true;
        }
    }
    false
}

/// Removes the first `count` waiters with that name; returns them as a list, in order.
///
/// # Safety
/// The bucket's lock is held.
unsafe fn dequeue<M: Machine>(first: &mut Link<M>, name: Name, count: usize) -> Link<M> {
    let (mut taken, mut last) = (Link(null()), Link::<M>(null()));
    let (mut before, mut here, mut left) = (Link::<M>(null()), *first, count);
    // SAFETY: queued nodes live, and the lock is held; dequeued ones belong to this call.
    unsafe {
        while left > 0 && !here.0.is_null() {
            let waiter = here;
            here = *(*waiter.0).next.read();
            if (*waiter.0).name.get() != name {
                before = waiter;
                continue;
            }
            if before.0.is_null() {
                *first = here
            } else {
                *(*before.0).next.write() = here
            }
            if last.0.is_null() {
                taken = waiter
            } else {
                *(*last.0).next.write() = waiter
            }
            *(*waiter.0).next.write() = Link(null());
            last = waiter;
            left -= 1;
        }
    }
    taken
}
