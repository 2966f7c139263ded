//! A slot's word.

use machine::{Atomic, AtomicInt, Frame, Machine, Ordering};

/// The state of a slot, in 64 bits: 29 of references, 32 of the frame, 3 flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word(u64);

const BUSY: u64 = 1 << 0;
const WAITERS: u64 = 1 << 1;
const CACHED: u64 = 1 << 2;
const FRAME_SHIFT: u32 = 3;
const FRAME: u64 = (u32::MAX as u64) << FRAME_SHIFT;
const REFERENCES_SHIFT: u32 = FRAME_SHIFT + 32;
const REFERENCE: u64 = 1 << REFERENCES_SHIFT;
/// Half of the largest count: exceeding it is an error, long before a count wraps.
const MOST: u32 = 1 << (63 - REFERENCES_SHIFT);

impl Word {
    /// A free slot.
    pub(super) const FREE: Word = Word(0);

    /// One reference, and no part in the cache, which the bits of the frame mark.
    pub(super) const OWNED: Word = Word(REFERENCE | 1 << FRAME_SHIFT);

    /// One reference, and `frame` in the cache.
    #[inline]
    pub(super) fn cached(frame: Frame) -> Word {
        Word(REFERENCE).with_frame(Some(frame))
    }

    pub(super) fn references(self) -> u32 {
        (self.0 >> REFERENCES_SHIFT) as u32
    }

    /// The frame in the cache.
    pub(super) fn frame(self) -> Option<Frame> {
        (self.0 & CACHED != 0).then_some(Frame((self.0 >> FRAME_SHIFT) as u32))
    }

    #[inline]
    pub(super) fn is_free(self) -> bool {
        self == Word::FREE
    }

    /// Returns true if the slot's owner reads and writes it by itself.
    pub(super) fn is_owned(self) -> bool {
        self.0 & FRAME != 0 && self.0 & CACHED == 0
    }

    pub(super) fn is_busy(self) -> bool {
        self.0 & BUSY != 0
    }

    /// Returns true if the content is on the pager only, and no task reads it in.
    pub(super) fn is_absent(self) -> bool {
        self.references() > 0 && self.0 & (FRAME | CACHED | BUSY) == 0
    }

    pub(super) fn has_waiters(self) -> bool {
        self.0 & WAITERS != 0
    }

    pub(super) fn busy(self) -> Word {
        debug_assert!(!self.is_busy(), "two tasks are busy with a slot");
        debug_assert!(!self.is_owned(), "a slot is read in that its owner reads");
        Word(self.0 | BUSY)
    }

    fn waited_for(self) -> Word {
        Word(self.0 | WAITERS)
    }

    /// The word with one more reference.
    pub(super) fn retained(self) -> Word {
        assert!(self.references() < MOST, "swap slot references overflow");
        Word(self.0 + REFERENCE)
    }

    /// The word with one reference less: free, if it was the last of an idle slot.
    #[inline]
    pub(super) fn released(self) -> Word {
        assert!(self.references() > 0, "a swap slot is released twice");
        Word(self.0 - REFERENCE).kept()
    }

    /// The word no longer busy, with `frame` in the cache; free if no reference is left.
    #[inline]
    pub(super) fn settled(self, frame: Option<Frame>) -> Word {
        debug_assert!(self.is_busy(), "no task is busy with the slot");
        Word(self.0 & !(BUSY | WAITERS)).with_frame(frame).kept()
    }

    /// The word, or [`Word::FREE`] if the slot has no references and no task is busy with it.
    #[inline]
    fn kept(self) -> Word {
        if self.references() == 0 && !self.is_busy() {
            Word::FREE
        } else {
            self
        }
    }

    #[inline]
    fn with_frame(self, frame: Option<Frame>) -> Word {
        let bits = frame.map_or(0, |frame| u64::from(frame.0) << FRAME_SHIFT | CACHED);
        Word(self.0 & !(FRAME | CACHED) | bits)
    }
}

/// A word of the table.
pub(super) struct Slot<M: Machine>(M::AtomicU64);

impl<M: Machine> Slot<M> {
    pub(super) fn new() -> Self {
        const {
            // A checker's atomics are larger than the plain ones.
            assert!(size_of::<M::AtomicU8>() != 1 || size_of::<Self>() == 8);
        }
        Slot(M::AtomicU64::new(0))
    }

    /// The word as of a moment ago. Acquire: pairs with the release of every change; a frame in it
    /// is filled, and the pager is done with a slot that is free.
    #[inline]
    pub(super) fn load(&self) -> Word {
        Word(self.0.load(Ordering::Acquire))
    }

    /// Replaces the word by `next` of it, trying again until that succeeds, unless that is `None`;
    /// returns the word before and after. Acquire and release: see [`Slot::load`]; acquire if it is
    /// `None`, too: a task that finds a slot taken has acquired all that its owner had.
    #[inline]
    pub(super) fn change(&self, next: impl Fn(Word) -> Option<Word>) -> Option<(Word, Word)> {
        let mut old = self.0.load(Ordering::Acquire);
        loop {
            let new = next(Word(old))?;
            let order = (Ordering::AcqRel, Ordering::Acquire);
            match self.0.compare_exchange_weak(old, new.0, order.0, order.1) {
                Ok(_) => return Some((Word(old), new)),
                Err(now) => old = now,
            }
        }
    }

    /// Takes the slot if it is free: its word is `new` from now on.
    #[inline]
    pub(super) fn claim(&self, new: Word) -> bool {
        debug_assert_eq!(
            new.references(),
            1,
            "a slot's first reference is its owner's"
        );
        self.change(|word| word.is_free().then_some(new)).is_some()
    }

    /// Adds a reference; the caller has one, or a page-table entry's locked.
    #[inline]
    pub(super) fn retain(&self) {
        // Relaxed: it only keeps the slot, which the caller's reference keeps already.
        let old = Word(self.0.fetch_add(REFERENCE, Ordering::Relaxed)).references();
        assert!(old > 0, "a free swap slot is retained");
        assert!(old < MOST, "swap slot references overflow");
    }

    /// Announces that the caller is about to sleep. Returns false if no task is busy any more.
    /// Under the lock of the queue, which orders it.
    #[inline]
    pub(super) fn wait(&self) -> bool {
        let waited_for = |word: Word| word.is_busy().then(|| word.waited_for());
        self.change(waited_for).is_some()
    }

    /// The address that waiters sleep on.
    pub(super) fn key(&self) -> *const () {
        core::ptr::from_ref(self).cast()
    }
}
