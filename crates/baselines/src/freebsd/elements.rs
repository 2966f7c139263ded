//! The list elements of open blocks: one per block, wherever its task runs.
//!
//! FreeBSD keeps a block's element in its thread, so a thread may sleep in a block while others
//! open theirs on the same CPU. Here a block takes one of a few elements of the CPU on which it
//! begins, and may return it on another. When all of them belong to blocks whose tasks sleep, the
//! next task waits for one. It holds nothing then that a block waits for, because a task opens a
//! block before it takes any lock that is taken in blocks.

use alloc::collections::TryReserveError;
use core::array;
use machine::{Atomic, CpuRange, Machine, Ordering};
use sync::{Padded, PerCpu};

/// Elements per CPU.
const EACH: usize = 4;

/// The elements of all CPUs, by number: 512 bytes per CPU.
pub(super) struct Elements<M: Machine, E>(PerCpu<[Padded<Place<M, E>>; EACH], M>);

struct Place<M: Machine, E> {
    element: E,
    /// 1 while a block has the element. Set only by this CPU's tasks, pinned.
    taken: M::AtomicU32,
}

impl<M: Machine, E> Elements<M, E> {
    pub(super) fn try_new(cpus: CpuRange, make: impl Fn() -> E) -> Result<Self, TryReserveError> {
        let place = || Place {
            element: make(),
            taken: M::AtomicU32::new(0),
        };
        let places = PerCpu::try_new(cpus, |_| array::from_fn(|_| Padded(place())))?;
        Ok(Elements(places))
    }

    /// Takes an element of the calling CPU for a block; returns its number.
    ///
    /// # Panics
    /// If the caller runs on no CPU of the machine.
    #[inline]
    pub(super) fn take(&self) -> usize {
        loop {
            if let Some(number) = self.try_take() {
                return number;
            }
            M::yield_now();
        }
    }

    #[inline]
    fn try_take(&self) -> Option<usize> {
        let pin = M::pin();
        let cpu = self.0.index(&pin);
        // Acquire: pairs with the release in `give`: the element is as its last block left it.
        let is_free = |place: &Padded<Place<M, E>>| place.taken.load(Ordering::Acquire) == 0;
        let index = self.0.of(cpu).iter().position(is_free)?;
        self.0.of(cpu)[index].taken.store(1, Ordering::Relaxed);
        Some(cpu * EACH + index)
    }

    /// Returns an element, which is in no list.
    #[inline]
    pub(super) fn give(&self, number: usize) {
        // Release: pairs with the acquire in `try_take`.
        self.place(number).taken.store(0, Ordering::Release);
    }

    /// The element with this number.
    #[inline]
    pub(super) fn of(&self, number: usize) -> &E {
        &self.place(number).element
    }

    fn place(&self, number: usize) -> &Place<M, E> {
        &self.0.of(number / EACH)[number % EACH]
    }

    pub(super) fn label(&self, name: &'static str) {
        self.0.label(name);
    }
}
