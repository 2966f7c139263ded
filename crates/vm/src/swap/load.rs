//! Brings slots into memory, and takes pages out of the cache.

use super::slot::Word;
use super::space::SwapSpace;
use core::mem;
use machine::{Frame, PagerError, Platform};

/// The result of [`SwapSpace::begin_in`]; `H` holds a page.
pub enum SwapIn<'a, M: Platform, H> {
    /// The content is in memory.
    Cached(H),
    /// It is not, and no task reads it in: the caller must.
    Load(Loading<'a, M>),
    /// The slot is free, or its owner needs no cache: the page-table entry with its
    /// number is gone.
    Gone,
}

/// The right, and the duty, to read a slot in; other tasks wait for that. Dropping it lets one of
/// them try.
#[must_use = "others wait until it is finished or dropped"]
pub struct Loading<'a, M: Platform> {
    space: &'a SwapSpace<M>,
    slot: u32,
}

/// The result of [`SwapSpace::uncache`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "it says which side has the page's references"]
pub enum Eviction {
    /// The page is out of the cache and frozen: the caller's alone.
    Evicted,
    /// The page stays in the cache, or never was there.
    Kept,
    /// The slot is not needed any more and is free; the page was not frozen, and the
    /// cache's reference is the caller's.
    Released,
}

impl<M: Platform> SwapSpace<M> {
    /// Begins to bring a slot's content into memory: finds its page in the cache, or gives
    /// the caller the right to read it in; waits while another task does. O(1) but for that.
    ///
    /// `hold` takes a reference of the page in a frame, unless that has none (as
    /// `Page::try_retain`, with acquire ordering); its result releases the page when dropped. It
    /// may be asked for a frame that has nothing to do with the slot any more.
    ///
    /// The caller has a reference to the slot; or, when it has locked its page-table entry, it
    /// checks that the entry still holds the slot's number and that [`SwapSpace::holds`] is true.
    /// It holds no spin lock and is not pinned.
    pub fn begin_in<H>(&self, slot: u32, hold: impl Fn(Frame) -> Option<H>) -> SwapIn<'_, M, H> {
        let mut round = 0;
        loop {
            let word = self.slot(slot).load();
            if let Some(frame) = word.frame() {
                // The second look follows the acquire of `hold`: module docs.
                if let Some(held) = hold(frame)
                    && self.holds(slot, frame)
                {
                    return SwapIn::Cached(held);
                }
            } else if word.is_free() || word.is_owned() {
                return SwapIn::Gone;
            } else if let Some(loading) = self.try_load(slot) {
                return SwapIn::Load(loading);
            }
            if word.is_busy() {
                self.wait(slot);
            } else {
                // The word has changed, and the task that changed it waits for nothing here.
                M::relax(round);
                round += 1;
            }
        }
    }

    /// The right to read a slot in that is still needed, if its content is not in memory and
    /// no task is busy with it: for a caller that expects it to be needed. Waits for nothing. O(1).
    pub fn try_load(&self, slot: u32) -> Option<Loading<'_, M>> {
        let absent = |word: Word| word.is_absent().then(|| word.busy());
        self.change(slot, absent)?;
        Some(Loading { space: self, slot })
    }

    /// Takes `frame` out of the cache, if the slot's content is there and no task reads or
    /// evicts it now. The slot's content is on the pager, as it is in the frame. O(1).
    ///
    /// `freeze` drops all references of the page at once if there are no others than the cache's
    /// and the caller's (as `Page::freeze`), and returns true if it did. It must not wait.
    pub fn uncache(&self, slot: u32, frame: Frame, freeze: impl FnOnce() -> bool) -> Eviction {
        self.take_out(slot, frame, freeze, |word| word)
    }

    /// Takes the page out of the cache for a caller that has a reference to the slot; if the page
    /// is evicted, that reference is dropped, too.
    #[inline]
    pub(crate) fn uncache_and_release(
        &self,
        slot: u32,
        frame: Frame,
        freeze: impl FnOnce() -> bool,
    ) -> Eviction {
        self.take_out(slot, frame, freeze, Word::released)
    }

    /// Takes the page out of the cache; for an evicted page `last` also changes its slot's word.
    #[inline]
    fn take_out(
        &self,
        slot: u32,
        frame: Frame,
        freeze: impl FnOnce() -> bool,
        last: impl Fn(Word) -> Word,
    ) -> Eviction {
        let here = |word: Word| word.frame() == Some(frame) && !word.is_busy();
        let locked = self.change(slot, |word| here(word).then(|| word.busy()));
        if locked.is_none() {
            return Eviction::Kept;
        }
        if freeze() {
            self.change(slot, |word| Some(last(word.settled(None))));
            return Eviction::Evicted;
        }
        match self.settle(slot, Some(frame)) {
            Word::FREE => Eviction::Released,
            _ => Eviction::Kept,
        }
    }

    /// Ends being busy with a slot, and returns its new word.
    fn settle(&self, slot: u32, frame: Option<Frame>) -> Word {
        let change = self.change(slot, |word| Some(word.settled(frame)));
        change.expect("every word can be settled").1
    }
}

impl<M: Platform> Loading<'_, M> {
    /// The slot's number.
    pub fn slot(&self) -> u32 {
        self.slot
    }

    /// Asserts that this task is the one that reads the slot in.
    fn check(&self) {
        machine::invariant!(
            // Others change only the references, and that they wait.
            M: self.space.slot(self.slot).load().is_busy(),
            "another task may read the slot in, too"
        );
    }

    /// Reads the slot's content into `frame`, which is the caller's alone. May block.
    ///
    /// # Errors
    /// If the pager fails; then the frame's content is undefined.
    ///
    /// # Safety
    /// As for [`machine::Pager::read`].
    pub unsafe fn read(&self, machine: &M, frame: Frame) -> Result<(), PagerError> {
        self.check();
        // SAFETY: so says the caller.
        unsafe { self.space.read(machine, self.slot, &[frame]) }
    }

    /// Puts `frame`, which has the slot's content, into the cache, with a reference of its page
    /// that the caller gives, and wakes the tasks that wait. Returns false if the slot is not
    /// needed any more: then it is free, and the reference is still the caller's.
    #[must_use = "whether the cache has taken the reference"]
    pub fn finish(self, frame: Frame) -> bool {
        self.check();
        let cached = self.space.settle(self.slot, Some(frame)) != Word::FREE;
        mem::forget(self);
        cached
    }
}

impl<M: Platform> Drop for Loading<'_, M> {
    fn drop(&mut self) {
        self.space.settle(self.slot, None);
    }
}
