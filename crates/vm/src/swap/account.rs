//! The default account of swap space: per-CPU stocks with an exact limit.

use crate::policy::Reservation;
use machine::{CpuRange, Machine};
use sync::counter::Limited;

/// Seed 000's next bottleneck, taken apart: a reservation that is released on the CPU
/// it was made on touches that CPU's line only.
pub struct PerCpuSwap<M: Machine>(Limited<M>);

impl<M: Machine> Reservation<M> for PerCpuSwap<M> {
    type Config = ();

    fn new(_config: &(), cpus: CpuRange, limit: u64) -> Self {
        PerCpuSwap(Limited::new(cpus, limit))
    }

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
