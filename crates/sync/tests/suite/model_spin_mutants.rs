//! The models of `model_spin.rs` can fail: each lock family with one planted bug.

use crate::model;

use loomed::Loomed;
use loomed::flaw::{Flaw, Site, must_be_found};
use machine::{Atomic, AtomicInt, Atomics, Cpus, Ordering, Pinned, Tasks};
use model::{bounded, reused_node, two_threads};
use std::panic::catch_unwind;
use std::ptr::{self, null_mut};
use sync::RawLock;
use sync::spin::{Clh, Hapax, Reciprocating, TestAndSet, Ticket};

/// An order that is missing is found: what one task did under the lock races with the next.
#[test]
fn locks_that_order_nothing() {
    let tas = include_str!("../../src/spin/tas.rs");
    let acquires = Site::after(
        "spin/tas.rs",
        tas,
        "// Acquire: pairs with the release in `unlock`.",
    );
    must_be_found(Flaw::Relaxed, acquires, two_threads::<TestAndSet<Loomed>>);
    let ticket = include_str!("../../src/spin/ticket.rs");
    let releases = Site::after(
        "spin/ticket.rs",
        ticket,
        "// Release: pairs with the acquire loads",
    );
    must_be_found(Flaw::Relaxed, releases, two_threads::<Ticket<Loomed>>);
    let clh = include_str!("../../src/spin/clh.rs");
    let releases = Site::after("spin/clh.rs", clh, "// SAFETY: the holder's node;");
    must_be_found(Flaw::Relaxed, releases, two_threads::<Clh<Loomed>>);
}

#[test]
fn a_reciprocating_lock_that_orders_nothing() {
    let source = include_str!("../../src/spin/reciprocating.rs");
    let site = |comment| Site::after("spin/reciprocating.rs", source, comment);
    let model = two_threads::<Reciprocating<Loomed>>;
    let three = || bounded::<Reciprocating<Loomed>>(2, &[1, 1, 1]);
    let opens = site("// Release: pairs with the acquire of the waiter's spin.");
    must_be_found(Flaw::Relaxed, opens, model);
    let frees = site("// Release: pairs with the acquire by which a task finds the lock free.");
    must_be_found(Flaw::Relaxed, frees, model);
    let takes = site("// Acquire: sees the node at the top initialised, and by its own");
    must_be_found(Flaw::Relaxed, takes, three);
}

#[test]
fn a_hapax_lock_that_orders_nothing() {
    let source = include_str!("../../src/spin/hapax.rs");
    let site = |comment| Site::after("spin/hapax.rs", source, comment);
    let model = two_threads::<Hapax<Loomed>>;
    let departs = site("// Release: pairs with the acquire in `is_next` and `try_lock`.");
    must_be_found(Flaw::Relaxed, departs, model);
    // A waiter that sees the change may see no departure then, and waits for another change.
    let tells = site("// Release: pairs with the acquire in `wait`.");
    must_be_found(Flaw::Relaxed, tells, model);
}

type U8 = <Loomed as Atomics>::AtomicU8;
type U32 = <Loomed as Atomics>::AtomicU32;
type Ptr = <Loomed as Atomics>::AtomicPtr;

/// A ticket lock whose `lock` thinks that being next in line is its turn.
struct EarlyTicket {
    next: U32,
    serving: U32,
}

// SAFETY: none; it is no lock, and the model must find that.
unsafe impl RawLock<Loomed> for EarlyTicket {
    type Held = ();
    const NAME: &'static str = "ticket";
    fn new() -> Self {
        EarlyTicket {
            next: U32::new(0),
            serving: U32::new(0),
        }
    }
    fn lock(&self) {
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        Loomed::spin_until(|| {
            let ahead = ticket.wrapping_sub(self.serving.load(Ordering::Acquire));
            ahead <= 1
        });
    }
    fn try_lock(&self) -> Option<()> {
        None
    }
    unsafe fn unlock(&self, (): ()) {
        let serving = self.serving.load(Ordering::Relaxed);
        self.serving.store(serving + 1, Ordering::Release);
    }
    fn is_locked(&self) -> bool {
        false
    }
}

#[test]
fn ticket_that_goes_one_early() {
    assert!(catch_unwind(two_threads::<EarlyTicket>).is_err());
}

/// A queue node; leaked, so that no bug of a mutant is one of memory.
struct Node {
    next: Ptr,
    waiting: U8,
}

impl Node {
    fn leak() -> &'static Node {
        Box::leak(Box::new(Node {
            next: Ptr::new(null_mut()),
            waiting: U8::new(1),
        }))
    }
    fn address(&self) -> *mut () {
        ptr::from_ref(self).cast_mut().cast()
    }
}

/// The node at an address in a queue.
fn node(at: *mut ()) -> &'static Node {
    // SAFETY: queues hold leaked nodes only.
    unsafe { &*at.cast::<Node>() }
}

