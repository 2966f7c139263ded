//! One reader/writer lock over every change of a mapping (S2).
//!
//! FreeBSD/amd64 had `pvh_global_lock` until May 2016 (b4ddfd). In 10.4 it is
//!   and `pmap_remove_pages`, taken before the pmap lock and held until after the flush;
//! - held for writing by `pmap_remove_all`;
//! - held for reading by `pmap_protect` only from the first superpage it has to split:
//!   that call leaves PV entries where they are.
//!
//! So blocks and mappings run concurrently, but write the lock's cache line twice each, and a
//! removal by the reverse map stops them all. A wait returns at once: while the lock is held for
//! writing, no block is open.

use machine::{Frame, Machine};
use sync::rwlock::{RawReadGuard, RawRw, RawWriteGuard, SpinParkRw};
use sync::watch::Watched;
use sync::{Padded, lock_class};
use vm::Error;
use vm::system::{Extent, Invalidation, Part};

lock_class!(
    /// `pvh_global_lock` of a [`Pvh`].
    pub PvhGlobal = "pvh global", rank 20
);

type Lock<M> = Watched<M, SpinParkRw<M>, PvhGlobal>;

/// `pvh_global_lock`, as in FreeBSD 10. Its rwlock is one word that spins while the owner runs and
/// then blocks on a turnstile; here it is a [`SpinParkRw`].
pub struct Pvh<M: Machine> {
    lock: Padded<Lock<M>>,
}

type Shared<'a, M> = RawReadGuard<'a, M, Lock<M>>;
type Exclusive<'a, M> = RawWriteGuard<'a, M, Lock<M>>;

/// A hold on the lock.
#[derive(Default)]
#[must_use = "the lock is released when this is dropped"]
pub enum PvhHeld<'a, M: Machine> {
    /// The lock is not held.
    #[default]
    Nothing,
    /// The lock is held for reading, while a mapping is made.
    Shared(Shared<'a, M>),
    /// The lock is held for writing, while a page's mappings are removed.
    Exclusive(Exclusive<'a, M>),
}

impl<M: Machine> Pvh<M> {
    fn shared(&self) -> Shared<'_, M> {
        Shared::new(&self.lock)
    }
}

impl<M: Machine> Part<M> for Pvh<M> {
    type Config = ();

    fn new(_: &(), _: Extent) -> Result<Self, Error> {
        Ok(Pvh {
            lock: Padded(Lock::new()),
        })
    }

    fn label(&self) {
        M::label_value(&self.lock, "Pvh.lock");
    }
}

// SAFETY: a block holds the lock for reading until it ends. `wait` is called with the lock held for
// writing since before the caller looked at the page, so no block is open at all.
unsafe impl<M: Machine> Invalidation<M> for Pvh<M> {
    type Block<'a> = Shared<'a, M>;
    type Held<'a> = PvhHeld<'a, M>;
    type Page = ();

    #[inline]
    fn may_sleep(&self) -> bool {
        true
    }

    #[inline]
    fn begin(&self) -> Shared<'_, M> {
        self.shared()
    }

    #[inline]
    fn note(&self, _block: &Shared<'_, M>, _frame: Frame, _page: &()) {}

    #[inline]
    fn enter(&self) -> PvhHeld<'_, M> {
        PvhHeld::Shared(self.shared())
    }

    #[inline]
    fn reverse(&self) -> PvhHeld<'_, M> {
        PvhHeld::Exclusive(Exclusive::new(&self.lock))
    }

    #[inline]
    fn wait(&self, _reverse: &PvhHeld<'_, M>, _frame: Frame, _page: &()) {}
}
