//! Delayed invalidation under one mutex (S3, the "before" of case study 000).
//!
//! # Protocol
//! Blocks get numbers, *generations*, in the order in which they start, and are linked in a list,
//! newest first. Under one global mutex:
//!
//! - **start**: the generation is the newest block's (or, without one, the published) plus one; the
//!   block becomes the list's first.
//! - **finish**: the oldest block publishes its generation, under the turnstile's chain lock, and
//!   wakes all waiters. Any other block hands its generation to the next older one, which publishes
//!   it in turn: older blocks are still open, and publishing would say that they had ended.
//!
//! So the published generation is *g* only when every block that started with one up to *g* has
//! ended. A page's number is raised to the generation of each block that notes it; a wait compares
//! that with the published one, and returns at once if no block that noted the page (or an alias of
//! it, see [`super::generation`]) is open.
//!
//! A waiter checks again under the chain lock before it sleeps, and finish publishes under the same
//! lock before it wakes: no wake-up is lost.

use super::elements::Elements;
use super::generation::Hashed;
use super::{Sound, Steps};
use core::marker::PhantomData;
use machine::{Atomic, Frame, Machine, Ordering};
use sync::adaptive::FreebsdMutex;
use sync::turnstile::Turnstiles;
use sync::watch::Watched;
use sync::{Padded, RawLock, lock_class};
use vm::Error;
use vm::system::{Extent, Invalidation, Part};

lock_class!(
    /// `invl_gen_mtx` of a [`Di`].
    pub InvlGen = "invl gen", rank 20
);

/// Delayed invalidation as in FreeBSD from May 2016 (b4ddfd) to May 2019.
///
/// Start and finish take the global mutex (8 bytes) and write the list's head and the neighbours'
/// elements: every `munmap` on every CPU writes the same two cache lines.
///
/// `elements.rs` says where a block's list element lies.
pub struct Di<M: Machine, S: Steps = Sound> {
    /// `invl_gen_mtx`: guards all links and the order of generations.
    mutex: Padded<Watched<M, FreebsdMutex<M>, InvlGen>>,
    /// The newest open block, or [`NONE`]. Written under the mutex. It shares a cache line with
    /// `published`, like the variables of one source file.
    globals: Padded<Globals<M>>,
    blocks: Elements<M, Element<M>>,
    pages: Hashed<M>,
    steps: PhantomData<S>,
}

struct Globals<M: Machine> {
    newest: M::AtomicUsize,
    /// `pmap_invl_gen`: all blocks up to this generation have ended. Written under the
    /// mutex and the chain lock, read by waiters.
    published: M::AtomicU64,
}

/// A block's element in the list.
struct Element<M: Machine> {
    /// Written by the owner, and raised by a newer block's finish, under the mutex; the owner reads
    /// it without.
    generation: M::AtomicU64,
    /// Neighbours in the list: their numbers or [`NONE`]. Guarded by the mutex.
    newer: M::AtomicUsize,
    older: M::AtomicUsize,
}

/// The number that stands for no block.
const NONE: usize = usize::MAX;

/// An open block of [`Di`].
#[must_use = "the block ends when this is dropped"]
pub struct DiBlock<'a, M: Machine, S: Steps = Sound> {
    di: &'a Di<M, S>,
    number: usize,
}

impl<M: Machine, S: Steps> Di<M, S> {
    /// The key of the waiters' turnstile.
    fn turnstile(&self) -> *const () {
        (&raw const self.globals.published).cast()
    }

    fn start(&self, number: usize) {
        let element = self.blocks.of(number);
        // The mutex orders everything it guards; accesses are relaxed.
        let held = self.mutex.lock();
        let newest = self.globals.newest.load(Ordering::Relaxed);
        let current = if newest == NONE {
            self.globals.published.load(Ordering::Relaxed)
        } else {
            let newest = self.blocks.of(newest);
            newest.newer.store(number, Ordering::Relaxed);
            newest.generation.load(Ordering::Relaxed)
        };
        element.generation.store(current + 1, Ordering::Relaxed);
        element.older.store(newest, Ordering::Relaxed);
        element.newer.store(NONE, Ordering::Relaxed);
        self.globals.newest.store(number, Ordering::Relaxed);
        // SAFETY: the mutex was locked above, by this call.
        unsafe { self.mutex.unlock(held) };
    }

