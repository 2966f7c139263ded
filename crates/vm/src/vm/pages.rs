//! Frames and pages: their descriptors, their PV lists, and the references that keep them.

use super::Vm;
use crate::error::{Error, Resource};
use crate::frames::{Content, RUN};
use crate::page::{Identity, Last, Page, PvList};
use crate::system::{Gate, PageQueues, Part, Purpose, PvLocking, System};
use alloc::sync::Arc;
use core::array;
use core::num::NonZeroUsize;
use core::ptr;
use machine::{Atomics, Frame, Memory, PAGE_SIZE};

/// The descriptors of a run of frames, which the pool hands out together: on lines of
/// their own.
#[repr(align(64))]
pub(super) struct Descriptors<S: System> {
    pub(super) pages: [Page<S>; RUN],
    /// The gate's data of each: nothing by default.
    pub(super) gate: [<S::Gate as Gate<S::Machine>>::Page; RUN],
}

impl<S: System> Descriptors<S> {
    pub(super) fn new() -> Self {
        Descriptors {
            pages: array::from_fn(|_| Page::new()),
            gate: array::from_fn(|_| Default::default()),
        }
    }
}

impl<S: System> Vm<S> {
    /// The descriptor of a frame, which the machine has.
    #[inline]
    pub(crate) fn page(&self, frame: Frame) -> &Page<S> {
        &self.pages[frame.index() / RUN].pages[frame.index() % RUN]
    }

