//! The default invalidation: a waiter waits for exactly the block that noted the page.
//!
//! A block is a section of one epoch domain, so opening and closing it touches this
//! CPU's line only. A block that takes a mapping of a page away stamps the page with
//! its section's id; removal by the reverse map reads the stamp and waits until that
//! very section has ended: not at all if no block noted the page or the section is over,
//! and never for other CPUs' blocks. (The experiment of case study 000 waits for all of them.)
//!
//! # Protocol
//! The stamp is written under the page's PV lock, and read by a waiter after it has
//! held that lock and found the list empty; so it sees the stamp of every block that
//! emptied it. One word holds one of three things:
//!
//! | stamp | meaning | a waiter waits for |
//! |---|---|---|
//! | 0 | no block noted the page | nothing |
//! | section id | one block did, or all before it have ended | that section |
//! | snapshot | several did while open | all sections open when the last of them did |
//!
//! A block finds the stamp of another, still open, when a shared page is unmapped from
//! two spaces at once; it then leaves a snapshot, taken at that moment, which covers
//! both: each of them was open then.

use crate::error::Error;
use crate::system::{Extent, Invalidation, Part};
use machine::{Atomic, Frame, Machine, Ordering};
use sync::epoch::{Domain, Section, SectionId, Snapshot};

/// Epoch sections as blocks, the section's id as the page's stamp. 8 bytes a page.
pub struct Snapshots<M: Machine> {
    domain: Domain<M>,
}

/// The sections that a page's waiters wait for, as in the table above.
pub struct Stamp<M: Machine>(M::AtomicU64);

impl<M: Machine> Default for Stamp<M> {
    fn default() -> Self {
        Stamp(M::AtomicU64::new(0))
    }
}

impl<M: Machine> Snapshots<M> {
    /// Returns true if all sections that the stamp names have ended.
    #[inline]
    fn is_over(&self, stamp: u64) -> bool {
        if let Some(section) = SectionId::from_bits(stamp) {
            self.domain.has_left(section)
        } else if let Some(snapshot) = Snapshot::from_bits(stamp) {
            self.domain.has_passed(&snapshot)
        } else {
            true
        }
    }
}

impl<M: Machine> Part<M> for Snapshots<M> {
    type Config = ();

    fn new(_: &(), extent: Extent) -> Result<Self, Error> {
        let domain = Domain::try_new(extent.cpus)?;
        Ok(Snapshots { domain })
    }

    /// Silent: a removal by the reverse map holds the page for which it waits.
    #[inline]
    fn is_silent(&self) -> bool {
        true
    }
}

// SAFETY: by the protocol above, a stamp is only replaced by one that covers it, or
// after the section it stands for has ended.
unsafe impl<M: Machine> Invalidation<M> for Snapshots<M> {
    type Block<'a> = Section<'a, M>;
    type Held<'a> = ();
    type Page = Stamp<M>;

    /// A section pins its CPU.
    #[inline]
    fn may_sleep(&self) -> bool {
        false
    }

    #[inline]
    fn begin(&self) -> Self::Block<'_> {
        self.domain.enter()
    }

    #[inline]
    fn note(&self, block: &Self::Block<'_>, _frame: Frame, page: &Self::Page) {
        let mine = block.id().to_bits();
        // Relaxed, here and below: the PV lock orders writers and waiters.
        let old = page.0.load(Ordering::Relaxed);
        if old == mine {
            return;
        }
        let stamp = if self.is_over(old) {
            mine
        } else {
            self.domain.snapshot().to_bits()
        };
        page.0.store(stamp, Ordering::Relaxed);
    }

    fn wait(&self, _reverse: &(), _frame: Frame, page: &Self::Page) {
        let stamp = page.0.load(Ordering::Relaxed);
        M::spin_until(|| self.is_over(stamp));
    }
}
