//! Delayed invalidation under one mutex (S3, seed 000's "before").
//!
//! # Protocol
//! Blocks get numbers, *generations*, in the order they start, and stand in a list,
//! newest first. Under one global mutex:
//!
//! - **start**: the generation is the newest block's (or, without one, the published)
//!   plus one; the block becomes the list's first.
//! - **finish**: the oldest block publishes its generation, under the turnstile's chain
//!   lock, and wakes all who wait. Any other hands its generation to the next older
//!   block, which will publish it in turn: older blocks are still open, and publishing
//!   would say that they had ended.
//!
//! So the published generation is *g* only when every block that started with one up to
//! *g* has ended. A page's number is raised to the generation of each block that notes
//! it; a wait compares that with the published one, and returns at once if no block
//! that noted the page (or an alias of it, see [`super::generation`]) is open.
//!
//! A waiter checks again under the chain lock before it sleeps, and finish publishes
//! under the same lock before it wakes: no wake-up is lost.

use super::generation::Hashed;
use super::{Sound, Steps};
use core::marker::PhantomData;
use machine::{Atomic, CpuRange, Frame, Machine, Ordering};
use sync::adaptive::FreebsdMutex;
use sync::turnstile::Turnstiles;
use sync::watch::Watched;
use sync::{Padded, PerCpu, RawLock, lock_class};
use vm::policy::Invalidation;

lock_class!(
    /// `invl_gen_mtx` of a [`Di`].
    pub InvlGen = "invl gen", rank 20
);

/// Delayed invalidation as FreeBSD had it from May 2016 (b4ddfd) to May 2019.
///
/// Start and finish take the global mutex (8 bytes), write the list's head and the
/// neighbours' elements: every `munmap` on every CPU writes the same two lines.
///
/// FreeBSD keeps the list element in the thread. Here it is the CPU's, and the block's
/// pin keeps the task there; a task has one block at most, so the list is the same.
pub struct Di<M: Machine, S: Steps = Sound> {
    /// `invl_gen_mtx`: guards all links and the order of generations.
    mutex: Padded<Watched<M, FreebsdMutex<M>, InvlGen>>,
    /// The newest open block's CPU, or [`NONE`]. Written under the mutex. It lies beside
    /// `published`, as the variables of one source file do.
    globals: Padded<Globals<M>>,
    blocks: PerCpu<Element<M>, M>,
    pages: Hashed<M>,
    steps: PhantomData<S>,
}

struct Globals<M: Machine> {
    newest: M::AtomicUsize,
    /// `pmap_invl_gen`: all blocks up to this generation have ended. Written under the
    /// mutex and the chain lock, read by waiters.
    published: M::AtomicU64,
}

/// A CPU's place in the list.
struct Element<M: Machine> {
    /// 0 while no block is open here. Written by the owner, and raised by a newer
    /// block's finish, under the mutex; read by the owner without it.
    generation: M::AtomicU64,
    /// Neighbours in the list: CPU indices or [`NONE`]. Under the mutex.
    newer: M::AtomicUsize,
    older: M::AtomicUsize,
}

/// No CPU.
const NONE: usize = usize::MAX;

/// An open block of [`Di`].
#[must_use = "the block ends when this is dropped"]
pub struct DiBlock<'a, M: Machine, S: Steps = Sound> {
    di: &'a Di<M, S>,
    cpu: usize,
    _pin: M::Pin,
    machine: PhantomData<M>,
}

impl<M: Machine, S: Steps> Di<M, S> {
    /// What waiters' turnstile is known by.
    fn turnstile(&self) -> *const () {
        (&raw const self.globals.published).cast()
    }

    fn start(&self, cpu: usize) {
        let element = self.blocks.of(cpu);
        assert!(
            element.generation.load(Ordering::Relaxed) == 0,
            "delayed invalidation has started on this CPU already"
        );
        // All that the mutex guards is ordered by it and accessed relaxed.
        let held = self.mutex.lock();
        let newest = self.globals.newest.load(Ordering::Relaxed);
        let current = if newest == NONE {
            self.globals.published.load(Ordering::Relaxed)
        } else {
            let newest = self.blocks.of(newest);
            newest.newer.store(cpu, Ordering::Relaxed);
            newest.generation.load(Ordering::Relaxed)
        };
        element.generation.store(current + 1, Ordering::Relaxed);
        element.older.store(newest, Ordering::Relaxed);
        element.newer.store(NONE, Ordering::Relaxed);
        self.globals.newest.store(cpu, Ordering::Relaxed);
        // SAFETY: locked above.
        unsafe { self.mutex.unlock(held) };
    }

    fn finish(&self, cpu: usize) {
        let element = self.blocks.of(cpu);
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
        // SAFETY: locked above.
        unsafe { self.mutex.unlock(held) };
        element.generation.store(0, Ordering::Relaxed);
    }

    fn publish(&self, generation: u64) {
        let mut chain = Turnstiles::<M>::global().lock(self.turnstile());
        // Release: pairs with the acquire of a wait. What this block and, through the
        // mutex, those that handed their generation on did is over.
        self.globals.published.store(generation, Ordering::Release);
        chain.broadcast();
    }
}

// SAFETY: (of `Sound` steps) a note raises the page's number to the block's generation
// at least, and
// nothing publishes that generation before the block has finished; `wait` returns only
// when the published generation has reached the page's number.
unsafe impl<M: Machine, S: Steps> Invalidation<M> for Di<M, S> {
    type Block<'a> = DiBlock<'a, M, S>;
    type Enter<'a> = ();
    type Reverse<'a> = ();
    type Page = ();
    type Config = ();

    fn new(_: &(), cpus: CpuRange, frames: usize) -> Self {
        Di {
            mutex: Padded(RawLock::new()),
            globals: Padded(Globals {
                newest: M::AtomicUsize::new(NONE),
                published: M::AtomicU64::new(0),
            }),
            blocks: PerCpu::new(cpus, |_| Element {
                generation: M::AtomicU64::new(0),
                newer: M::AtomicUsize::new(NONE),
                older: M::AtomicUsize::new(NONE),
            }),
            pages: Hashed::new(frames),
            steps: PhantomData,
        }
    }

    fn new_page() {}

    fn begin(&self) -> DiBlock<'_, M, S> {
        let pin = M::pin();
        let cpu = self.blocks.index(&pin);
        self.start(cpu);
        DiBlock {
            di: self,
            cpu,
            _pin: pin,
            machine: PhantomData,
        }
    }

    /// FreeBSD reads the generation without the mutex too. It may just be raised by a
    /// newer block's finish; the older number does as well, since this block will
    /// publish or hand on nothing below it.
    #[inline]
    fn note(&self, block: &DiBlock<'_, M, S>, frame: Frame, _page: &()) {
        let element = self.blocks.of(block.cpu);
        let generation = element.generation.load(Ordering::Relaxed);
        self.pages.of(frame).raise(generation);
    }

    /// Nothing: a new mapping flushes what it replaces before it lets go of the PV lock.
    #[inline]
    fn enter(&self) {}

    #[inline]
    fn reverse(&self) {}

    fn label(&self) {
        M::label_value(&self.mutex, "Di.mutex");
        M::label_value(&self.globals, "Di.globals");
        self.blocks.label("Di.blocks");
        self.pages.label();
    }

    /// Blocks on a turnstile, not asleep: callers own object locks. The page's number is
    /// read anew each round, as in FreeBSD: blocks that note it meanwhile are waited for.
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
        self.di.finish(self.cpu);
    }
}