    /// Locks the PV list of the page in `frame`.
    #[inline]
    #[track_caller]
    pub(crate) fn lock_pv(&self, frame: Frame) -> PvList<'_, S> {
        PvList::lock(&self.pv_locks, frame, self.page(frame))
    }

    /// The number of passes of a task over many pages before it waits for locked lists. Tasks that
    /// change the same pages, such as forks of one space and the exits of their children, find
    /// others to change meanwhile, and seldom sleep. The systems of the case studies wait at once.
    pub(crate) fn passes(&self) -> u32 {
        if self.lists_objects() { 1 } else { 16 }
    }

    /// Locks the PV list of the page in `frame`, if that needs no waiting.
    #[inline]
    #[track_caller]
    pub(crate) fn try_lock_pv(&self, frame: Frame) -> Option<PvList<'_, S>> {
        PvList::try_lock(&self.pv_locks, frame, self.page(frame))
    }

    /// Returns true if the PV list of the page in `frame` was locked a moment ago: for assertions
    /// of a task that has locked it.
    pub(crate) fn is_pv_locked(&self, frame: Frame) -> bool {
        self.page(frame).is_pv_locked_by(&self.pv_locks, frame)
    }

    /// The list of the page in `frame`, if its lock is that of the page whose list was kept last
    /// ([`Vm::keep_pv`]); if not, that one is released.
    #[inline]
    pub(crate) fn pass_pv<'a>(
        &'a self,
        last: Option<Last<'a, S>>,
        frame: Frame,
    ) -> Option<PvList<'a, S>> {
        let Last(list, of) = last?;
        let is_same = self.pv_locks.is_same(of, frame);
        is_same.then(|| list.pass_to(self.page(frame)))
    }

    /// Releases the list of the page in `frame`, unless its lock is that of neighbours too and the
    /// next one may need it.
    #[inline]
    pub(crate) fn keep_pv<'a>(&self, list: PvList<'a, S>, frame: Frame) -> Option<Last<'a, S>> {
        self.pv_locks.is_per_block().then(|| Last(list, frame))
    }

    /// The gate's data of the frame's page.
    #[inline]
    pub(crate) fn gate_page(&self, frame: Frame) -> &<S::Gate as Gate<S::Machine>>::Page {
        &self.pages[frame.index() / RUN].gate[frame.index() % RUN]
    }

    /// Takes a frame for a page, with one reference.
    #[inline]
    pub(crate) fn allocate_page(&self, content: Content) -> Result<Frame, Error> {
        let frame = self.allocate_for_page(content)?;
        self.page(frame).begin();
        Ok(frame)
    }

    /// Takes a frame for a page that begins later.
    #[inline]
    pub(crate) fn allocate_for_page(&self, content: Content) -> Result<Frame, Error> {
        self.allocate_for(Purpose::Page, content)
    }

    /// Takes a frame that is no page: a table.
    #[inline]
    pub(crate) fn allocate(&self, content: Content) -> Result<Frame, Error> {
        self.allocate_for(Purpose::Own, content)
    }

    #[inline(always)] // a call here shows in tests/costs.rs
    fn allocate_for(&self, purpose: Purpose, content: Content) -> Result<Frame, Error> {
        let _free = self.queues.take(purpose);
        // SAFETY: the frames are those of the machine, which is this VM's alone.
        let frame = unsafe { self.frames.allocate(&*self.machine, content) };
        machine::invariant!(
            S::Machine: frame.is_none_or(|frame| self.page(frame).references() == 0),
            "a page's frame is given out"
        );
        frame.ok_or(Error::OutOfMemory(Resource::Frames))
    }

    /// Gives back a frame that [`Vm::allocate`] gave. It has `content`.
    pub(crate) fn free(&self, frame: Frame, content: Content) {
        self.free_from(Purpose::Own, frame, content);
    }

    #[inline]
    fn free_from(&self, purpose: Purpose, frame: Frame, content: Content) {
        machine::invariant!(
            S::Machine: self.page(frame).references() == 0,
            "a page is freed that tasks hold or have mapped"
        );
        let _free = self.queues.give(purpose);
        // SAFETY: the frame is the caller's, which gives it back.
        unsafe { self.frames.free(&*self.machine, frame, content) };
    }

    /// Drops a reference to a page, and frees its frame with the last.
    pub(crate) fn release_page(&self, frame: Frame) {
        if self.page(frame).release() {
            self.free_page(frame, Content::Any);
        }
    }

    /// Drops a reference to each page.
    pub(crate) fn release_pages(&self, pages: impl Iterator<Item = Frame>) {
        let last = pages.filter(|&frame| self.page(frame).release());
        if self.queues.is_silent() {
            self.frames.free_all(&self.machine, last)
        } else {
            last.for_each(|frame| self.free_page(frame, Content::Any))
        }
    }

    /// Frees pages that have no references any more, where all parts are silent.
    pub(crate) fn free_pages(&self, pages: impl Iterator<Item = Frame>) {
        debug_assert!(self.queues.is_silent(), "the queues know the pages still");
        let pages = pages.inspect(|&frame| {
            machine::invariant!(
                S::Machine: self.page(frame).references() == 0,
                "a page is freed that tasks hold or have mapped"
            );
        });
        self.frames.free_all(&self.machine, pages);
    }

    /// Frees a page that has no references, any more or yet. It has `content`.
    pub(crate) fn free_page(&self, frame: Frame, content: Content) {
        self.queues.remove(frame);
        self.free_from(Purpose::Page, frame, content);
    }

    /// Lets the gate look for a page's mappings.
    pub(crate) fn walk(&self, frame: Frame) {
        self.gate.walk(frame, self.gate_page(frame));
    }

    /// Returns true if nothing but the caller's mapping maps the page in `frame`, holds it or knows
    /// it by another name. Under the lock of its slot, without which no task can add a mapping.
    pub(crate) fn is_exclusive(&self, frame: Frame) -> bool {
        let page = self.page(frame);
        page.references() == 1 && page.identity() == Identity::Private
    }

    /// Takes a reference that keeps the page in `frame` from being freed; `None` if the frame holds
    /// no page any more, or never did.
    pub fn hold(self: &Arc<Self>, frame: Frame) -> Option<Hold<S>> {
        self.retain_page(frame).then(|| Hold {
            vm: self.clone(),
            frame,
            entry: None,
        })
    }

    /// Adds a reference to the page in `frame`, if there is one. Returns true if it did.
    pub(crate) fn retain_page(&self, frame: Frame) -> bool {
        frame.index() < self.frames.end() && self.page(frame).try_retain()
    }

    /// A page of zeroes that no space has mapped. Those who find its number may read and write it
    /// ([`Vm::hold`]), so it is no place for what the kernel must be able to trust.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if no frame is free.
    pub fn new_page(self: &Arc<Self>) -> Result<Hold<S>, Error> {
        let frame = self.allocate_page(Content::Zeroed)?;
        let vm = self.clone();
        let entry = None;
        Ok(Hold { vm, frame, entry })
    }

    /// Counts one more entry that names the slot, for a caller that holds such an entry.
    pub(crate) fn retain_swapped(&self, slot: u32) {
        self.swap_space()
            .expect("a slot is of a swap space")
            .retain(slot);
    }

    /// Counts one entry less that names the slot. With the last the page in its cache becomes
    /// private.
    pub(crate) fn release_swapped(&self, slot: u32) {
        let swap = self.swap_space().expect("a slot is of a swap space");
        if let Some(frame) = swap.release(slot) {
            self.make_private(frame);
            self.release_page(frame);
        }
    }

    /// Makes the page in `frame`, whose slot has gone, private.
    pub(crate) fn make_private(&self, frame: Frame) {
        let page = self.page(frame);
        let _list = self.lock_pv(frame);
        machine::invariant!(
            S::Machine: !matches!(page.identity(), Identity::Object(_)),
            "an object's page is taken for one of the swap space"
        );
        page.set_identity(Identity::Private);
    }
}

