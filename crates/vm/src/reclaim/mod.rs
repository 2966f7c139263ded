//! Frame reclamation.
//!
//! There are no page queues. Each page's descriptor has its *age*: how many more looks it survives
//! unused. A *hand*, as in a clock algorithm, goes round over all descriptors, in batches that
//! reclaimers take from one counter (`scan`); a page that was used since the last look is young
//! again, any other page ages by one look, and a page whose age has run out is taken: private pages
//! go to swap space in clusters (`batch`). That is aging by accessed bits with an active and an
//! inactive part, without a lock or a list that pages share.
//!
//! # Protocol of a private page
//! One reclaimer at a time has a page ([`Page::LAUNDRY`], set under the PV lock) and holds it.
//! 1. It gets a slot of the swap space, with one reference that is the reclaimer's, and
//!    is in the slot's cache; [`Identity::Swap`] says so.
//! 2. Each mapping becomes an entry that names the slot. From now on no task writes the page:
//!    a fault finds it in the cache and maps it for reading, and a page in the swap
//!    space counts as shared as long as the slot has a reference.
//! 3. Its content is written. If that fails the page stays: [`Page::UNWRITTEN`].
//! 4. If only cache and reclaimer have the page, it is freed; otherwise it stays cached,
//!    and is freed the next time without being written.
//!
//! The task that drops the last reference of a slot takes the page out of its cache, and the page
//! is private again. A reclaimer that finds [`Identity::Swap`] takes a reference of the
//! slot only if it still has the page ([`SwapSpace::retain_if`]), and otherwise leaves it alone.
//!
//! A page that its owner has given up (`MADV_FREE`) and not written since is freed without
//! these steps: its only mapping is cleared, and its frame is free. Its protocol is
//! in the pmap's module `lazy`.
//!
//! # Where memory is requested
//! Operations hold slots' locks when they find that no frame is left, and reclaiming waits
//! for slots. So they fail, as any operation without memory does, leaving all as it was; and
//! [`Vm::with_frames`], around the whole operation, reclaims and tries again. The caller gets
//! the error only when nothing can be reclaimed, tables included ([`tables`]), and the
//! embedder's hook does not help either.
//!
//! [`Page::LAUNDRY`]: crate::page::Page::LAUNDRY
//! [`Page::UNWRITTEN`]: crate::page::Page::UNWRITTEN
//! [`Identity::Swap`]: crate::page::Identity::Swap
//! [`SwapSpace::retain_if`]: crate::swap::SwapSpace::retain_if

mod batch;
mod evict;
mod pressure;
mod scan;
mod swap_in;
mod tables;

pub(crate) use batch::Batch;
