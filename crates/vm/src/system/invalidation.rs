//! How removal by the reverse map waits.

use super::Part;
use machine::{Frame, Machine};

/// How removal by the reverse map learns that no TLB keeps a page it finds
/// unmapped (*delayed invalidation* in FreeBSD's pmap).
///
/// A CPU that takes mappings away does it inside a *block*: it clears the entry and
/// takes the PV entry off the page's list under the page's PV lock, releases that
/// lock, and flushes TLBs before the block ends. In between, the page's PV list may
/// be empty while another CPU still writes the page through its TLB. A removal that finds
/// the list empty calls [`Invalidation::wait`]; when it returns, every block that
/// had noted the page before the call has ended.
///
/// It is silent ([`Part::is_silent`]) if [`Invalidation::enter`] does nothing, no task may sleep in
/// a block, and a page that no task can look for any more need not be noted when its mapping goes.
///
/// # Safety
/// `wait` keeps that promise: the VM frees and launders frames on the strength of it.
pub unsafe trait Invalidation<M: Machine>: Part<M> {
    /// An open block; ends when dropped.
    type Block<'a>;
    /// Held while a mapping is made, or while mappings are removed by the reverse map; ends when
    /// dropped. The default holds nothing.
    type Held<'a>: Default;
    /// A page's data of this part. The default is that of a page that no block has noted.
    type Page: Default + Send + Sync;

    /// Returns true if a task may sleep in a block; never changes. If so, a block is opened around
    /// each removal from a pmap that has any page, as FreeBSD does, before any lock of a slot is
    /// taken. If not, it is opened under the slots' locks and the first page's PV lock, `begin`
    /// takes no lock, and the block ends with the flush or before anything that may sleep.
    fn may_sleep(&self) -> bool;

    /// Opens a block at the time that [`Invalidation::may_sleep`] says; a task has at most one.
    fn begin(&self) -> Self::Block<'_>;

    /// Notes in this block that a mapping of `page`, in `frame`, is removed. Under the page's PV
    /// lock.
    fn note(&self, block: &Self::Block<'_>, frame: Frame, page: &Self::Page);

    /// Called before a lock of a slot, or of the pmap, is taken to make a mapping.
    #[inline]
    fn enter(&self) -> Self::Held<'_> {
        Self::Held::default()
    }

    /// Called before the PV lock of a page is taken to remove all its mappings.
    #[inline]
    fn reverse(&self) -> Self::Held<'_> {
        Self::Held::default()
    }

    /// Waits until each block that has noted `page` and is still open has ended. The
    /// caller holds no PV lock, no slot, no pmap lock and no block. It has held `reverse` since
    /// before it found the page's PV list empty.
    fn wait(&self, reverse: &Self::Held<'_>, frame: Frame, page: &Self::Page);
}
