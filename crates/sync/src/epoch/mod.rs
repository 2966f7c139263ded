//! Epochs: waiting until every reader that might still look has left.
//!
//! # Protocol
//! Each CPU has a record; each [`Domain`] has a global epoch `g`.
//!
//! - **enter** (outermost): read `g` into `record.epoch`, then make
//!   `record.section` odd and fence. From the fence on, whoever scans the records
//!   sees the section, or the section sees all that he did before his own fence.
//! - **exit** (outermost): make `record.section` even, with release.
//! - **advance**: fence; if every odd record's epoch equals `g`, exchange `g` for
//!   `g + 1`. So a section that entered at `e` keeps `g` at or below `e + 1`.
//!
//! `g` may have moved on between the read and the publication; the record is then
//! behind, which delays an advance and never permits one.
use crate::{Padded, PerCpu};
use core::marker::PhantomData;
use machine::{Atomic, CpuRange, Machine, Ordering, SharedCell};

/// A set of sections and those who wait for them.
pub struct Domain<M: Machine> {
    /// The global epoch, from 1. Advanced by whoever waits.
    epoch: Padded<M::AtomicU64>,
    records: PerCpu<Record<M>, M>,
}

/// One CPU's part in a domain.
struct Record<M: Machine> {
    /// Odd while the CPU is in a section; grows by 2 a section. Written by the owner.
    section: M::AtomicU64,
    /// The global epoch the current section saw. Written by the owner, before
    /// `section` is published; read by scanners after they saw `section` odd.
    epoch: M::AtomicU64,
    /// How deep sections are nested. The owner's alone.
    nesting: M::Cell<u32>,
}

impl<M: Machine> Record<M> {
    fn new() -> Self {
        Record {
            section: M::AtomicU64::new(0),
            epoch: M::AtomicU64::new(0),
            nesting: M::Cell::new(0),
        }
    }
}

/// Proof of being in a section; the section ends when the last one is dropped.
#[must_use = "the section ends when this is dropped"]
pub struct Section<'a, M: Machine> {
    record: &'a Record<M>,
    /// The task stays on the CPU whose record it is.
    _pin: M::Pin,
    machine: PhantomData<M>,
}

impl<M: Machine> Domain<M> {
    /// A domain for the CPUs of a machine.
    pub fn new(cpus: CpuRange) -> Self {
        Domain {
            epoch: Padded(M::AtomicU64::new(1)),
            records: PerCpu::new(cpus, |_| Record::new()),
        }
    }

    /// Enters a section; sections nest.
    ///
    /// # Panics
    /// If the caller runs on no CPU of the domain's machine.
    #[inline]
    pub fn enter(&self) -> Section<'_, M> {
        let pin = M::pin();
        let record = self.records.get(&pin);
        let nesting = record.nesting.write();
        // SAFETY: the pin makes this CPU the only one at the record's `nesting`, and
        // no reference to it outlives the statement.
        unsafe {
            if *nesting == 0 {
                record.begin(self.epoch.load(Ordering::Relaxed));
            }
            *nesting += 1;
        }
        Section {
            record,
            _pin: pin,
            machine: PhantomData,
        }
    }
}

impl<M: Machine> Record<M> {
    #[inline]
    fn begin(&self, epoch: u64) {
        self.epoch.store(epoch, Ordering::Relaxed);
        let section = self.section.load(Ordering::Relaxed);
        // Pairs with the fence of a scan: it sees this section, or the section sees
        // what was unlinked before the scan.
        self.section.publish(section + 1);
    }

    #[inline]
    fn end(&self) {
        let section = self.section.load(Ordering::Relaxed);
        // Release: pairs with a scan's acquire load; what the section did is over.
        self.section.store(section + 1, Ordering::Release);
    }
}

impl<M: Machine> Drop for Section<'_, M> {
    #[inline]
    fn drop(&mut self) {
        let nesting = self.record.nesting.write();
        // SAFETY: as in `enter`; a section's CPU is the record's owner.
        unsafe {
            *nesting -= 1;
            if *nesting == 0 {
                self.record.end();
            }
        }
    }
}