/// Empties a queue if `last` is its tail.
fn empty(tail: &Ptr, last: *mut (), new: *mut ()) -> bool {
    tail.compare_exchange(last, new, Ordering::Release, Ordering::Relaxed)
        .is_ok()
}

/// Waits for a successor to link itself.
fn successor(next: &Ptr) -> *mut () {
    let mut found = null_mut();
    Loomed::spin_until(|| {
        found = next.load(Ordering::Acquire);
        !found.is_null()
    });
    found
}

/// MCS whose unlock empties the queue by a store, unless `CAS`.
struct Mcs<const CAS: bool>(Ptr);

// SAFETY: it is a lock only with `CAS`; the model has to say so.
unsafe impl<const CAS: bool> RawLock<Loomed> for Mcs<CAS> {
    type Held = &'static Node;
    const NAME: &'static str = "mcs, unlock without compare-and-swap";
    fn new() -> Self {
        Mcs(Ptr::new(null_mut()))
    }
    fn lock(&self) -> &'static Node {
        let this = Node::leak();
        let prev = self.0.swap(this.address(), Ordering::AcqRel);
        if !prev.is_null() {
            node(prev).next.store(this.address(), Ordering::Release);
            Loomed::spin_until(|| this.waiting.load(Ordering::Acquire) == 0);
        }
        this
    }
    fn try_lock(&self) -> Option<&'static Node> {
        None
    }
    unsafe fn unlock(&self, held: &'static Node) {
        let mut next = held.next.load(Ordering::Acquire);
        if CAS && next.is_null() {
            if empty(&self.0, held.address(), null_mut()) {
                return;
            }
            next = successor(&held.next);
        }
        if next.is_null() {
            self.0.store(null_mut(), Ordering::Release);
        } else {
            node(next).waiting.store(0, Ordering::Release);
        }
    }
    fn is_locked(&self) -> bool {
        false
    }
}

#[test]
fn mcs_unlock_without_compare_and_swap() {
    assert!(catch_unwind(two_threads::<Mcs<false>>).is_err());
    bounded::<Mcs<true>>(2, &[2, 1]);
}

/// K42 whose unlock empties the queue by a store, unless `CAS`.
struct K42<const CAS: bool> {
    tail: Ptr,
    next: Ptr,
}

const HELD: *mut () = ptr::without_provenance_mut(1);

// SAFETY: it is a lock only with `CAS`; the model has to say so.
unsafe impl<const CAS: bool> RawLock<Loomed> for K42<CAS> {
    type Held = ();
    const NAME: &'static str = "k42, unlock without compare-and-swap";
    fn new() -> Self {
        K42 {
            tail: Ptr::new(null_mut()),
            next: Ptr::new(null_mut()),
        }
    }
    fn lock(&self) {
        let this = Node::leak();
        let mut prev = null_mut::<()>();
        loop {
            let new = if prev.is_null() { HELD } else { this.address() };
            match self
                .tail
                .compare_exchange(prev, new, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) if prev.is_null() => return,
                Ok(_) => break,
                Err(tail) => prev = tail,
            }
        }
        let link = if prev == HELD {
            &self.next
        } else {
            &node(prev).next
        };
        link.store(this.address(), Ordering::Release);
        Loomed::spin_until(|| this.waiting.load(Ordering::Acquire) == 0);
        self.next.store(null_mut(), Ordering::Relaxed);
        if !empty(&self.tail, this.address(), HELD) {
            self.next.store(successor(&this.next), Ordering::Relaxed);
        }
    }
    fn try_lock(&self) -> Option<()> {
        None
    }
    unsafe fn unlock(&self, (): ()) {
        let mut next = self.next.load(Ordering::Acquire);
        if CAS && next.is_null() {
            if empty(&self.tail, HELD, null_mut()) {
                return;
            }
            next = successor(&self.next);
        }
        if next.is_null() {
            self.tail.store(null_mut(), Ordering::Release);
        } else {
            node(next).waiting.store(0, Ordering::Release);
        }
    }
    fn is_locked(&self) -> bool {
        false
    }
}

#[test]
fn k42_unlock_without_compare_and_swap() {
    assert!(catch_unwind(two_threads::<K42<false>>).is_err());
    bounded::<K42<true>>(2, &[2, 1]);
}

/// The bugs of [`ReusingClh`].
mod bug {
    pub const NONE: u8 = 0;
    /// `try_lock` does not look again after its exchange.
    pub const NO_RECHECK: u8 = 1;
    /// `try_lock` leaves with its node freed, instead of naming the one before.
    pub const FREED: u8 = 2;
    /// `try_lock` leaves and tells no task.
    pub const UNNAMED: u8 = 3;
}

