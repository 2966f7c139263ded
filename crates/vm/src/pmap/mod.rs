//! The pmap: an address space's page tables, and the way back from a page to them.
//!
//! # Protocol
//! A mapping is a page-table entry plus a PV entry on the page's list. Both change
//! under the pmap's lock; the PV list also needs the page's PV lock.
//!
//! - **enter** ([`Pmap::enter`]): PV entry, then page-table entry, under both.
//! - **remove** ([`Pmap::remove`]): inside a delayed-invalidation block and under the
//!   pmap's lock, for each page: clear the entry (the hardware's last accessed and
//!   dirty bits come with it), then under the PV lock take the PV entry off, keep the
//!   bits, and note the page in the block. Then flush the TLBs of the CPUs that may
//!   have the translation; only then are frames freed, the lock released and the
//!   block closed.
//! - **remove_all** ([`crate::Vm::remove_all`]): from the page's side; for each PV
//!   entry under both locks clear and flush. Then wait for blocks that had noted the
//!   page: their mappings are off the list but may still be in a TLB.
//!
//! Entries are words the walker reads and writes too (accessed, dirty), so they are
//! cleared by exchange, never by store.

mod active;
mod enter;
mod flush;
mod protect;
mod pv;
mod remove;
mod reverse;
mod tables;

pub(crate) use pv::{Pv, PvHead};
pub use reverse::Removed;

use crate::error::Error;
use crate::frames::Content;
use crate::lock::PmapLock;
use crate::policy::Policies;
use crate::vm::Vm;
use active::ActiveCpus;
use alloc::sync::Arc;
use core::ptr;
use machine::{Asid, Atomic, Flush, Frame, Ordering, Pinned, Platform};
use pv::Chunks;

/// An address space as the hardware sees it.
pub struct Pmap<M: Platform, P: Policies<M>> {
    vm: Arc<Vm<M, P>>,
    root: Frame,
    asid: Asid,
    /// CPUs whose TLB may have entries of this pmap.
    active: ActiveCpus<M>,
    /// Pages mapped. Written under `inner`'s lock, read by anybody.
    resident: M::AtomicUsize,
    /// Protects the tables below `root`, and what it holds.
    inner: PmapLock<M, Inner<M>>,
}

/// What the pmap's lock protects beside the tables.
struct Inner<M: Platform> {
    chunks: Chunks<M>,
}

impl<M: Platform, P: Policies<M>> Pmap<M, P> {
    /// An empty pmap.
    pub fn new(vm: &Arc<Vm<M, P>>) -> Result<Arc<Self>, Error> {
        let asid = vm.allocate_asid()?;
        let root = vm
            .allocate(Content::Zeroed)
            .inspect_err(|_| vm.free_asid(asid))?;
        Ok(Arc::new(Pmap {
            vm: vm.clone(),
            root,
            asid,
            active: ActiveCpus::new(),
            resident: M::AtomicUsize::new(0),
            inner: PmapLock::<M, _>::new(Inner {
                chunks: Chunks::EMPTY,
            }),
        }))
    }

    /// Makes the calling CPU translate with this pmap.
    pub fn activate(&self) {
        self.active.insert(M::pin().cpu().index());
        self.vm.machine().activate(self.root, self.asid);
    }

    /// Pages mapped, a moment ago.
    pub fn resident(&self) -> usize {
        self.resident.load(Ordering::Relaxed)
    }

    /// Who this pmap is, to PV entries.
    fn identity(&self) -> *const () {
        ptr::from_ref(self).cast()
    }

    /// Under `inner`'s lock.
    fn add_resident(&self, delta: isize) {
        let now = self.resident.load(Ordering::Relaxed);
        let next = now.wrapping_add_signed(delta);
        self.resident.store(next, Ordering::Relaxed);
    }
}

impl<M: Platform, P: Policies<M>> Drop for Pmap<M, P> {
    fn drop(&mut self) {
        debug_assert_eq!(self.resident(), 0, "a pmap is emptied before it is dropped");
        self.flush(Flush::All);
        self.vm.free(self.root, true);
        self.vm.free_asid(self.asid);
    }
}