    fn finish(&self, number: usize) {
        let element = self.blocks.of(number);
        let held = self.mutex.lock();
        let generation = element.generation.load(Ordering::Relaxed);
        let newer = element.newer.load(Ordering::Relaxed);
        let older = element.older.load(Ordering::Relaxed);
        if older == NONE || !S::HANDS_ON {
            self.publish(generation);
        }
        if older != NONE {
            let older = self.blocks.of(older);
            older.generation.store(generation, Ordering::Relaxed);
            older.newer.store(newer, Ordering::Relaxed);
        }
        if newer == NONE {
            self.globals.newest.store(older, Ordering::Relaxed);
        } else {
            self.blocks.of(newer).older.store(older, Ordering::Relaxed);
        }
        // SAFETY: the mutex was locked above, by this call.
        unsafe { self.mutex.unlock(held) };
        self.blocks.give(number);
    }

    fn publish(&self, generation: u64) {
        let mut chain = Turnstiles::<M>::global().lock(self.turnstile());
        // Release: pairs with the acquire of a wait. It covers this block and, through the mutex,
        // those that handed their generation on.
        self.globals.published.store(generation, Ordering::Release);
        chain.broadcast();
    }
}

impl<M: Machine, S: Steps> Part<M> for Di<M, S> {
    type Config = ();

    fn new(_: &(), extent: Extent) -> Result<Self, Error> {
        Ok(Di {
            mutex: Padded(RawLock::new()),
            globals: Padded(Globals {
                newest: M::AtomicUsize::new(NONE),
                published: M::AtomicU64::new(0),
            }),
            blocks: Elements::try_new(extent.cpus, || Element {
                generation: M::AtomicU64::new(0),
                newer: M::AtomicUsize::new(NONE),
                older: M::AtomicUsize::new(NONE),
            })?,
            pages: Hashed::new(extent.frames)?,
            steps: PhantomData,
        })
    }

    fn label(&self) {
        M::label_value(&self.mutex, "Di.mutex");
        M::label_value(&self.globals, "Di.globals");
        self.blocks.label("Di.blocks");
        self.pages.label();
    }
}

// SAFETY: (of `Sound` steps) a note raises the page's number at least to the block's generation,
// and nothing publishes that generation before the block has finished; `wait` returns only when the
// published generation has reached the page's number.
unsafe impl<M: Machine, S: Steps> Invalidation<M> for Di<M, S> {
    type Block<'a> = DiBlock<'a, M, S>;
    nothing_in_pages!();

    fn begin(&self) -> DiBlock<'_, M, S> {
        let number = self.blocks.take();
        self.start(number);
        DiBlock { di: self, number }
    }

    /// Raises the page's number to the block's generation, which is read without the mutex, as in
    /// FreeBSD. A newer block's finish may be raising it; the older number is as good, since this
    /// block publishes or hands on nothing below it.
    #[inline]
    fn note(&self, block: &DiBlock<'_, M, S>, frame: Frame, _page: &()) {
        let element = self.blocks.of(block.number);
        let generation = element.generation.load(Ordering::Relaxed);
        self.pages.of(frame).raise(generation);
    }

    /// Waits on a turnstile instead of a sleep queue, since callers own object locks. The page's
    /// number is read again each round, as in FreeBSD, so the wait includes blocks that note the
    /// page meanwhile.
    fn wait(&self, _reverse: &(), frame: Frame, _page: &()) {
        let page = self.pages.of(frame);
        // Acquire: pairs with the release in `publish`.
        let open = || page.get() > self.globals.published.load(Ordering::Acquire);
        while open() {
            let chain = Turnstiles::<M>::global().lock(self.turnstile());
            if open() || !S::CHECKS_AGAIN {
                chain.wait();
            }
        }
    }
}

impl<M: Machine, S: Steps> Drop for DiBlock<'_, M, S> {
    fn drop(&mut self) {
        self.di.finish(self.number);
    }
}
