//! Turnstiles: queues of blocked tasks, found by the address they wait for.
//!
//! A small lock cannot hold a queue. It holds one bit, "tasks wait", and the queue is in a table
//! shared by all locks, found by hashing the lock's address (case studies 000 and 002; FreeBSD's
//! `turnstile(9)`).
//!
//! # Protocol
//! The table has *chains*, each under a spin lock. A chain holds a *turnstile* for each address
//! that tasks wait for, each a FIFO queue. The nodes are on the waiters' stacks; the first waiter's
//! node also is the turnstile, so nothing is allocated and other addresses in the chain cost one
//! step each, however many tasks wait for them.
//!
//! ```text
//! waiter: lock the chain; if the condition still asks for waiting: enqueue, unlock, park
//! waker:  lock the chain; change the condition; dequeue; unlock; mark woken; unpark
//! ```
//! The waiter checks and enqueues under the same lock under which the waker changes and dequeues,
//! so no wake-up falls in between. A node dies once its `woken` is set; the waker reads everything
//! it needs before that, and unparks with no lock held.

use crate::off_cpu::off_cpu;
use crate::padded::Padded;
use alloc::boxed::Box;
use core::ptr::{self, null};
use machine::{Atomic, Machine, Ordering, SharedCell};

/// Chains in the machine's table.
const CHAINS: usize = 128;

/// A table of turnstiles: 128 bytes per chain.
pub struct Turnstiles<M: Machine> {
    chains: Box<[Padded<Slot<M>>]>,
}

/// One chain: a test-and-set lock and the list it guards.
struct Slot<M: Machine> {
    /// 1 while locked.
    locked: M::AtomicU32,
    /// The first turnstile.
    first: M::Cell<Link<M>>,
}

/// A blocked task's node: on its stack, in place until `woken` is set, and on a cache line of its
/// own.
#[repr(align(64))]
struct Waiter<M: Machine> {
    key: usize,
    task: M::Task,
    /// Set to 1 by the waker, in its last access to the node.
    woken: M::AtomicU32,
    /// Guarded by the chain. Once the waiter is dequeued, the waker that dequeued it owns them.
    links: M::Cell<Links<M>>,
}

/// A waiter's links in the queues.
struct Links<M: Machine> {
    /// The next waiter for the same key; once dequeued, the next one to be woken.
    next: Link<M>,
    /// In the first waiter for a key: the last one. Meaningless in others.
    last: Link<M>,
    /// In the first waiter for a key: the first for another key. Meaningless in others.
    sibling: Link<M>,
}

/// A waiter, or null.
struct Link<M: Machine>(*const Waiter<M>);

impl<M: Machine> Clone for Link<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Machine> Copy for Link<M> {}

impl<M: Machine> Link<M> {
    const NULL: Self = Link(null());
}

// SAFETY: a link is followed only under the chain's lock, or by the waker that dequeued its target.
unsafe impl<M: Machine> Send for Link<M> {}

/// A locked chain, with a key. Dropping it unlocks the chain and then wakes the waiters that
/// [`Chain::signal`] and [`Chain::broadcast`] have dequeued.
///
/// The chain is a spin lock and the task is pinned: the holder must not block, and must be quick.
#[must_use = "the chain is unlocked when this is dropped"]
pub struct Chain<'a, M: Machine> {
    slot: &'a Slot<M>,
    /// The address that the chain was locked for.
    base: usize,
    /// The key of the queue in use: `base` plus a small number.
    key: usize,
    /// Dequeued waiters to be woken: the first and the last, linked by `next`.
    woken: (Link<M>, Link<M>),
    _pin: M::Pin,
}

impl<M: Machine> Turnstiles<M> {
    /// A table of at least `chains` chains (rounded up to a power of two).
    pub fn new(chains: usize) -> Self {
        let slot = || Slot {
            locked: M::AtomicU32::new(0),
            first: M::Cell::new(Link::NULL),
        };
        let count = chains.max(1).next_power_of_two();
        let chains: Box<[_]> = (0..count).map(|_| Padded(slot())).collect();
        M::label_value(&*chains, "Turnstiles.chains");
        Turnstiles { chains }
    }

