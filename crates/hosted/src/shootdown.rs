//! The shootdown protocol between CPUs that cannot be interrupted.
//!
//! On hardware an initiator interrupts its targets. A thread takes no interrupts, so a CPU here
//! takes them at instruction boundaries: before each load and store of a task it checks its
//! mailbox.
//!
//! # Protocol
//! Each CPU has a [`Gate`]: a state word and a mailbox.
//!
//! - **access** (the owner): make the state odd and fence (`publish`); if the mailbox holds
//!   requests, take them and flush; translate, perform the access; make the state even, with
//!   release.
//! - **shootdown** (an initiator, which has already changed the tables): post the request into each
//!   target's mailbox, with release; fence; read each target's state. If it is even, that target is
//!   done; if it is odd, wait until it has changed.
//!
//! # Why no CPU uses a flushed entry once the shootdown has returned
//! Take any access of a target. In the one order of all fences, the target's fence either precedes
//! or follows the initiator's.
//!
//! - It *follows*: the owner checks its mailbox after its fence and so sees the request posted
//!   before the initiator's fence; it flushes before it translates. Because taking a request
//!   acquires what posting it released, a walk sees the tables as the initiator left them.
//! - It *precedes*: the initiator, after its fence, sees the state that this access made odd, or a
//!   later one. While it sees that odd value it waits. A later value was stored after the access,
//!   so the acquiring load of it makes the access, dirty bit and written data included, happen
//!   before the shootdown's return.
//!
//! A change of the state is the acknowledgement. A request whose target is not translating stays in
//! the mailbox: such a CPU can use no entry before it has checked there, like a kernel's idle CPU
//! in lazy TLB mode. The request is *deferred*.
//!
//! An initiator waits for at most one access of each target, and an access waits for nothing; an
//! initiator is not translating. So CPUs with shootdowns for each other make progress.
//!
//! # The mailbox
//! [`SLOTS`] places and two words of bits, one bit per place. Posting: take a bit from `free`, fill
//! the place, set its bit in `ready`. Taking: exchange `ready` for 0, read the places, return their
//! bits to `free`. No place waits for another, so a poster that the host has stopped half-way hides
//! no request but its own, which is not posted yet. When all places are taken, a bit of its own in
//! `ready` asks to drop everything.

use machine::{Asid, Atomic, AtomicInt, Atomics, Cpus, Flush, Ordering, PAGE_SIZE, VaRange};

/// Requests a mailbox holds before it asks to drop everything.
pub const SLOTS: usize = 16;

/// All the places.
const PLACES: u64 = (1 << SLOTS) - 1;
/// The bit in `ready` to drop everything, whatever the places say.
const EVERYTHING: u64 = 1 << 63;

/// A flush that the owner of a mailbox has to perform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Entries of one ASID.
    Flush(Asid, Flush),
    /// All entries of all ASIDs: more was asked than the mailbox holds.
    Everything,
}

/// How a request ended for its initiator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The target was performing an access and has ended it.
    Acknowledged,
    /// The target was not translating; it flushes before it does so again.
    Deferred,
}

/// The state and the mailbox of one CPU, on one pair of cache lines.
#[repr(align(128))]
pub struct Gate<M: Atomics> {
    /// Odd while the CPU translates; grows by 2 per access. Written by the owner.
    state: M::AtomicU64,
    /// Requests that are complete, as bits, and [`EVERYTHING`].
    ready: M::AtomicU64,
    /// Unused places, as bits.
    free: M::AtomicU64,
    /// The CPU that took a place's bit from `free` writes the place; the owner reads it after it
    /// found the bit in `ready`.
    slots: [Slot<M>; SLOTS],
}

/// A request: the page number under the ASID, and the number of pages or [`ALL`].
struct Slot<M: Atomics> {
    start: M::AtomicU64,
    pages: M::AtomicU64,
}

/// Stands for the whole address space.
const ALL: u64 = u64::MAX;
/// Where the ASID stands above a page number.
const ASID_SHIFT: u32 = 48;

/// The owner translates while this lives.
#[must_use = "the access ends when this is dropped"]
pub struct Access<'a, M: Atomics> {
    gate: &'a Gate<M>,
    /// The state after the access.
    after: u64,
}

impl<M: Atomics> Gate<M> {
    /// A gate that is not translating, with an empty mailbox.
    pub fn new() -> Self {
        Gate {
            state: M::AtomicU64::new(0),
            ready: M::AtomicU64::new(0),
            free: M::AtomicU64::new(PLACES),
            slots: core::array::from_fn(|_| Slot {
                start: M::AtomicU64::new(0),
                pages: M::AtomicU64::new(0),
            }),
        }
    }

