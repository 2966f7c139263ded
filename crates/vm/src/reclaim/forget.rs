//! Pages that their owner has given up: they go without being written.

use crate::object::PageRef;
use crate::page::Page;
use crate::pmap::How;
use crate::policy::Policies;
use crate::vm::Vm;
use machine::Platform;

impl<M: Platform, P: Policies<M>> Vm<M, P> {
    /// Forgets a private page if it is given up and nobody has written it since; how many
    /// frames that freed. It is marked as laundry, and stays the caller's if he has to write it.
    pub(super) fn forget<'a>(
        &'a self,
        held: PageRef<'a, M, P>,
    ) -> Result<usize, PageRef<'a, M, P>> {
        let how = How {
            forgets: true,
            ..How::RECLAIM
        };
        let page = self.page(held.frame());
        let lazy = Page::<M, P::Invalidation>::LAZY;
        if page.flags() & lazy == 0 || self.remove_as(held.frame(), how).mappings == 0 {
            return Err(held);
        }
        let frame = held.into_frame();
        // Somebody with an old hint may hold it for a moment.
        let freed = page.release();
        if freed {
            self.free_page(frame, false);
        }
        Ok(usize::from(freed))
    }
}