/// CLH with nodes that are reused, which `try_lock` has to take into account. A task keeps its last
/// unused node in a local word.
struct ReusingClh<const BUG: u8>(Ptr);

/// A word that the crate leaves free.
const UNUSED_NODE: usize = 2;

/// The state of a free node.
const FREE: *mut () = null_mut();

fn take_node() -> &'static Node {
    let kept = Loomed::with_locals(|locals| locals.words[UNUSED_NODE].replace(0));
    let this = if kept == 0 {
        Node::leak()
    } else {
        node(ptr::with_exposed_provenance_mut(kept))
    };
    this.next.store(HELD, Ordering::Relaxed);
    this
}

fn give_node(at: *mut ()) {
    Loomed::with_locals(|locals| locals.words[UNUSED_NODE].set(at.expose_provenance()));
}

impl<const BUG: u8> ReusingClh<BUG> {
    fn follow(mut pred: *mut ()) -> Result<(), *mut ()> {
        while !pred.is_null() {
            let next = node(pred).next.load(Ordering::Acquire);
            if next == HELD {
                return Err(pred);
            }
            give_node(pred);
            pred = next;
        }
        Ok(())
    }
}

// SAFETY: it is a lock only without a bug; the model has to say so.
unsafe impl<const BUG: u8> RawLock<Loomed> for ReusingClh<BUG> {
    type Held = &'static Node;
    const NAME: &'static str = "clh, nodes used again";
    fn new() -> Self {
        ReusingClh(Ptr::new(null_mut()))
    }
    fn lock(&self) -> &'static Node {
        let this = take_node();
        let mut pred = self.0.swap(this.address(), Ordering::AcqRel);
        Loomed::spin_until(|| match Self::follow(pred) {
            Ok(()) => true,
            Err(behind) => {
                pred = behind;
                false
            }
        });
        this
    }
    fn try_lock(&self) -> Option<&'static Node> {
        let pred = self.0.load(Ordering::Acquire);
        if !pred.is_null() && node(pred).next.load(Ordering::Relaxed) == HELD {
            return None;
        }
        let this = take_node();
        let queued =
            self.0
                .compare_exchange(pred, this.address(), Ordering::AcqRel, Ordering::Relaxed);
        if queued.is_err() {
            return None;
        }
        if let Err(pred) = Self::follow(pred)
            && BUG != bug::NO_RECHECK
        {
            if !empty(&self.0, this.address(), pred) {
                match BUG {
                    bug::FREED => this.next.store(FREE, Ordering::Release),
                    bug::UNNAMED => {}
                    _ => this.next.store(pred, Ordering::Release),
                }
            }
            return None;
        }
        Some(this)
    }
    unsafe fn unlock(&self, held: &'static Node) {
        held.next.store(FREE, Ordering::Release);
    }
    fn is_locked(&self) -> bool {
        false
    }
}

/// That the first bug is found shows that the model queues behind a node that has come back; that
/// the others are found shows that another task then queues there before the attempt has left.
#[test]
fn clh_try_lock_fooled_by_a_reused_node() {
    let caught = |model: fn()| catch_unwind(model).is_err();
    reused_node::<ReusingClh<{ bug::NONE }>>(None, &[2]);
    assert!(caught(|| {
        reused_node::<ReusingClh<{ bug::NO_RECHECK }>>(None, &[2]);
    }));
    reused_node::<ReusingClh<{ bug::NONE }>>(Some(4), &[3]);
    assert!(caught(|| {
        reused_node::<ReusingClh<{ bug::UNNAMED }>>(Some(4), &[3]);
    }));
    reused_node::<ReusingClh<{ bug::NONE }>>(Some(3), &[2, 1]);
    assert!(caught(|| {
        reused_node::<ReusingClh<{ bug::FREED }>>(Some(3), &[2, 1]);
    }));
}

/// The bugs of [`Queued`].
mod queued {
    pub const NONE: u8 = 0;
    /// The first of the queue does not wait for the pending task.
    pub const STEALS: u8 = 1;
    /// A task that queues clears the bit of the pending one.
    pub const CLEARS: u8 = 2;
}

