//! One value for each CPU of a machine.

use crate::padded::Padded;
use alloc::boxed::Box;
use alloc::collections::TryReserveError;
use alloc::vec::Vec;
use core::marker::PhantomData;
use machine::{Atomics, CpuRange, Cpus, Pinned};

/// One `T` per CPU, each on cache lines of its own (128 bytes at least).
///
/// All CPUs may read all values. The value's own protocol says which of its fields only the owner
/// may access; a pin proves that the caller is the owner.
pub struct PerCpu<T, C> {
    cpus: CpuRange,
    values: Box<[Padded<T>]>,
    on: PhantomData<fn() -> C>,
}

impl<T, C: Cpus> PerCpu<T, C> {
    /// A value for each of `cpus`, made by `make` from the CPU's index.
    pub fn new(cpus: CpuRange, make: impl FnMut(usize) -> T) -> Self {
        PerCpu {
            cpus,
            values: (0..cpus.len()).map(make).map(Padded).collect(),
            on: PhantomData,
        }
    }

    /// A value for each of `cpus`, made by `make` from the CPU's index; an error if memory is
    /// short.
    pub fn try_new(cpus: CpuRange, make: impl FnMut(usize) -> T) -> Result<Self, TryReserveError> {
        let mut values = Vec::new();
        values.try_reserve_exact(cpus.len())?;
        values.extend((0..cpus.len()).map(make).map(Padded));
        Ok(PerCpu {
            cpus,
            values: values.into_boxed_slice(),
            on: PhantomData,
        })
    }

    /// The value of the CPU that `pin` holds.
    ///
    /// # Panics
    /// If that CPU is not one of the machine this belongs to.
    #[inline]
    pub fn get(&self, pin: &C::Pin) -> &T {
        match self.values.get(self.cpus.index_of(pin.cpu())) {
            Some(value) => value,
            None => foreign_cpu(),
        }
    }

    /// The index of the CPU that `pin` holds, for [`PerCpu::of`].
    ///
    /// # Panics
    /// If that CPU is not one of the machine this belongs to.
    #[inline]
    pub fn index(&self, pin: &C::Pin) -> usize {
        let index = self.cpus.index_of(pin.cpu());
        if index >= self.values.len() {
            foreign_cpu();
        }
        index
    }

    /// The CPUs.
    #[inline]
    pub fn cpus(&self) -> CpuRange {
        self.cpus
    }

    /// The value of the CPU with this index, on any calling CPU.
    #[inline]
    pub fn of(&self, index: usize) -> &T {
        &self.values[index]
    }

    /// The values of the CPUs that have begun ([`Cpus::begun`]), by CPU index.
    #[inline]
    pub fn begun(&self) -> impl Iterator<Item = &T> {
        let begun = C::begun(self.cpus).min(self.values.len());
        self.values[..begun].iter().map(|padded| &padded.0)
    }

    /// All values, by CPU index.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.values.iter().map(|padded| &padded.0)
    }
}

impl<T, C: Cpus + Atomics> PerCpu<T, C> {
    /// Labels the values `what` ([`Atomics::label`]).
    pub fn label(&self, what: &'static str) {
        let values = self.values.as_ptr().cast();
        C::label(values, size_of_val(&*self.values), what);
    }
}

#[cold]
#[inline(never)]
fn foreign_cpu() -> ! {
    panic!("the calling task runs on no CPU of the machine this structure belongs to");
}
