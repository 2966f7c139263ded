//! Reading: sections, and the slots that name what a reader looks at.

use super::{Domain, Record, SLOTS};
use core::marker::PhantomData;
use core::ptr::null_mut;
use machine::{Atomic, Machine, Ordering, SharedCell};

/// Keeps its task on a CPU, whose slots it lends.
///
/// Sections nest, and take their slots from the same [`SLOTS`]. One may last as long as its pin
/// may.
#[must_use = "slots are lent by a section"]
pub struct Section<'d, M: Machine> {
    domain: &'d Domain<M>,
    record: &'d Record<M>,
    /// Keeps the task on the CPU that owns the record.
    _pin: M::Pin,
    /// A section belongs to its task, whatever the machine's pins are.
    not_sync: PhantomData<*mut ()>,
}

/// A slot in use: it keeps the object whose address it has. Returned when it is dropped.
#[must_use = "the slot is returned when this is dropped"]
pub struct Slot<'s, M: Machine> {
    record: &'s Record<M>,
    index: u32,
    /// A slot belongs to its section's task.
    not_send: PhantomData<*mut ()>,
}

impl<M: Machine> Domain<M> {
    /// Enters a section. Writes nothing.
    ///
    /// # Panics
    /// If the caller runs on no CPU of the domain's machine.
    #[inline]
    pub fn enter(&self) -> Section<'_, M> {
        let pin = M::pin();
        Section {
            domain: self,
            record: self.records.get(&pin),
            _pin: pin,
            not_sync: PhantomData,
        }
    }
}

impl<'d, M: Machine> Section<'d, M> {
    /// The domain.
    #[inline]
    pub fn domain(&self) -> &'d Domain<M> {
        self.domain
    }

    /// Takes a slot, which names nothing yet.
    ///
    /// # Panics
    /// If the CPU's [`SLOTS`] are all in use.
    #[inline]
    pub fn slot(&self) -> Slot<'_, M> {
        // SAFETY: pinned, so no other CPU accesses `taken`.
        let taken = unsafe { *self.record.taken.read() };
        let index = taken.trailing_ones();
        if index as usize >= SLOTS {
            none_left();
        }
        // SAFETY: as above.
        unsafe { *self.record.taken.write() = taken | 1 << index };
        Slot {
            record: self.record,
            index,
            not_send: PhantomData,
        }
    }
}

impl<M: Machine> Slot<'_, M> {
    /// Reads a pointer, and names what it points to; returns that, or null.
    ///
    /// The object stays until the slot names another or is returned, provided that objects are
    /// retired in the slot's domain, after they are unlinked from `source`, and that an unlinked
    /// object is not linked again.
    #[inline]
    pub fn protect(&mut self, source: &M::AtomicPtr) -> *mut () {
        // Relaxed: only the second read counts.
        let mut seen = source.load(Ordering::Relaxed);
        loop {
            if seen.is_null() {
                return seen;
            }
            self.name(seen);
            // Pairs with the heavy fence of a scan: the scan sees the slot, or the next read sees
            // that the object was unlinked.
            M::light_fence();
            // Acquire: pairs with the release that linked the object.
            let now = source.load(Ordering::Acquire);
            if now == seen {
                return seen;
            }
            seen = now;
        }
    }

    /// Names `object` without looking whether it is still linked. That protects it only if the
    /// caller has protected it otherwise, until now, or checks afterwards, behind a light fence,
    /// that it has not been unlinked.
    #[inline]
    pub fn name(&mut self, object: *mut ()) {
        // Release: pairs with the acquire of a scan, which may see this object and so conclude that
        // the reader has let go of the one before.
        self.place().store(object, Ordering::Release);
    }

    #[inline]
    fn place(&self) -> &M::AtomicPtr {
        &self.record.slots[self.index as usize % SLOTS]
    }
}

impl<M: Machine> Drop for Slot<'_, M> {
    #[inline]
    fn drop(&mut self) {
        // Release: pairs with the acquire of a scan, so that it sees what the reader did.
        self.place().store(null_mut(), Ordering::Release);
        let taken = self.record.taken.write();
        // SAFETY: the slot's section keeps the task pinned to the CPU that owns the record, so no
        // other CPU accesses `taken`.
        unsafe { *taken &= !(1 << self.index) };
    }
}

#[cold]
#[inline(never)]
fn none_left() -> ! {
    panic!("hazard: all {SLOTS} slots of this CPU are in use");
}
