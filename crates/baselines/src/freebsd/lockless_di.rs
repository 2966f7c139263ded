//! Delayed invalidation on a list without a lock: FreeBSD since May 2019 (r347695).
//!
//! # Protocol
//! Blocks get numbers, *generations*, in the order in which they start, and are linked in a list,
//! oldest first, from a head whose generation is the published one. An element is a pair
//! (generation, next) exchanged as one. The lowest bit of `next`, [`INVALID`], is set if its
//! element is not linked or is about to leave.
//!
//! - **start**: walk to the last element; if one on the way is invalid, begin again. Own generation
//!   = its generation + 1; exchange its pair (g, none) for (g, own). Then make own `next` valid, so
//!   that others may pass and link behind it.
//! - **finish**: walk to the predecessor. Make own `next` invalid: from here on no block links
//!   behind it or raises the generation. Exchange the predecessor's pair (g, own) for (own
//!   generation, own next). If that fails, make `next` valid again and begin anew.
//! - **wait**: until the head's generation has reached the page's.
//!
//! The exchange in *finish* unlinks and hands the generation on in one step; when the predecessor
//! is the head, it publishes. Generations of linked elements only grow, so a CPU that left and came
//! back to the same place is not mistaken for its earlier self.
//!
//! A walk costs one shared cache line per open block, and each start and finish writes the line of
//! the head or of a neighbour: all CPUs meet in the list.
//!
//! # Waking
//! A waiter counts itself, locks the turnstile's chain, reads the head by an exchange and sleeps if
//! it must. A finish exchanges, then reads the count. One of the two exchanges on the head comes
//! first: if it is the waiter's, the finish sees the count, and wakes the waiter under the chain
//! lock; if the finish's, the waiter sees the generation. (FreeBSD reads the head plainly and arms
//! a one-tick callout for the race.)

use super::elements::Elements;
use super::generation::PerRegion;
use super::{Sound, Steps};
use core::marker::PhantomData;
use machine::{Atomic, AtomicInt, AtomicPair, Frame, Machine, Ordering};
use sync::Padded;
use sync::turnstile::Turnstiles;
use vm::Error;
use vm::system::{Extent, Invalidation, Part};

/// The index of an element's generation; [`NEXT`] is that of its link.
const GENERATION: usize = 0;
const NEXT: usize = 1;

/// The value of `next` in an element that is not linked, or is leaving.
const INVALID: u64 = 1;

/// The head's place; the block with number `i` has place `i + 1`. As a `next` it means none.
const HEAD: u64 = 0;

/// Delayed invalidation on a list without a lock, as in FreeBSD today (`vm.pmap.di_locked=0`).
///
/// FreeBSD links pointers; here links are the numbers of elements (`elements.rs`). A pin is
/// FreeBSD's critical section: a task that enters or leaves is not preempted; in the block it may
/// sleep. FreeBSD also lends an entering thread priority; tasks have none here.
pub struct LocklessDi<M: Machine, S: Steps = Sound> {
    /// `pmap_invl_gen_head`.
    head: Padded<M::AtomicPair>,
    /// `pmap_invl_waiters`: how many tasks wait, or are about to.
    waiters: Padded<M::AtomicU32>,
    blocks: Elements<M, M::AtomicPair>,
    pages: PerRegion<M>,
    /// The most pauses of one delay.
    longest_delay: u32,
    steps: PhantomData<S>,
}

/// An open block of [`LocklessDi`].
#[must_use = "the block ends when this is dropped"]
pub struct LocklessBlock<'a, M: Machine, S: Steps = Sound> {
    di: &'a LocklessDi<M, S>,
    place: u64,
}

/// FreeBSD's `lock_delay`: a delay that doubles each time.
struct Delay {
    pauses: u32,
    longest: u32,
    round: u32,
}

impl Delay {
    /// Delays before another try, after another CPU's exchange was first.
    fn lost(&mut self, on: fn(u32)) {
        self.pauses = (self.pauses * 2).min(self.longest);
        on(self.pauses);
    }

    /// Delays before another walk, after a walk met a CPU in the middle of its step. That CPU is
    /// pinned; if the machine nonetheless preempts pinned CPUs, the delay gives it time.
    fn met<M: Machine>(&mut self) {
        self.lost(M::delay);
        M::relax(self.round);
        self.round = self.round.saturating_add(1);
    }
}

impl<M: Machine, S: Steps> LocklessDi<M, S> {
    fn element(&self, place: u64) -> &M::AtomicPair {
        match place {
            HEAD => &self.head,
            place => self.blocks.of(place as usize - 1),
        }
    }

    fn delay(&self) -> Delay {
        Delay {
            pauses: 1,
            longest: self.longest_delay,
            round: 0,
        }
    }

    /// The place of the element whose `next` is `next`; `None` if the walk met an invalid element,
    /// or missed it (elements may leave and come back at the end).
    fn find(&self, next: u64) -> Option<u64> {
        let mut place = HEAD;
        loop {
            // Acquire: pairs with the exchange that linked the next element, which is seen as it
            // was then, or newer.
            match self.element(place).load_word(NEXT, Ordering::Acquire) {
                found if found == next => return Some(place),
                invalid if invalid & INVALID != 0 => return None,
                HEAD => return None,
                link => place = link >> 1,
            }
        }
    }

