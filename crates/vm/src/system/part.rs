//! What all parts of a system have in common.

use crate::error::Error;
use machine::{CpuRange, Machine};

/// The machine that a part is made for.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Its CPUs.
    pub cpus: CpuRange,
    /// Its frames have numbers below this one.
    pub frames: usize,
    /// Pages of swap space that may be reserved.
    pub swap: u64,
}

impl Extent {
    /// An extent of these CPUs, `frames` frames and `swap` pages of swap space.
    pub const fn new(cpus: CpuRange, frames: usize, swap: u64) -> Self {
        Extent { cpus, frames, swap }
    }
}

/// A part of a system, made once for a VM.
pub trait Part<M: Machine>: Sized + Send + Sync + 'static {
    /// The options of the part; `()` for most.
    type Config: Default + Clone + Send;

    /// The part for a machine of this extent.
    ///
    /// # Errors
    /// If the kernel's heap has no room for it.
    fn new(config: &Self::Config, extent: Extent) -> Result<Self, Error>;

    /// Returns true if the part need not be told of operations on memory that only their task
    /// knows; never changes. Where all parts are silent, the first touch of private memory and the
    /// end of a page with one mapping and no holder take short paths.
    #[inline]
    fn is_silent(&self) -> bool {
        false
    }

    /// Labels its memory ([`machine::Atomics::label`]); `self` does not move from now on.
    fn label(&self) {}
}
