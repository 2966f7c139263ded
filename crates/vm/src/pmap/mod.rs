//! The pmap: an address space's page tables, and the way back from a page to them.
//!
//! # Protocol
//! A mapping is a page-table entry plus a PV entry on the page's list. Both change
//! under the lock of the slot ([`crate::tree`]) that covers the address; the PV list also
//! needs the page's PV lock.
//!
//! - **enter** ([`Pmap::enter`]): PV entry, then page-table entry, under both.
//! - **remove** ([`Pmap::remove`]): inside a delayed-invalidation block and under the
//!   slots' locks, for each page: clear the entry (the hardware's last accessed and
//!   dirty bits come with it), then under the PV lock take the PV entry off, keep the
//!   bits, and note the page in the block. Then flush the TLBs of the CPUs that may
//!   have the translation; only then are frames freed, the locks released and the
//!   block closed.
//! - **remove_all** ([`crate::Vm::remove_all`]): from the page's side; for each PV
//!   entry under both locks clear and flush. Then wait for blocks that had noted the
//!   page: their mappings are off the list but may still be in a TLB.
//!
//! A fork may have given a slot's tables to other spaces too: [`shared`] says who changes what then.
//!
//! A slot of 2 MiB may be mapped by one entry: [`superpage`] says how it comes to that and
//! what takes it apart. All of the above then concerns its pages as before.
//!
//! Entries are words the walker reads and writes too (accessed, dirty), so they are
//! cleared by exchange, never by store.

mod active;
mod bits;
mod chunks;
mod copy;
mod enter;
mod entry;
mod flush;
mod inspect;
mod lazy;
mod listed;
mod moved;
mod protect;
mod pv;
mod remove;
mod reverse;
mod shared;
mod superpage;
mod sweep;
mod tables;
mod trim;
mod truncate;

pub(crate) use copy::Forking;
pub(crate) use entry::Entry;
pub(crate) use inspect::{Seen, SeenPage};
pub use pv::{Links, Pv, links_at};
pub(crate) use pv::{PvHead, PvTables};
pub(crate) use reverse::How;
pub use reverse::Removed;
pub(crate) use tables::Table;
pub(crate) use trim::whole_lines;

use crate::error::Error;
use crate::frames::Content;
use crate::policy::{Invalidation, MapLocking, Policies, PvChunks};
use crate::tree::{Slot, Tree};
use crate::vm::Vm;
use active::ActiveCpus;
use alloc::sync::Arc;
use core::ptr;
use machine::{Asid, Atomic, AtomicInt, Flush, Frame, Ordering, Pinned, Platform};
use shared::Owner;
use sync::Padded;

/// An address space as the hardware sees it, and the tree that says what is mapped.
///
/// What stands first is written once or with the first use of a CPU, and read by all.
#[repr(C)]
pub struct Pmap<M: Platform, P: Policies<M>> {
    vm: Arc<Vm<M, P>>,
    root: Frame,
    asid: Asid,
    /// CPUs whose TLB may have entries of this pmap.
    active: ActiveCpus<M>,
    pub(crate) tree: Tree<M, P>,
    pub(crate) locking: Padded<P::Locking>,
    /// Pages mapped, if the invalidation asks before each removal; see
    /// [`Invalidation::EAGER`].
    resident: Padded<M::AtomicUsize>,
    /// Forks of this space under way.
    forks: Padded<M::AtomicUsize>,
    /// Where the next [`Pmap::sweep`] begins; a hint.
    swept: Padded<M::AtomicUsize>,
    /// Its chunks of PV entries: nothing by default.
    chunks: <P::PvChunks as PvChunks<M>>::Pmap,
}

impl<M: Platform, P: Policies<M>> Pmap<M, P> {
    /// An empty pmap.
    pub fn new(vm: &Arc<Vm<M, P>>) -> Result<Arc<Self>, Error> {
        let asid = vm.allocate_asid()?;
        let root = vm.allocate_table().inspect_err(|_| vm.free_asid(asid))?;
        let pmap = Arc::new(Pmap {
            vm: vm.clone(),
            root,
            asid,
            active: ActiveCpus::new(),
            tree: Tree::new(),
            locking: Padded(P::Locking::new(vm.locking())),
            resident: Padded(M::AtomicUsize::new(0)),
            forks: Padded(M::AtomicUsize::new(0)),
            swept: Padded(M::AtomicUsize::new(0)),
            chunks: vm.pv_chunks().new_pmap(asid),
        });
        pmap.label();
        vm.roster().enter(asid, &pmap);
        Ok(pmap)
    }

    /// Makes the calling CPU translate with this pmap.
    pub fn activate(&self) {
        self.active.insert(M::pin().cpu().index());
        self.vm.machine().activate(self.root, self.asid);
    }

    /// Pages mapped, a moment ago. O(slots with the default invalidation).
    pub fn resident(&self) -> usize {
        if P::Invalidation::EAGER {
            self.resident.load(Ordering::Relaxed)
        } else {
            self.tree.resident()
        }
    }

    /// Who has the tables of `slot`, one of this pmap's.
    fn owner(&self, slot: &Slot<M, P>) -> Owner {
        Owner {
            pmap: ptr::from_ref(self).cast(),
            slot: ptr::from_ref(slot).cast(),
        }
    }

    /// Keeps the count that [`Pmap::resident`] reads, if there is one.
    fn count_resident(&self, delta: isize) {
        if P::Invalidation::EAGER {
            // Relaxed: a number. Wraps for what is taken away.
            self.resident.fetch_add(delta as usize, Ordering::Relaxed);
        }
    }

    fn label(&self) {
        M::label_value(self, "Pmap");
        self.active.label();
        self.tree.label();
        M::label_value(&self.locking, "Pmap.locking");
        self.locking.label();
        M::label_value(&self.resident, "Pmap.resident");
        M::label_value(&self.forks, "Pmap.forks");
        M::label_value(&self.swept, "Pmap.swept");
    }
}

impl<M: Platform, P: Policies<M>> Vm<M, P> {
    /// Takes a frame for a page table.
    fn allocate_table(&self) -> Result<Frame, Error> {
        let frame = self.allocate(Content::Zeroed)?;
        let memory = self.machine().direct_map(frame);
        M::label(memory.as_ptr().cast(), machine::PAGE_SIZE, "page table");
        Ok(frame)
    }
}

impl<M: Platform, P: Policies<M>> Drop for Pmap<M, P> {
    fn drop(&mut self) {
        debug_assert_eq!(self.resident(), 0, "a pmap is emptied before it is dropped");
        self.flush(Flush::All);
        self.trim_chunks();
        self.free_tables();
        self.vm.free_asid(self.asid);
    }
}
