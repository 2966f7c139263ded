//! An entry of an object's tree: the object's content at one page index, in 8 bytes.
//!
//! # Protocol
//! An entry's value is nothing, a frame, or a slot of the swap space. Only its *owner*
//! changes it: the task that has set `BUSY`. One task owns an entry while it reads the page in,
//! writes it out or takes it away, and holds no other lock for that, so the pager may take long.
//! Others sleep until it is done.
//!
//! An entry that is owned while its page is written out still shows its frame, and
//! every task may use the page; one that is being filled or emptied shows none.
//!
//! - Own: compare-and-swap of a word without `BUSY`, acquire.
//! - Release: exchange for a word without flags, release; if the old one has `WAITED`,
//!   wake all tasks that sleep on the entry's address.
//! - Sleep: set `WAITED` in addition to `BUSY`; then sleep if both are still set. The sleep queue
//!   looks under its lock, and the task that cleared them comes to that lock afterwards.
//!
//! A task that owns several entries got all but the first by trying, or gets the next
//! at a higher index: no tasks wait in a circle.

use core::marker::PhantomData;
use core::num::NonZeroUsize;
use core::ptr::{self, NonNull};
use machine::{Atomic, AtomicInt, Frame, Machine, Ordering};
use sync::sleepq::{Hashed, SleepQueue};

/// The number is a frame's.
const FRAME: u64 = 1 << 0;
/// The number is a swap slot's.
const SLOT: u64 = 1 << 1;
/// A task owns the entry.
const BUSY: u64 = 1 << 2;
/// A task sleeps until it is released.
const WAITED: u64 = 1 << 3;
/// The lowest bit of the number.
const NUMBER: u32 = 32;

/// The value of an entry: the place of the object's content at an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// Nothing in memory: the content is in the store, or is zero.
    Absent,
    /// A page. The entry has one of its references.
    Frame(Frame),
    /// A slot of the swap space, which is the entry's.
    Slot(u32),
}

impl Value {
    /// The page's frame, if there is one.
    pub(super) fn frame(self) -> Option<Frame> {
        match self {
            Value::Frame(frame) => Some(frame),
            Value::Absent | Value::Slot(_) => None,
        }
    }

    const fn to_bits(self) -> u64 {
        match self {
            Value::Absent => 0,
            Value::Frame(frame) => (frame.0 as u64) << NUMBER | FRAME,
            Value::Slot(slot) => (slot as u64) << NUMBER | SLOT,
        }
    }

    const fn from_bits(bits: u64) -> Self {
        let number = (bits >> NUMBER) as u32;
        if bits & FRAME != 0 {
            Value::Frame(Frame(number))
        } else if bits & SLOT != 0 {
            Value::Slot(number)
        } else {
            Value::Absent
        }
    }
}

/// The entry of one page of an object.
pub(super) struct Entry<M: Machine>(M::AtomicU64);

impl<M: Machine> Entry<M> {
    /// An entry without a value.
    pub(super) fn new() -> Self {
        const {
            // A checker's atomics are larger than the plain ones.
            assert!(size_of::<M::AtomicU8>() != 1 || size_of::<Self>() == 8);
        }
        Entry(M::AtomicU64::new(0))
    }

    /// The value as of a moment ago.
    #[inline]
    pub(super) fn value(&self) -> Value {
        // Acquire: pairs with the release in `Owned::drop`; the page's bytes are there.
        Value::from_bits(self.0.load(Ordering::Acquire))
    }

    /// Returns true if the entry had neither a value nor an owner a moment ago.
    pub(super) fn is_vacant(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    /// Owns the entry if no task does and its value is `wanted`.
    pub(super) fn try_own(&self, wanted: impl Fn(Value) -> bool) -> Option<Owned<'_, M>> {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            let value = Value::from_bits(word);
            if word & BUSY != 0 || !wanted(value) {
                return None;
            }
            match self.0.compare_exchange_weak(
                word,
                word | BUSY,
                // Acquire: pairs with the release of the owner before.
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(Owned::new(self, value)),
                Err(now) => word = now,
            }
        }
    }

    /// Owns the entry, sleeping while another task does.
    pub(super) fn own(&self) -> Owned<'_, M> {
        loop {
            if let Some(owned) = self.try_own(|_| true) {
                return owned;
            }
            self.wait();
        }
    }

    /// Sleeps while a task owns the entry, or for a moment.
    #[cold]
    pub(super) fn wait(&self) {
        let both = BUSY | WAITED;
        let mut word = self.0.load(Ordering::Relaxed);
        while word & both != both {
            if word & BUSY == 0 {
                // Or it has just been released; the caller's next look sees that.
                return M::relax(0);
            }
            // Relaxed, here and below: a task that slept looks at the entry again anyway.
            let set = self.0.compare_exchange_weak(
                word,
                word | WAITED,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            word = set.map_or_else(|now| now, |_| word | WAITED);
        }
        let still = || self.0.load(Ordering::Relaxed) & both == both;
        sleepers::<M>().sleep(ptr::from_ref(self).cast(), still);
    }
}

/// An entry that the holder owns; dropping it sets the entry to `value`.
pub(super) struct Owned<'a, M: Machine> {
    entry: NonNull<Entry<M>>,
    /// The entry's value after the drop; at first its value before.
    pub(super) value: Value,
    of: PhantomData<&'a Entry<M>>,
}

// SAFETY: an entry consists of atomics, and ownership of one is not tied to a task.
unsafe impl<M: Machine> Send for Owned<'_, M> {}

impl<'a, M: Machine> Owned<'a, M> {
    fn new(entry: &'a Entry<M>, value: Value) -> Self {
        Owned {
            entry: NonNull::from(entry),
            value,
            of: PhantomData,
        }
    }

    fn word(&self) -> &M::AtomicU64 {
        // SAFETY: entries stay while one of them is owned, and `of` borrows it.
        unsafe { &self.entry.as_ref().0 }
    }

    /// The entry's address, which is its page's identity.
    pub(super) fn address(&self) -> NonZeroUsize {
        self.entry.addr()
    }

    /// Shows no value from now on, though the entry stays owned.
    pub(super) fn hide(&self) {
        // Relaxed: the looks of mappers are ordered by the locks of their slots, or by the page's
        // PV lock.
        let old = self.word().fetch_and(BUSY | WAITED, Ordering::Relaxed);
        debug_assert!(old & BUSY != 0, "an entry is hidden that nobody owns");
    }
}

impl<M: Machine> Drop for Owned<'_, M> {
    fn drop(&mut self) {
        // Release: pairs with the acquire of lookups and of the next owner. Behind this
        // the entry may be gone; its address is only compared.
        let old = self.word().swap(self.value.to_bits(), Ordering::Release);
        debug_assert!(old & BUSY != 0, "an entry is released that nobody owns");
        if old & WAITED != 0 {
            sleepers::<M>().wake(self.entry.as_ptr().cast(), usize::MAX);
        }
    }
}

/// The sleep queue of all tasks that wait for an entry: one for a machine.
fn sleepers<M: Machine>() -> &'static Hashed<M> {
    M::anchor().get_or_init(Hashed::new)
}
