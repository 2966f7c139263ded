//! Private pages back from the swap space.

use crate::error::Error;
use crate::frames::Content;
use crate::object::PageRef;
use crate::page::Identity;
use crate::policy::Policies;
use crate::swap::SwapIn;
use crate::vm::Vm;
use machine::Platform;

impl<M: Platform, P: Policies<M>> Vm<M, P> {
    /// The page with the content of a slot that a page-table entry named a moment ago;
    /// `None` if nobody needs the slot any more. May sleep: the caller holds no lock.
    ///
    /// Whoever maps it locks the entry first, and looks whether it and the slot still say the same.
    pub(crate) fn swap_in(&self, slot: u32) -> Result<Option<PageRef<'_, M, P>>, Error> {
        let Some(swap) = self.swap_space() else {
            return Ok(None);
        };
        match swap.begin_in(slot, |frame| self.page_ref(frame)) {
            SwapIn::Cached(held) => Ok(Some(held)),
            SwapIn::Gone => Ok(None),
            SwapIn::Load(loading) => {
                let frame = self.allocate_page(Content::Any)?;
                let held = PageRef::new(self, frame);
                loading.read(self.machine(), frame).map_err(Error::Io)?;
                self.page(frame).set_identity(Identity::Swap(slot));
                // The cache's reference.
                self.page(frame).retain();
                if loading.finish(frame) {
                    return Ok(Some(held));
                }
                self.make_private(frame);
                self.release_page(frame);
                Ok(None)
            }
        }
    }

    /// One more entry names the slot; by who holds one that does.
    pub(crate) fn retain_swapped(&self, slot: u32) {
        self.swap_space()
            .expect("a slot is of a swap space")
            .retain(slot);
    }

    /// One entry less names the slot. With the last the page that its cache has is private.
    pub(crate) fn release_swapped(&self, slot: u32) {
        let swap = self.swap_space().expect("a slot is of a swap space");
        if let Some(frame) = swap.release(slot) {
            self.make_private(frame);
            self.release_page(frame);
        }
    }

    /// The page in `frame`, whose slot has gone, is nobody's but who has it mapped or held.
    fn make_private(&self, frame: machine::Frame) {
        let page = self.page(frame);
        let _list = page.lock_pv();
        page.set_identity(Identity::Private);
    }
}