    /// The table that all locks of the machine share.
    pub fn global() -> &'static Self {
        M::anchor().get_or_init(|| Self::new(CHAINS))
    }

    /// Locks the chain of `key`. The key is only compared, never followed.
    pub fn lock(&self, key: *const ()) -> Chain<'_, M> {
        let base = key as usize;
        // Fibonacci hashing: the upper half of the product depends on all bits of
        // the address. The table's length is a power of two below 2^32.
        let hash = (M::key(base) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let slot = &*self.chains[hash as usize & (self.chains.len() - 1)];
        let pin = M::pin();
        slot.lock();
        Chain {
            slot,
            base,
            key: base,
            woken: (Link::NULL, Link::NULL),
            _pin: pin,
        }
    }
}

impl<M: Machine> Slot<M> {
    fn lock(&self) {
        M::spin_until(|| {
            // Acquire: pairs with the release in `unlock`. The load keeps waiters from taking the
            // cache line from the holder.
            self.locked.load(Ordering::Relaxed) == 0
                && self
                    .locked
                    .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
        });
    }

    fn unlock(&self) {
        // Release: pairs with the acquire in `lock`.
        self.locked.store(0, Ordering::Release);
    }
}

impl<M: Machine> Chain<'_, M> {
    /// Selects another queue of the same object, in the same chain.
    ///
    /// An object of n bytes may use n queues: 0, with which the chain is locked, to n − 1. Their
    /// keys are the addresses of the object's own bytes, so no other object uses them.
    pub fn select(&mut self, queue: usize) -> &mut Self {
        self.key = self.base.wrapping_add(queue);
        self
    }

    /// Enqueues the calling task at the end, unlocks the chain, and blocks until the task is woken.
    /// Everything that the waker did before is then visible.
    pub fn wait(self) {
        self.block(Place::Last);
    }

    /// Enqueues the calling task at the head, unlocks the chain, and blocks until the task is
    /// woken. For a task that was woken in vain, so that it does not lose its turn.
    pub fn wait_first(self) {
        self.block(Place::First);
    }

    fn block(self, place: Place) {
        let waiter = Waiter {
            key: self.key,
            task: M::current_task(),
            woken: M::AtomicU32::new(0),
            links: M::Cell::new(Links {
                next: Link::NULL,
                last: Link::NULL,
                sibling: Link::NULL,
            }),
        };
        // SAFETY: the node stays until `woken` is set.
        unsafe { self.enqueue(&waiter, place) };
        drop(self);
        off_cpu::<M, _>(|| {
            // Acquire: pairs with the release in `wake`; the node is this task's again.
            while waiter.woken.load(Ordering::Acquire) == 0 {
                M::park();
            }
        });
        // This tells a checker so, and does nothing else.
        waiter.links.into_inner();
    }

    /// Takes the first waiter from the queue; it is woken when the chain is dropped. Returns true
    /// if there was one.
    pub fn signal(&mut self) -> bool {
        let (before, first) = self.find();
        if first.0.is_null() {
            return false;
        }
        // SAFETY: queued nodes live, and the chain is locked.
        unsafe {
            let links = (*first.0).links.write();
            let next = (*links).next;
            let (last, sibling) = ((*links).last, (*links).sibling);
            if next.0.is_null() {
                self.relink(before, sibling);
            } else {
                // The second waiter becomes the turnstile.
                let links = (*next.0).links.write();
                (*links).last = last;
                (*links).sibling = sibling;
                self.relink(before, next);
            }
            (*links).next = Link::NULL;
        }
        self.collect(first, first);
        true
    }

    /// Takes all waiters from the queue; they are woken in FIFO order when the chain is dropped.
    /// Returns how many there were.
    pub fn broadcast(&mut self) -> usize {
        let (before, first) = self.find();
        if first.0.is_null() {
            return 0;
        }
        let mut count = 0;
        // SAFETY: queued nodes live, and the chain is locked.
        let last = unsafe {
            let links = (*first.0).links.read();
            let (last, sibling) = ((*links).last, (*links).sibling);
            self.relink(before, sibling);
            let mut waiter = first;
            while !waiter.0.is_null() {
                count += 1;
                waiter = (*(*waiter.0).links.read()).next;
            }
            last
        };
        self.collect(first, last);
        count
    }

    /// Returns true if tasks wait in the queue.
    pub fn has_waiters(&self) -> bool {
        !self.find().1.0.is_null()
    }

    /// The key's turnstile and its predecessor in the chain; null for none.
    fn find(&self) -> (Link<M>, Link<M>) {
        let mut before = Link::NULL;
        // SAFETY: the chain is locked, so only this task accesses its cells, and queued nodes live.
        unsafe {
            let mut here = *self.slot.first.read();
            while !here.0.is_null() && (*here.0).key != self.key {
                before = here;
                here = (*(*here.0).links.read()).sibling;
            }
            (before, here)
        }
    }

    /// Makes `to` the successor of `before` in the chain (null: the chain's first).
    ///
    /// # Safety
    /// Both are null or queued here.
    unsafe fn relink(&self, before: Link<M>, to: Link<M>) {
        // SAFETY: the chain is locked, and both nodes are null or queued here.
        unsafe {
            if before.0.is_null() {
                *self.slot.first.write() = to;
            } else {
                (*(*before.0).links.write()).sibling = to;
            }
        }
    }

    /// # Safety
    /// The waiter stays valid and in place until its `woken` is set.
    unsafe fn enqueue(&self, waiter: &Waiter<M>, place: Place) {
        let this = Link(ptr::from_ref(waiter));
        let (before, first) = self.find();
        // SAFETY: the chain is locked, and queued nodes live.
        unsafe {
            if first.0.is_null() {
                let links = waiter.links.write();
                (*links).last = this;
                (*links).sibling = *self.slot.first.read();
                *self.slot.first.write() = this;
                return;
            }
            let head = (*first.0).links.write();
            match place {
                Place::Last => {
                    let last = (*head).last;
                    (*head).last = this;
                    (*(*last.0).links.write()).next = this;
                }
                Place::First => {
                    *waiter.links.write() = Links {
                        next: first,
                        last: (*head).last,
                        sibling: (*head).sibling,
                    };
                    self.relink(before, this);
                }
            }
        }
    }

    /// Adds the dequeued nodes `first` to `last` to those to be woken.
    fn collect(&mut self, first: Link<M>, last: Link<M>) {
        if self.woken.0.0.is_null() {
            self.woken.0 = first;
        } else {
            // SAFETY: a dequeued node lives until it is woken.
            unsafe { (*(*self.woken.1.0).links.write()).next = first };
        }
        self.woken.1 = last;
    }
}

/// A waiter's place in its queue.
enum Place {
    First,
    Last,
}

impl<M: Machine> Drop for Chain<'_, M> {
    fn drop(&mut self) {
        self.slot.unlock();
        let mut next = self.woken.0;
        while !next.0.is_null() {
            // SAFETY: this chain dequeued the waiter and has not woken it yet.
            let waiter = unsafe { &*next.0 };
            // SAFETY: the links of a dequeued waiter belong to the chain that dequeued it.
            next = unsafe { (*waiter.links.read()).next };
            wake(waiter);
        }
    }
}

/// Wakes a dequeued waiter; the node is dead afterwards.
fn wake<M: Machine>(waiter: &Waiter<M>) {
    let task = waiter.task;
    // Release: pairs with the acquire in `block`. From here on the node may have been freed.
    waiter.woken.store(1, Ordering::Release);
    M::unpark(task);
}
