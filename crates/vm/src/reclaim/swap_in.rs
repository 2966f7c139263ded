//! Reads private pages back from the swap space.
//!
//! Pages that were swapped out together have neighbouring slots, and are probably needed together.
//! So with a slot its neighbours are read, in one call of the pager, as far as they lie in the same
//! aligned window, are not in memory and no task is busy with them. They wait in the swap cache for
//! the faults on them; unused as they are, they are the first to go if no fault comes, and need not
//! be written. Reading ahead waits for no task, takes at most half of the free frames in its CPU's
//! cache, and has none reclaimed; if it fails, the requested slot is read alone.

use crate::error::Error;
use crate::frames::Content;
use crate::object::{PageRef, Pattern};
use crate::page::Identity;
use crate::swap::{Loading, SwapIn, SwapSpace};
use crate::system::System;
use crate::vm::Vm;
use machine::Frame;

/// Slots that are read at once.
const WINDOW: usize = 8;

/// A slot that is being read in, and the page that is to have its content.
struct Incoming<'a, S: System> {
    loading: Loading<'a, S::Machine>,
    held: PageRef<'a, S>,
}

/// Neighbouring slots that are read in together; the first gap ends them.
struct Window<'a, S: System> {
    slots: [Option<Incoming<'a, S>>; WINDOW],
    /// The index of the requested one.
    wanted: usize,
}

impl<S: System> Vm<S> {
    /// The page with the content of a slot that a page-table entry named a moment ago;
    /// `None` if the slot is not needed any more. May sleep: the caller holds no lock.
    ///
    /// A fault that maps it locks the entry first, and checks that the entry and the slot have not
    /// changed.
    pub(crate) fn swap_in(
        &self,
        slot: u32,
        pattern: Pattern,
    ) -> Result<Option<PageRef<'_, S>>, Error> {
        let Some(swap) = self.swap_space() else {
            return Ok(None);
        };
        match swap.begin_in(slot, |frame| self.page_ref(frame)) {
            SwapIn::Cached(held) => Ok(Some(held)),
            SwapIn::Gone => Ok(None),
            SwapIn::Load(loading) => {
                let frame = self.allocate_page(Content::Any)?;
                let mut window = Window::new(Incoming {
                    loading,
                    held: PageRef::new(self, frame),
                });
                if pattern != Pattern::Random {
                    self.widen(swap, &mut window);
                }
                self.read_in(swap, &mut window)
            }
        }
    }

    /// Adds the available neighbours of the requested slot.
    fn widen<'a>(&'a self, swap: &'a SwapSpace<S::Machine>, window: &mut Window<'a, S>) {
        let wanted = window.wanted;
        let mut room = self.frames().at_hand() / 2;
        let mut add = |index: usize| {
            let slot = window.slot(index);
            if room == 0 || slot >= swap.slots() {
                return false;
            }
            room -= 1;
            window.slots[index] = self.begin_ahead(swap, slot);
            window.slots[index].is_some()
        };
        let _ = (wanted + 1..WINDOW).all(&mut add);
        let _ = (0..wanted).rev().all(&mut add);
    }

    fn begin_ahead<'a>(
        &'a self,
        swap: &'a SwapSpace<S::Machine>,
        slot: u32,
    ) -> Option<Incoming<'a, S>> {
        let loading = swap.try_load(slot)?;
        let frame = self.allocate_page(Content::Any).ok()?;
        let held = PageRef::new(self, frame);
        Some(Incoming { loading, held })
    }

    /// Reads a window in, and returns the requested page.
    fn read_in<'a>(
        &'a self,
        swap: &'a SwapSpace<S::Machine>,
        window: &mut Window<'a, S>,
    ) -> Result<Option<PageRef<'a, S>>, Error> {
        let (first, frames, count) = window.frames();
        // SAFETY: new pages of this VM, which no other task knows.
        let read_in = |first, frames: &[Frame]| unsafe { swap.read(self.machine(), first, frames) };
        let mut read = read_in(first, &frames[..count]);
        if read.is_err() && count > 1 {
            window.narrow();
            let (first, frames, _) = window.frames();
            read = read_in(first, &frames[..1]);
        }
        read.map_err(Error::Io)?;
        let wanted = window.slots[window.wanted].take();
        // The cache keeps the others.
        let others = window.slots.iter_mut().filter_map(Option::take);
        others.for_each(|incoming| drop(self.put_in_cache(incoming)));
        Ok(wanted.and_then(|incoming| self.put_in_cache(incoming)))
    }

    /// Puts a page that has its slot's content into the cache; `None` if the slot is
    /// not needed any more.
    fn put_in_cache<'a>(&'a self, incoming: Incoming<'a, S>) -> Option<PageRef<'a, S>> {
        let Incoming { loading, held } = incoming;
        let frame = held.frame();
        machine::invariant!(
            S::Machine: self.page(frame).identity() == Identity::Private,
            "a page is another slot's, or an object's"
        );
        self.page(frame)
            .set_identity(Identity::Swap(loading.slot()));
        // The cache's reference.
        self.page(frame).retain();
        if loading.finish(frame) {
            return Some(held);
        }
        self.make_private(frame);
        self.release_page(frame);
        None
    }
}

impl<'a, S: System> Window<'a, S> {
    /// A window of the requested slot only.
    #[inline]
    fn new(incoming: Incoming<'a, S>) -> Self {
        let wanted = incoming.loading.slot() as usize % WINDOW;
        let mut slots = [const { None }; WINDOW];
        slots[wanted] = Some(incoming);
        Window { slots, wanted }
    }

    /// The slot at `index`.
    fn slot(&self, index: usize) -> u32 {
        debug_assert!(index < WINDOW, "slot {index} is outside of the window");
        let wanted = self.slots[self.wanted].as_ref();
        let wanted = wanted.expect("the wanted slot").loading.slot();
        wanted - self.wanted as u32 + index as u32
    }

    /// Drops all but the requested slot.
    fn narrow(&mut self) {
        let wanted = self.wanted;
        let others = self.slots.iter_mut().enumerate();
        others
            .filter(|(index, _)| *index != wanted)
            .for_each(|(_, slot)| drop(slot.take()));
    }

    /// The first slot, the frames that it and the following slots are read to, and their number.
    fn frames(&self) -> (u32, [Frame; WINDOW], usize) {
        let mut frames = [Frame(0); WINDOW];
        let mut count = 0;
        let mut first = None;
        for incoming in self.slots.iter().flatten() {
            let from = *first.get_or_insert(incoming.loading.slot());
            debug_assert_eq!(
                incoming.loading.slot(),
                from + count as u32,
                "the slots are no neighbours"
            );
            frames[count] = incoming.held.frame();
            count += 1;
        }
        (first.expect("the wanted slot"), frames, count)
    }
}
