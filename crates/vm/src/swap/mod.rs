//! Swap space: the account of pages that may come to be needed, and the store itself.
//!
//! [`PerCpuSwap`] counts the pages that private mappings may come to need (committed
//! memory); it knows of no device. [`SwapSpace`] is the device: a [`machine::Pager`] and a
//! table with one word for each *slot*, which is room for one page.
//!
//! # A slot's word
//! | field | meaning |
//! |---|---|
//! | references | page-table entries that hold the slot's number, and one for the task that writes the page out |
//! | `CACHED`, frame | a frame in memory has the same content (the *swap cache*), and the cache has one reference of its page |
//! | `BUSY` | a task has the slot to itself: it reads it in, or takes it from the cache |
//! | `WAITERS` | tasks sleep until `BUSY` goes |
//!
//! The word 0 is a free slot. The table is all there is: a slot is allocated by exchanging a 0,
//! and no other structure has to agree with it.
//!
//! # Protocol
//! Every change of a word is one compare-and-swap; the task that makes a change acts
//! on it: clearing `WAITERS` wakes, making the word 0 counts the slot as free, and the task that
//! takes a frame out of a word has the cache's reference of its page.
//!
//! ```text
//! allocate:  0 → 1 reference, CACHED(frame)
//! reserve:   0 → 1 reference, OWNED: no frame, no look-up finds it
//! retain:    one reference more, by a task that has one; or that holds the page in the cache, if
//!            a task has one and none is busy
//! release:   one less; with the last, unless BUSY: → 0
//! look up:   word is CACHED(frame): hold the page, unless it has no reference; look again:
//!            word is CACHED(frame): done; else release it, from the top
//! read in:   word has no frame and is not BUSY: set BUSY; read;
//!            → CACHED(frame), or no frame if reading failed, without BUSY; no reference left: → 0
//! evict:     word is CACHED(frame) and not BUSY: set BUSY; freeze the page's references;
//!            frozen: → no frame, without BUSY, and without the reclaimer's reference if it has
//!            one;
//!            else → without BUSY; no reference left: → 0
//! wait:      under the queue's lock: word is BUSY: set WAITERS, sleep
//! ```
//! - *A look-up returns the right page.* The cache has a reference while the word says `CACHED`.
//!   A frame whose page was held and is still in the word at the second look had the cache's
//!   reference when it was held: had it been freed and used anew in between, then holding it
//!   has acquired all that its new owner released, and the second look sees the change of the
//!   word that came before.
//! - *A look-up needs no lock*, and writes the page's line only. It may succeed while the slot
//!   is `BUSY` with an eviction: then the page has one more reference, and freezing fails; or
//!   freezing came first, there is no reference to add to, and the look-up waits.
//! - *An evicted page is not freed before the word has changed*: the task that froze it owns it
//!   until then, so no look-up finds its frame with another page in it.
//! - *The slot stays while it is `BUSY`*: the last release leaves no reference, and clearing
//!   `BUSY` frees the slot. So no task writes to a slot that is still being read.
//! - *No wake-up is lost*: `WAITERS` is set under the lock of the queue's bucket while the
//!   word is `BUSY`; clearing it wakes under that lock, after the sleeper is queued.
//!
//! Sleeping, not spinning: reading may take milliseconds. No other step waits.

mod allocate;
mod load;
mod slot;
mod space;

pub use allocate::CLUSTER;
pub use load::{Eviction, Loading, SwapIn};
pub use space::{SwapSlots, SwapSpace};

use crate::error::Error;
use crate::system::{Extent, Part, Reservation};
use machine::Machine;
use sync::counter::Limited;

/// The next bottleneck of case study 000, taken apart: a reservation that is released on the CPU
/// it was made on touches that CPU's line only.
pub struct PerCpuSwap<M: Machine>(Limited<M>);

impl<M: Machine> Part<M> for PerCpuSwap<M> {
    type Config = ();

    fn new(_: &(), extent: Extent) -> Result<Self, Error> {
        Ok(PerCpuSwap(Limited::try_new(extent.cpus, extent.swap)?))
    }
}

impl<M: Machine> Reservation<M> for PerCpuSwap<M> {
    #[inline]
    fn reserve(&self, pages: u64) -> bool {
        self.0.reserve(pages)
    }

    #[inline]
    fn release(&self, pages: u64) {
        self.0.release(pages);
    }

    fn reserved(&self) -> u64 {
        self.0.used()
    }
}
