//! Sections in which a task may sleep, as FreeBSD's preemptible epochs allow.
//!
//! A [`Section`](super::Section) belongs to its CPU and holds it. A section here belongs to its
//! task: other tasks may run on the CPU meanwhile and enter sections of their own, and the task may
//! end its section on another CPU.
//!
//! # Protocol
//! Each section is counted on one of two *sides*: the one that the domain names when the section
//! begins. Each CPU has a record with two words per side: `here` counts the sections that began on
//! this CPU less those that ended on it, and only this CPU writes it; `elsewhere` counts those that
//! began here and ended on another CPU.
//!
//! - **enter**, pinned: read the side; *publish* `here + 1`: a store with release, and a full
//!   fence.
//! - **exit**, pinned: on the same CPU store `here - 1`, on another add 1 to `elsewhere`, with
//!   release.
//! - a record's side **is empty** if `elsewhere`, read first, equals `here`.
//! - **wait**: fence; wait until the side that is not named is empty in each record; name it; wait
//!   until the other one is empty. If another waiter names the side waited for meanwhile, name the
//!   other one again.
//!
//! # Why it holds
//! 1. A waiter sees each section whose publication comes before its fence, or sees that it has
//!    ended; a section whose publication comes later sees what the waiter did before the wait.
//! 2. A side that is found empty has no section at the moment when `here` is read: its sections
//!    number `here - elsewhere`, `elsewhere` only grows, and the number is never negative.
//! 3. A section is on one side from its beginning to its end, and a wait finds both sides empty.
//! 4. A CPU that sees the end of a section sees what it did: exits release, a wait's loads acquire.
//!
//! The sides are for progress only: sections that begin during a wait go to the side that is not
//! waited for, so each CPU's count reaches zero.

use super::{Protocol, Standard};
use crate::padded::Padded;
use crate::percpu::PerCpu;
use alloc::collections::TryReserveError;
use core::marker::PhantomData;
use machine::{Atomic, AtomicInt, CpuId, CpuRange, Machine, Ordering, Pinned};

/// How often a waiter reads a record before it lets other tasks run.
const SPINS: u32 = 64;

/// A set of sections that may sleep, and the tasks that wait for them. 128 bytes per CPU.
pub struct Sleepable<M: Machine, P: Protocol = Standard> {
    /// Its lowest bit names the side of new sections. Advanced by waiters.
    side: Padded<M::AtomicU64>,
    records: PerCpu<Record<M>, M>,
    protocol: PhantomData<fn() -> P>,
}

/// One CPU's counts.
struct Record<M: Machine> {
    /// The count `here` of each side. Written by this CPU's tasks, pinned.
    here: [M::AtomicU64; 2],
    /// The count `elsewhere` of each side. Other CPUs add to it.
    elsewhere: [M::AtomicU64; 2],
}

/// Proof of being in a section; the section ends when this is dropped, on any CPU.
#[must_use = "the section ends when this is dropped"]
pub struct SleepableSection<'a, M: Machine, P: Protocol = Standard> {
    record: &'a Record<M>,
    cpu: CpuId,
    side: usize,
    protocol: PhantomData<fn() -> P>,
}

impl<M: Machine> Sleepable<M> {
    /// A domain for the CPUs of a machine; an error if memory is short.
    pub fn new(cpus: CpuRange) -> Result<Self, TryReserveError> {
        Self::with_protocol(cpus)
    }
}

impl<M: Machine, P: Protocol> Sleepable<M, P> {
    /// A domain with protocol `P`; the one sound choice is [`Standard`].
    #[doc(hidden)]
    pub fn with_protocol(cpus: CpuRange) -> Result<Self, TryReserveError> {
        let zeros = || [M::AtomicU64::new(0), M::AtomicU64::new(0)];
        let records = PerCpu::try_new(cpus, |_| Record {
            here: zeros(),
            elsewhere: zeros(),
        })?;
        records.label("epoch::Record");
        Ok(Sleepable {
            side: Padded(M::AtomicU64::new(0)),
            records,
            protocol: PhantomData,
        })
    }

    /// Enters a section; a task may be in several. Full fence.
    ///
    /// # Panics
    /// If the caller runs on no CPU of the domain's machine.
    #[inline]
    pub fn enter(&self) -> SleepableSection<'_, M, P> {
        let pin = M::pin();
        let record = self.records.get(&pin);
        // Relaxed: either side will do.
        let side = self.named();
        let here = &record.here[side];
        // Relaxed: only this CPU writes it. The publication pairs with the fence of a wait.
        P::publish::<M>(here, here.load(Ordering::Relaxed) + 1);
        SleepableSection {
            record,
            cpu: pin.cpu(),
            side,
            protocol: PhantomData,
        }
    }

    /// Returns when every section that was open at the call has ended. What those sections did
    /// happens before the return; sections that begin later see what the caller did before the
    /// call. The caller is in no section of this domain and holds no pin: it lets other tasks run
    /// while it waits (as FreeBSD's `epoch_wait_preempt` does). Reads one cache line per CPU,
    /// twice.
    pub fn wait(&self) {
        // Pairs with the publication of sections.
        M::fence(Ordering::SeqCst);
        let named = self.named();
        self.drain(1 - named);
        if P::BOTH_SIDES {
            self.drain(named);
        }
    }

    /// The side of new sections, a moment ago.
    fn named(&self) -> usize {
        (self.side.0.load(Ordering::Relaxed) & 1) as usize
    }

    /// Waits until every section that is on `side` at the call has ended.
    fn drain(&self, side: usize) {
        for record in self.records.iter() {
            let mut round = 0;
            while !record.is_empty(side) {
                if self.named() == side {
                    // Relaxed: the choice of the side matters only for progress.
                    self.side.0.fetch_add(1, Ordering::Relaxed);
                }
                // A section's task may be off its CPU, and this may be the CPU that it waits for.
                if round < SPINS {
                    M::relax(round)
                } else {
                    M::yield_now()
                }
                round = round.saturating_add(1);
            }
        }
    }
}

impl<M: Machine> Record<M> {
    fn is_empty(&self, side: usize) -> bool {
        // Acquire: pairs with the release of an exit on another CPU; and `here` is read later.
        let elsewhere = self.elsewhere[side].load(Ordering::Acquire);
        // Acquire: pairs with the release of an exit on this CPU.
        self.here[side].load(Ordering::Acquire) == elsewhere
    }
}

impl<M: Machine, P: Protocol> Drop for SleepableSection<'_, M, P> {
    #[inline]
    fn drop(&mut self) {
        let pin = M::pin();
        if pin.cpu() == self.cpu {
            let here = &self.record.here[self.side];
            // Relaxed: only this CPU writes it. Release: pairs with `Record::is_empty`.
            here.store(here.load(Ordering::Relaxed) - 1, Ordering::Release);
        } else {
            // Release: pairs with `Record::is_empty`.
            self.record.elsewhere[self.side].fetch_add(1, Ordering::Release);
        }
    }
}
