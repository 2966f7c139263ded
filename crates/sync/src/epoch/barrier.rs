//! Waiting for callbacks, not only for readers.

use super::stall::Blocked;
use super::{Domain, Protocol};
use alloc::vec::Vec;
use machine::Machine;

impl<M: Machine, P: Protocol> Domain<M, P> {
    /// Returns when every callback has run that any CPU had deferred before; their effects happen
    /// before the return.
    ///
    /// Steps the queues of all CPUs itself, so idle or busy CPUs do not delay it. Takes at least
    /// one grace period; O(CPUs²) reads per round.
    ///
    /// # Panics
    /// If the caller is in a section of this domain, or in a callback: it would wait
    /// for itself.
    pub fn barrier(&self) {
        self.assert_outside("barrier");
        self.assert_not_running();
        // A CPU that deferred something before the call had begun by then.
        let mut todo: Vec<(usize, u64)> = (0..M::begun(self.queues.cpus()))
            .map(|cpu| (cpu, self.count(cpu, |lists| lists.deferred)))
            .collect();
        let mut round = 0;
        loop {
            let mut blocked = None;
            todo.retain(|&(cpu, target)| {
                if self.count(cpu, |lists| lists.done) < target {
                    let pin = M::pin();
                    blocked = self.step(&pin, cpu).err().or(blocked);
                }
                self.count(cpu, |lists| lists.done) < target
            });
            if todo.is_empty() {
                return;
            }
            self.stalled(blocked.unwrap_or(Blocked::Busy), round);
            round = round.saturating_add(1);
        }
    }

    fn count(&self, cpu: usize, of: impl FnOnce(&mut super::queue::Lists<M>) -> u64) -> u64 {
        let pin = M::pin();
        self.queues.of(cpu).with(&pin, of)
    }

    fn assert_not_running(&self) {
        let pin = M::pin();
        if let Some(index) = self.index(&pin) {
            assert!(
                !self.records.of(index).running(&pin),
                "epoch: barrier inside a callback would wait for itself"
            );
        }
    }
}
