//! Entering and leaving sections.

use super::{Domain, Protocol, Record, SectionId, Standard};
use core::mem::ManuallyDrop;
use machine::{Atomic, Machine, Ordering, SharedCell};

/// In a record's nesting: callbacks wait for the outermost exit. It is above any depth, and not
/// zero, so the usual exit need not check for it.
pub(super) const DUE: u32 = 1 << 31;

/// Proof of being in a section; the section ends when the last one is dropped.
///
/// If more was deferred in it than [`super::Options::limit`] allows, the outermost drop waits:
/// see [`Domain::call`].
#[must_use = "the section ends when this is dropped"]
pub struct Section<'a, M: Machine, P: Protocol = Standard> {
    domain: &'a Domain<M, P>,
    record: &'a Record<M>,
    /// Keeps the task on the CPU that owns the record.
    pin: ManuallyDrop<M::Pin>,
}

impl<M: Machine, P: Protocol> Domain<M, P> {
    /// Enters a section; sections nest.
    ///
    /// A section must be short and must not sleep: it holds its CPU, and everything deferred
    /// meanwhile. Full fence (outermost only).
    ///
    /// # Panics
    /// If the caller runs on no CPU of the domain's machine.
    #[inline]
    pub fn enter(&self) -> Section<'_, M, P> {
        let pin = M::pin();
        let record = self.records.get(&pin);
        self.begin(record);
        Section {
            domain: self,
            record,
            pin: ManuallyDrop::new(pin),
        }
    }

    /// Enters a section that [`Domain::exit_raw`] ends, for callers that cannot keep a [`Section`].
    ///
    /// # Safety
    /// The task stays pinned to this CPU until the matching `exit_raw`, which comes
    /// before the domain is dropped.
    ///
    /// # Panics
    /// If the caller runs on no CPU of the domain's machine.
    #[inline]
    pub unsafe fn enter_raw(&self, pin: &M::Pin) {
        self.begin(self.records.get(pin));
    }

    /// Ends the section begun by the last [`Domain::enter_raw`] of this CPU.
    ///
    /// Runs nothing and never waits, since the caller is still pinned. Returns true if callbacks
    /// are due: call [`Domain::settle`] once unpinned.
    ///
    /// # Safety
    /// The caller no longer uses anything that the section protected, and no [`Section`] stands for
    /// the section that ends.
    ///
    /// # Panics
    /// If this CPU is in no section.
    #[inline]
    #[must_use = "callbacks may be due"]
    pub unsafe fn exit_raw(&self, pin: &M::Pin) -> bool {
        let record = self.records.get(pin);
        if !record.inside(pin) {
            not_inside();
        }
        self.end(record)
    }

    /// Returns true if the CPU of `pin` is in a section.
    ///
    /// # Panics
    /// If the caller runs on no CPU of the domain's machine.
    #[inline]
    pub fn is_inside(&self, pin: &M::Pin) -> bool {
        self.records.get(pin).inside(pin)
    }

    #[inline]
    fn begin(&self, record: &Record<M>) {
        // Relaxed: the owner reads what it wrote.
        let section = record.section.load(Ordering::Relaxed);
        if section & 1 == 0 {
            // Relaxed: an old value delays an advance and never permits one.
            let epoch = self.epoch.load(Ordering::Relaxed);
            // Release: pairs with the acquire loads of `section`: a CPU that sees this section sees
            // what the one before it did.
            record.section.store(section + 1, Ordering::Release);
            // Pairs with the fence of a scan: the scan sees this section, or the section sees what
            // was unlinked before the scan. Release: pairs with a scan's load, which may see this
            // epoch and yet the `section` of the section before.
            P::publish::<M>(&record.epoch, epoch);
        } else {
            // SAFETY: pinned by the caller, so no other CPU accesses the record's `nesting`; no
            // reference to it outlives the statement.
            unsafe { *record.nesting.write() += 1 };
        }
    }

    /// Leaves one level. Returns true if that ended the section and callbacks are due.
    #[inline]
    fn end(&self, record: &Record<M>) -> bool {
        let nesting = record.nesting.write();
        // SAFETY: the section's CPU is the record's owner and pinned, so no other CPU accesses
        // `nesting`.
        let inner = unsafe { *nesting };
        if inner == 0 {
            Self::leave(record);
            false
        } else if inner & DUE != 0 {
            Self::end_due(record)
        } else {
            // SAFETY: the section's CPU is the record's owner and pinned, so no other CPU accesses
            // `nesting`.
            unsafe { *nesting = inner - 1 };
            false
        }
    }

    /// Leaves one level of a section; callbacks are due at its outermost exit.
    #[cold]
    #[inline(never)]
    fn end_due(record: &Record<M>) -> bool {
        let nesting = record.nesting.write();
        // SAFETY: the section's CPU is the record's owner and pinned, so no other CPU accesses
        // `nesting`.
        let due = unsafe { *nesting == DUE };
        if due {
            Self::leave(record);
        }
        let taken = if due { DUE } else { 1 };
        // SAFETY: the section's CPU is the record's owner and pinned, so no other CPU accesses
        // `nesting`.
        unsafe { *nesting -= taken };
        due
    }

    /// Ends the outermost section.
    #[inline(always)]
    fn leave(record: &Record<M>) {
        // Relaxed: the owner reads what it wrote.
        let section = record.section.load(Ordering::Relaxed);
        // Release: pairs with a scan's acquire load, so the scanner sees what the section did.
        record.section.store(section + 1, Ordering::Release);
    }
}

impl<M: Machine, P: Protocol> Section<'_, M, P> {
    /// The outermost section that this one is part of, for [`Domain::has_left`].
    #[inline]
    pub fn id(&self) -> SectionId {
        let pin: &M::Pin = &self.pin;
        let cpu = self
            .domain
            .records
            .cpus()
            .index_of(machine::Pinned::cpu(pin));
        // Relaxed: the owner reads what it wrote.
        SectionId::new(cpu, self.record.section.load(Ordering::Relaxed))
    }
}

impl<M: Machine, P: Protocol> Drop for Section<'_, M, P> {
    #[inline]
    fn drop(&mut self) {
        let due = self.domain.end(self.record);
        // SAFETY: the pin is not used again. It is dropped before callbacks run, so that the task
        // does not wait pinned.
        unsafe { ManuallyDrop::drop(&mut self.pin) };
        if due {
            self.domain.settle();
        }
    }
}

#[cold]
#[inline(never)]
fn not_inside() -> ! {
    panic!("epoch: exit_raw on a CPU that is in no section");
}
