//! Scanning, advancing, waiting.

use super::stall::Blocked;
use super::{Domain, Protocol};
use machine::{Atomic, Machine, Ordering};

impl<M: Machine, P: Protocol> Domain<M, P> {
    /// Returns when every section that was open at the call has ended
    /// (*synchronize*).
    ///
    /// What those sections did happens before the return; sections that begin later see what the
    /// caller did before the call. Costs a fence and one cache line per CPU if no section is in the
    /// way; otherwise waits, and calls [`super::Options::on_stall`]. Sections that began during the
    /// wait at the same epoch may delay it.
    ///
    /// # Panics
    /// If the caller is in a section of this domain: it would wait for itself.
    pub fn wait(&self) {
        self.assert_outside("wait");
        let stamp = self.stamp();
        // The stamp's fence serves the first scan as well.
        if self.clear(stamp, self.oldest()).is_ok() {
            return;
        }
        let mut round = 0;
        while let Err(cpu) = self.pass(stamp) {
            self.stalled(Blocked::Reader(cpu), round);
            round = round.saturating_add(1);
        }
    }

    /// The epoch that covers everything the caller did before (*stamp* in the module's head).
    pub(super) fn stamp(&self) -> u64 {
        // Pairs with the publication of sections.
        M::fence(Ordering::SeqCst);
        // Relaxed: only the value matters; passing acquires what others did.
        self.epoch.load(Ordering::Relaxed)
    }

    /// Succeeds if `stamp` has passed. If not, tries to advance, and returns the CPU with the
    /// oldest section.
    pub(super) fn pass(&self, stamp: u64) -> Result<(), usize> {
        // Acquire: pairs with the release of the exchange below. Before the fence:
        // step 4 of the module's proof.
        let global = self.epoch.load(Ordering::Acquire);
        if global >= stamp + P::GRACE {
            return Ok(());
        }
        // Pairs with the publication of sections.
        M::fence(Ordering::SeqCst);
        let oldest = self.oldest();
        self.clear(stamp, oldest)
            .inspect_err(|_| self.advance(global, oldest))
    }

    /// The CPU and the epoch of the oldest open section. The caller has fenced before.
    fn oldest(&self) -> Option<(usize, u64)> {
        let mut oldest: Option<(usize, u64)> = None;
        for (cpu, record) in self.records.begun().enumerate() {
            // Acquire: pairs with the release of an exit.
            if record.section.load(Ordering::Acquire) & 1 == 1 {
                // Acquire: pairs with the release of a later section's entry.
                let epoch = record.epoch.load(Ordering::Acquire);
                if oldest.is_none_or(|(_, least)| epoch < least) {
                    oldest = Some((cpu, epoch));
                }
            }
        }
        oldest
    }

    /// Succeeds if this result of a scan made after `stamp` proves that it has passed.
    fn clear(&self, stamp: u64, oldest: Option<(usize, u64)>) -> Result<(), usize> {
        match oldest {
            Some((cpu, epoch)) if epoch < stamp + (P::GRACE - 1) => Err(cpu),
            _ => Ok(()),
        }
    }

    /// Advances the global epoch from `global` if no open section is older. The caller read
    /// `global`, then fenced, then made the scan that found `oldest`.
    fn advance(&self, global: u64, oldest: Option<(usize, u64)>) {
        if oldest.is_none_or(|(_, epoch)| epoch >= global) {
            // Release: hands on what the scan acquired. If another CPU was faster, that is as
            // good.
            let _ = self.epoch.compare_exchange(
                global,
                global + 1,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
        }
    }
}