    /// Begins an access. Called by the owner, which must then [`Gate::serve`] before it translates.
    #[inline]
    pub fn begin(&self) -> Access<'_, M> {
        let before = self.state.load(Ordering::Relaxed);
        // Pairs with the fence in `reach`; see the protocol.
        self.state.publish(before + 1);
        Access {
            gate: self,
            after: before + 2,
        }
    }

    /// Takes the requests and makes `forget` carry them out. Called by the owner; returns the
    /// number of orders.
    #[inline]
    pub fn serve(&self, forget: impl FnMut(Order)) -> u64 {
        // Relaxed: the fence of `begin` has ordered it after the state; requests that are found are
        // taken with acquire.
        if self.ready.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        self.take(forget)
    }

    #[cold]
    fn take(&self, mut forget: impl FnMut(Order)) -> u64 {
        // Acquire: pairs with the release of each `post` whose bit is found.
        let ready = self.ready.swap(0, Ordering::Acquire);
        let places = ready & PLACES;
        let mut orders = 0;
        if ready & EVERYTHING != 0 {
            forget(Order::Everything);
            orders = 1;
        } else {
            let mut rest = places;
            while rest != 0 {
                forget(self.slots[rest.trailing_zeros() as usize].get());
                rest &= rest - 1;
                orders += 1;
            }
        }
        // Release: pairs with the acquire in `post`; the places have been read.
        self.free.fetch_or(places, Ordering::Release);
        orders
    }

    /// An initiator posts a request. It must fence (`SeqCst`) between its posts and
    /// [`Gate::settle`].
    fn post(&self, asid: Asid, what: Flush) {
        // Release, at both ends: the owner sees the request and the changed tables.
        let Some(place) = self.claim() else {
            self.ready.fetch_or(EVERYTHING, Ordering::Release);
            return;
        };
        self.slots[place].set(asid, what);
        self.ready.fetch_or(1 << place, Ordering::Release);
    }

    /// Takes a free place.
    fn claim(&self) -> Option<usize> {
        let mut free = self.free.load(Ordering::Relaxed);
        while free != 0 {
            // Acquire: pairs with the release in `take`; the owner has read the place.
            match self.free.compare_exchange_weak(
                free,
                free & (free - 1),
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(free.trailing_zeros() as usize),
                Err(now) => free = now,
            }
        }
        None
    }
}

/// An initiator, which has changed the tables, posts a request to the owners of `gates`, and waits
/// for each. `settled` is called with each outcome, and `meanwhile` in each round of a wait.
pub fn reach<'a, M: Atomics + Cpus + 'a, I: Iterator<Item = &'a Gate<M>>>(
    gates: impl Fn() -> I,
    asid: Asid,
    what: Flush,
    mut meanwhile: impl FnMut(),
    settled: impl FnMut(Outcome),
) {
    gates().for_each(|gate| gate.post(asid, what));
    // Pairs with the fence at the beginning of an access.
    M::fence(Ordering::SeqCst);
    let outcomes = gates().map(|gate| gate.settle(&mut meanwhile));
    outcomes.for_each(settled);
}

impl<M: Atomics + Cpus> Gate<M> {
    /// An initiator waits until no access that began before its fence is still in progress. Calls
    /// `meanwhile` in each round.
    fn settle(&self, mut meanwhile: impl FnMut()) -> Outcome {
        // Acquire (here and below): pairs with the release at the end of an access.
        let seen = self.state.load(Ordering::Acquire);
        if seen % 2 == 0 {
            return Outcome::Deferred;
        }
        M::spin_until(|| {
            meanwhile();
            self.state.load(Ordering::Acquire) != seen
        });
        Outcome::Acknowledged
    }
}

impl<M: Atomics> Drop for Access<'_, M> {
    #[inline]
    fn drop(&mut self) {
        // Release: pairs with the acquire in `settle`; the access is performed.
        self.gate.state.store(self.after, Ordering::Release);
    }
}

// Relaxed throughout: the bit words order the places.
impl<M: Atomics> Slot<M> {
    fn set(&self, asid: Asid, what: Flush) {
        let (start, pages) = match what {
            Flush::All => (0, ALL),
            Flush::Range(range) => {
                let first = range.start / PAGE_SIZE;
                let pages = range.end.div_ceil(PAGE_SIZE).saturating_sub(first);
                (first as u64, pages as u64)
            }
        };
        let tagged = start | (asid.0 as u64) << ASID_SHIFT;
        self.start.store(tagged, Ordering::Relaxed);
        self.pages.store(pages, Ordering::Relaxed);
    }

    fn get(&self) -> Order {
        let tagged = self.start.load(Ordering::Relaxed);
        let what = match self.pages.load(Ordering::Relaxed) {
            ALL => Flush::All,
            pages => {
                let start = (tagged & ((1 << ASID_SHIFT) - 1)) as usize * PAGE_SIZE;
                Flush::Range(VaRange::sized(start, pages as usize * PAGE_SIZE))
            }
        };
        Order::Flush(Asid((tagged >> ASID_SHIFT) as u16), what)
    }
}

impl<M: Atomics> Default for Gate<M> {
    fn default() -> Self {
        Self::new()
    }
}