    fn start(&self, place: u64) {
        let _pin = M::pin();
        let own = self.element(place);
        let mut delay = self.delay();
        loop {
            let Some(last) = self.find(HEAD) else {
                delay.met::<M>();
                continue;
            };
            let last = self.element(last);
            let seen = last.load();
            if seen[NEXT] != HEAD {
                delay.lost(M::delay);
                continue;
            }
            // Only the owner writes an invalid element, and no walk can find this one before the
            // exchange, which releases it.
            own.store_word(GENERATION, seen[GENERATION] + 1, Ordering::Relaxed);
            let linked = [seen[GENERATION], place << 1];
            if last.compare_exchange(seen, linked).is_ok() {
                break;
            }
            delay.lost(M::delay);
        }
        // Release: pairs with the acquire of a walk, which then sees the generation.
        own.store_word(NEXT, HEAD, Ordering::Release);
    }

    fn finish(&self, place: u64) {
        let _pin = M::pin();
        let own = self.element(place);
        let mut delay = self.delay();
        loop {
            let Some(previous) = self.find(place << 1) else {
                delay.met::<M>();
                continue;
            };
            let [generation, next] = mark(own, S::MARKS);
            // The exchange below acquires what the block after this one did before it handed on its
            // generation, and releases it, with this block's own work, to the block that publishes
            // it.
            let previous = self.element(previous);
            let seen = previous.load();
            if seen[NEXT] == place << 1
                && previous.compare_exchange(seen, [generation, next]).is_ok()
            {
                break;
            }
            if S::MARKS {
                own.store_word(NEXT, next, Ordering::Release);
            }
            delay.lost(M::delay);
        }
        if !S::MARKS {
            own.store_word(NEXT, INVALID, Ordering::Release);
        }
        // Relaxed: see "Waking". If a waiter's exchange came before this finish's, that exchange
        // has acquired the count.
        if self.waiters.load(Ordering::Relaxed) != 0 {
            Turnstiles::<M>::global().lock(self.turnstile()).broadcast();
        }
    }

    /// The key of the waiters' turnstile.
    fn turnstile(&self) -> *const () {
        (&raw const self.head).cast()
    }
}

/// Sets the element's [`INVALID`] and returns its old value; from then on only the owner writes it.
/// (Only reads if `!marks`.)
fn mark(own: &impl AtomicPair, marks: bool) -> [u64; 2] {
    let mut seen = [
        own.load_word(GENERATION, Ordering::Relaxed),
        own.load_word(NEXT, Ordering::Relaxed),
    ];
    let bit = if marks { INVALID } else { 0 };
    loop {
        match own.compare_exchange(seen, [seen[GENERATION], seen[NEXT] | bit]) {
            Ok(before) => return before,
            Err(newer) => seen = newer,
        }
    }
}

impl<M: Machine, S: Steps> Part<M> for LocklessDi<M, S> {
    type Config = ();

    fn new(_: &(), extent: Extent) -> Result<Self, Error> {
        Ok(LocklessDi {
            head: Padded(M::AtomicPair::new([1, HEAD])),
            waiters: Padded(M::AtomicU32::new(0)),
            blocks: Elements::try_new(extent.cpus, || M::AtomicPair::new([0, INVALID]))?,
            pages: PerRegion::new(extent.frames)?,
            // FreeBSD's size: the power of two above the number of CPUs, times 256, bounded.
            longest_delay: (((extent.cpus.len() + 1).next_power_of_two() * 256) as u32).min(32_678),
            steps: PhantomData,
        })
    }

    fn label(&self) {
        M::label_value(&self.head, "LocklessDi.head");
        self.blocks.label("LocklessDi.blocks");
        self.pages.label();
    }
}

// SAFETY: (of `Sound` steps) a note raises the page's number at least to the block's generation.
// The head reaches a generation only when the block that started with it, and all before it, have
// left the list: each leaves only by handing its number to its predecessor. `wait` returns when the
// head has reached the page's number.
unsafe impl<M: Machine, S: Steps> Invalidation<M> for LocklessDi<M, S> {
    type Block<'a> = LocklessBlock<'a, M, S>;
    nothing_in_pages!();

    fn begin(&self) -> LocklessBlock<'_, M, S> {
        let place = self.blocks.take() as u64 + 1;
        self.start(place);
        LocklessBlock { di: self, place }
    }

    /// Raises the page's number to the block's generation. A newer block's finish may be raising
    /// that generation; the older number is as good, since this block hands on nothing below it.
    #[inline]
    fn note(&self, block: &LocklessBlock<'_, M, S>, frame: Frame, _page: &()) {
        let own = self.element(block.place);
        let generation = own.load_word(GENERATION, Ordering::Relaxed);
        self.pages.of(frame).raise(generation);
    }

    /// Waits for one delay, then on a turnstile. The page's number is read again each round, as in
    /// FreeBSD, so the wait includes blocks that note the page meanwhile.
    fn wait(&self, _reverse: &(), frame: Frame, _page: &()) {
        let page = self.pages.of(frame);
        let mut delayed = false;
        // Acquire: pairs with the exchange of the finish that published.
        while page.get() > self.head.load_word(GENERATION, Ordering::Acquire) {
            if !delayed {
                delayed = true;
                self.delay().lost(M::delay);
                continue;
            }
            // Before the exchange below, which releases it: see "Waking".
            self.waiters.fetch_add(1, Ordering::Relaxed);
            let chain = Turnstiles::<M>::global().lock(self.turnstile());
            let published = if S::EXCHANGES {
                self.head.load()[GENERATION]
            } else {
                self.head.load_word(GENERATION, Ordering::Acquire)
            };
            if page.get() > published || !S::CHECKS_AGAIN {
                chain.wait();
            } else {
                drop(chain);
            }
            self.waiters.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl<M: Machine, S: Steps> Drop for LocklessBlock<'_, M, S> {
    fn drop(&mut self) {
        self.di.finish(self.place);
        self.di.blocks.give(self.place as usize - 1);
    }
}
