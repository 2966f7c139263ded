//! One reader/writer lock over every change of a mapping (S2).
//!
//! FreeBSD/amd64 had `pvh_global_lock` until May 2016 (b4ddfd). As of its 10.4 it is
//! - held for reading by `pmap_remove`, `pmap_enter`, `pmap_enter_object`, `pmap_copy`
//!   and `pmap_remove_pages`, taken before the pmap lock and held until after the flush;
//! - held for writing by `pmap_remove_all`;
//! - held for reading by `pmap_protect` only from the first superpage it has to split:
//!   that call leaves PV entries where they are.
//!
//! So blocks and mappings run beside each other, but write the lock's line twice each,
//! and a removal by the reverse map stops them all. There is nothing to wait for: who
//! holds the lock for writing knows that no block is open.

use machine::{CpuRange, Frame, Machine};
use sync::rwlock::{RawRw, SpinParkRw};
use sync::watch::Watched;
use sync::{Padded, lock_class};
use vm::policy::Invalidation;

lock_class!(
    /// `pvh_global_lock` of a [`Pvh`].
    pub PvhGlobal = "pvh global", rank 20
);

type Lock<M> = Watched<M, SpinParkRw<M>, PvhGlobal>;

/// `pvh_global_lock`, as FreeBSD 10 had it. Its rwlock is one word that spins while the
/// owner runs and then blocks on a turnstile; ours is [`SpinParkRw`].
pub struct Pvh<M: Machine> {
    lock: Padded<Lock<M>>,
}

/// The global lock, held for reading.
#[must_use = "the lock is released when this is dropped"]
pub struct Shared<'a, M: Machine>(&'a Lock<M>);

/// The global lock, held for writing.
#[must_use = "the lock is released when this is dropped"]
pub struct Exclusive<'a, M: Machine>(&'a Lock<M>);

impl<M: Machine> Pvh<M> {
    fn shared(&self) -> Shared<'_, M> {
        self.lock.read();
        Shared(&self.lock)
    }
}

// SAFETY: a block holds the lock for reading until it ends. `wait` is given the lock held
// for writing since before the caller looked at the page, so no block is open at all.
unsafe impl<M: Machine> Invalidation<M> for Pvh<M> {
    type Block<'a> = Shared<'a, M>;
    type Enter<'a> = Shared<'a, M>;
    type Reverse<'a> = Exclusive<'a, M>;
    type Page = ();
    type Config = ();

    fn new(_: &(), _cpus: CpuRange, _frames: usize) -> Self {
        Pvh {
            lock: Padded(Lock::new()),
        }
    }

    fn new_page() {}

    #[inline]
    fn begin(&self) -> Shared<'_, M> {
        self.shared()
    }

    #[inline]
    fn note(&self, _block: &Shared<'_, M>, _frame: Frame, _page: &()) {}

    #[inline]
    fn enter(&self) -> Shared<'_, M> {
        self.shared()
    }

    #[inline]
    fn reverse(&self) -> Exclusive<'_, M> {
        self.lock.write();
        Exclusive(&self.lock)
    }

    #[inline]
    fn wait(&self, _reverse: &Exclusive<'_, M>, _frame: Frame, _page: &()) {}

    fn label(&self) {
        M::label_value(&self.lock, "Pvh.lock");
    }
}

impl<M: Machine> Drop for Shared<'_, M> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: read-locked when this was made.
        unsafe { self.0.read_unlock() };
    }
}

impl<M: Machine> Drop for Exclusive<'_, M> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: write-locked when this was made.
        unsafe { self.0.write_unlock() };
    }
}