/// Linux's queued lock, with a node for each CPU.
struct Queued<const BUG: u8> {
    word: U32,
    nodes: [&'static Node; 3],
}

const LOCKED: u32 = 1;
const PENDING: u32 = 2;
const TAIL: u32 = !3;

// SAFETY: it is a lock only without a bug; the model has to say so.
unsafe impl<const BUG: u8> RawLock<Loomed> for Queued<BUG> {
    type Held = ();
    const NAME: &'static str = "qspinlock";
    fn new() -> Self {
        Queued {
            word: U32::new(0),
            nodes: std::array::from_fn(|_| Node::leak()),
        }
    }
    fn lock(&self) {
        let taken = self
            .word
            .compare_exchange(0, LOCKED, Ordering::Acquire, Ordering::Relaxed);
        let Err(seen) = taken else { return };
        if seen & !LOCKED == 0 {
            let seen = self.word.fetch_or(PENDING, Ordering::Acquire);
            if seen & !LOCKED == 0 {
                Loomed::spin_until(|| self.word.load(Ordering::Acquire) & LOCKED == 0);
                self.word.fetch_sub(PENDING - LOCKED, Ordering::Relaxed);
                return;
            }
            if seen & PENDING == 0 {
                self.word.fetch_and(!PENDING, Ordering::Relaxed);
            }
        }
        let cpu = Loomed::pin().cpu().index();
        let (this, code) = (self.nodes[cpu], (cpu as u32 + 1) << 2);
        let before = self
            .word
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |seen| {
                let kept = match BUG {
                    queued::CLEARS => LOCKED,
                    _ => LOCKED | PENDING,
                };
                Some(seen & kept | code)
            });
        let before = before.expect("not refused") & TAIL;
        if before != 0 {
            let before = self.nodes[(before >> 2) as usize - 1];
            before.next.store(this.address(), Ordering::Release);
            Loomed::spin_until(|| this.waiting.load(Ordering::Acquire) == 0);
        }
        let bits = match BUG {
            queued::STEALS => LOCKED,
            _ => LOCKED | PENDING,
        };
        let mut seen = 0;
        Loomed::spin_until(|| {
            seen = self.word.load(Ordering::Acquire);
            seen & bits == 0
        });
        let last = seen & TAIL == code
            && self
                .word
                .compare_exchange(seen, LOCKED, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if !last {
            self.word.fetch_or(LOCKED, Ordering::Relaxed);
            node(successor(&this.next))
                .waiting
                .store(0, Ordering::Release);
        }
    }
    fn try_lock(&self) -> Option<()> {
        None
    }
    unsafe fn unlock(&self, (): ()) {
        self.word.fetch_and(!LOCKED, Ordering::Release);
    }
    fn is_locked(&self) -> bool {
        false
    }
}

#[test]
fn queued_lock_whose_pending_task_is_overlooked() {
    bounded::<Queued<{ queued::NONE }>>(1, &[1, 1, 1]);
    assert!(catch_unwind(|| bounded::<Queued<{ queued::STEALS }>>(1, &[1, 1, 1])).is_err());
    assert!(catch_unwind(|| bounded::<Queued<{ queued::CLEARS }>>(1, &[1, 1, 1])).is_err());
}

/// CNA as in the paper, on MCS, for three tasks: the holder passes over a waiter of the other NUMA
/// node, once. Unless `KEEPS`, a queue that has become empty forgets that waiter.
struct Cna<const KEEPS: bool> {
    tail: Ptr,
    /// The waiter that was passed over. Owned by the lock's holder.
    aside: Ptr,
}

// SAFETY: it is a lock only if it `KEEPS`; the model has to say so.
unsafe impl<const KEEPS: bool> RawLock<Loomed> for Cna<KEEPS> {
    type Held = &'static Node;
    const NAME: &'static str = "cna";
    fn new() -> Self {
        Cna {
            tail: Ptr::new(null_mut()),
            aside: Ptr::new(null_mut()),
        }
    }
    fn lock(&self) -> &'static Node {
        let this = Node::leak();
        let before = self.tail.swap(this.address(), Ordering::AcqRel);
        if !before.is_null() {
            node(before).next.store(this.address(), Ordering::Release);
            Loomed::spin_until(|| this.waiting.load(Ordering::Acquire) == 0);
        }
        this
    }
    fn try_lock(&self) -> Option<&'static Node> {
        None
    }
    unsafe fn unlock(&self, held: &'static Node) {
        let aside = self.aside.load(Ordering::Relaxed);
        let mut next = held.next.load(Ordering::Acquire);
        if next.is_null() {
            let rest = if KEEPS { aside } else { null_mut() };
            if empty(&self.tail, held.address(), rest) {
                if !rest.is_null() {
                    self.aside.store(null_mut(), Ordering::Relaxed);
                    node(rest).waiting.store(0, Ordering::Release);
                }
                return;
            }
            next = successor(&held.next);
        }
        let after = node(next).next.load(Ordering::Acquire);
        if aside.is_null() && !after.is_null() {
            node(next).next.store(null_mut(), Ordering::Relaxed);
            self.aside.store(next, Ordering::Relaxed);
            next = after;
        }
        node(next).waiting.store(0, Ordering::Release);
    }
    fn is_locked(&self) -> bool {
        false
    }
}

#[test]
fn cna_that_forgets_the_secondary_queue() {
    bounded::<Cna<true>>(1, &[1, 1, 1]);
    assert!(catch_unwind(|| bounded::<Cna<false>>(1, &[1, 1, 1])).is_err());
}