/// A reference to a page, which keeps it and lets the kernel read and write it.
///
/// Each word is read and written atomically; the whole is not. What the kernel writes here does not
/// make the page dirty: [`crate::Space::copy_out`] and [`crate::object::Object::write`] write as
/// tasks do.
pub struct Hold<S: System> {
    vm: Arc<Vm<S>>,
    frame: Frame,
    /// The address of the object's entry that has, or had, the page, if the holder owns that entry.
    entry: Option<NonZeroUsize>,
}

impl<S: System> Hold<S> {
    /// The page's frame.
    pub fn frame(&self) -> Frame {
        self.frame
    }

    /// The page's `index`-th word, of [`machine::WORDS_PER_FRAME`].
    ///
    /// # Panics
    /// If there is none.
    pub fn word(&self, index: usize) -> &<S::Machine as Atomics>::AtomicU64 {
        // SAFETY: the page is held.
        unsafe { self.vm.machine().word(self.frame, index) }
    }

    /// Fills `bytes` with those of the page from byte `at` on.
    ///
    /// # Panics
    /// If the page has fewer.
    pub fn read(&self, at: usize, bytes: &mut [u8]) {
        check_part(at, bytes.len());
        // SAFETY: the page is held.
        unsafe { self.vm.machine().read_bytes(self.frame, at, bytes) };
    }

    /// Writes `bytes` to those of the page from byte `at` on.
    ///
    /// # Panics
    /// If the page has fewer.
    pub fn write(&self, at: usize, bytes: &[u8]) {
        check_part(at, bytes.len());
        // SAFETY: the page is held.
        unsafe { self.vm.machine().write_bytes(self.frame, at, bytes) };
    }

    /// Returns true if the page is one of `vm`'s.
    pub(crate) fn is_of(&self, vm: &Vm<S>) -> bool {
        ptr::eq(&*self.vm, vm)
    }

    /// Checks that the page is one of `vm`'s.
    ///
    /// # Panics
    /// If it is another VM's.
    #[track_caller]
    pub(crate) fn check(&self, vm: &Vm<S>) {
        assert!(self.is_of(vm), "the page is another VM's");
    }

    /// This hold, for a holder that owns the object's entry at this address as long as others use
    /// the hold.
    pub(crate) fn with_entry(self, entry: NonZeroUsize) -> Self {
        let mut hold = self;
        hold.entry = Some(entry);
        hold
    }

    /// The entry given to [`Hold::with_entry`].
    pub(crate) fn entry(&self) -> Option<NonZeroUsize> {
        self.entry
    }
}

/// Checks that a page has `count` bytes from `at` on.
#[track_caller]
fn check_part(at: usize, count: usize) {
    let is_inside = at <= PAGE_SIZE && count <= PAGE_SIZE - at;
    assert!(is_inside, "{count} bytes from {at} on are not in a page");
}

impl<S: System> Drop for Hold<S> {
    fn drop(&mut self) {
        self.vm.release_page(self.frame);
    }
}
