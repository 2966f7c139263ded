//! The pmap: an address space's page tables, and the reverse map from a page to them.
//!
//! # Protocol
//! A mapping is a page-table entry plus a PV entry on the page's list. Both change under the lock
//! of the slot ([`crate::tree`]) that covers the address; the PV list also needs the page's PV
//! lock. A page without a reference belongs to the task that owns its frame, which needs no lock
//! for its list: no other task looks at it.
//!
//! - **enter** ([`Pmap::enter`]): PV entry, then page-table entry, under both. A page that is new
//!   begins with its first mapping ([`Pmap::make_first`]): PV entry, first reference, page-table
//!   entry.
//! - **remove** ([`Pmap::remove`]): inside a delayed-invalidation block and under the slots' locks,
//!   for each page: clear the entry (the hardware's last accessed and dirty bits come with it),
//!   then under the PV lock take the PV entry off, keep the bits, and note the page in the block.
//!   Then flush the TLBs of the CPUs that may have the translation; only then are frames freed, the
//!   locks released and the block closed. If the mapping has the page's only reference, the page
//!   loses that first, and then the entry: no task can look for it, so it needs no PV lock and no
//!   block, and its list is forgotten with it.
//! - **remove_all** ([`crate::Vm::remove_all`]): from the page's side; for each PV
//!   entry under both locks clear and flush. Then wait for blocks that had noted the
//!   page: their mappings are off the list but may still be in a TLB.
//!
//! Mappings of objects' pages have no PV entries: [`attached`] says how these are found and waited
//! for.
//!
//! A fork may have given a slot's tables to other spaces too: [`shared`] says how it is changed
//! then.
//!
//! A slot of 2 MiB may be mapped by one entry: [`superpage`] says how that happens and
//! how it ends. The protocol then concerns its pages as before.
//!
//! The hardware walker also reads and writes entries (accessed, dirty), so they are
//! cleared by exchange, never by store.

mod active;
mod attached;
mod bits;
mod chunks;
mod enter;
mod entry;
mod flush;
mod fork;
mod inspect;
mod kin;
mod lazy;
mod listed;
mod moved;
mod protect;
mod remove;
mod reverse;
mod revocation;
mod shared;
mod superpage;
mod tables;
mod trim;

pub(crate) use bits::Busy;
pub(crate) use entry::Entry;
pub(crate) use flush::Gather;
pub(crate) use fork::Forking;
pub(crate) use inspect::{Seen, SeenPage};
pub(crate) use remove::Removal;
pub(crate) use reverse::How;
pub use reverse::Removed;
pub(crate) use trim::whole_lines;

use crate::error::Error;
use crate::frames::Content;
use crate::pv::Owner;
use crate::system::{Gate, Invalidation, PvChunks, System, Victim};
use crate::tree::{ALL, Slot, Tree};
use crate::vm::{Keep, SHARED, Spare, Vm};
use active::ActiveCpus;
use alloc::sync::{Arc, Weak};
use core::ptr;
use machine::{
    Asid, Atomic, AtomicInt, Atomics, Cpus, Flush, Frame, Memory, Mmu, Ordering, PAGE_SIZE, Pinned,
    Topology, VaRange, pte,
};
use revocation::Revocations;
use sync::Padded;

/// An address space as the hardware sees it, and the tree of its mappings.
///
/// The first fields are written once or with the first use of a CPU, and read by all.
#[repr(C)]
pub struct Pmap<S: System> {
    vm: Keep<S>,
    root: Frame,
    /// The pmap's key in the VM's table of pmaps.
    tag: Asid,
    /// The tag of its TLB entries; [`SHARED`] if the pmap's tag is beyond those of the machine.
    asid: Asid,
    /// CPUs whose TLB may have entries of this pmap.
    active: ActiveCpus<S::Machine>,
    pub(crate) tree: Tree<S>,
    /// The gate's locks and records of the space: none by default.
    pub(crate) gate: Padded<<S::Gate as Gate<S::Machine>>::Space>,
    /// The number of mapped pages, if the invalidation checks it before each removal; see
    /// [`Invalidation::may_sleep`].
    resident: Padded<<S::Machine as Atomics>::AtomicUsize>,
    /// The forks of this space that take away the right to write.
    revocations: Padded<Revocations<S::Machine>>,
    /// The address at which the next [`Spare::sweep`] begins; a hint.
    swept: Padded<<S::Machine as Atomics>::AtomicUsize>,
    /// True if it is no space's: then all of its pages were entered ([`Pmap::enter`]).
    is_bare: bool,
    /// Its chunks of PV entries, if these are not in tables.
    chunks: Option<<S::PvChunks as PvChunks<S::Machine>>::Pmap>,
}

/// Held while page tables change.
pub(crate) type PmapGuard<'a, S> = <<S as System>::Gate as Gate<<S as System>::Machine>>::Pmap<'a>;

/// A pass over the pages of a range, which locks their lists.
#[derive(Clone, Copy)]
enum Pass {
    /// It leaves out the pages whose lists are locked.
    Tries,
    /// It waits for each list.
    Waits,
}

impl Pass {
    /// Pass `n` of `passes`: only the last one waits.
    fn number(n: u32, passes: u32) -> Self {
        if n < passes { Pass::Tries } else { Pass::Waits }
    }
}

impl<S: System> Pmap<S> {
    /// An empty pmap of no space: its owner alone says what is mapped. Dropping it unmaps all.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn new(vm: &Arc<Vm<S>>) -> Result<Arc<Self>, Error> {
        Self::begun(Keep::new(vm)?, true)
    }

    /// An empty pmap for a space of the VM to which `vm` is a reference.
    pub(crate) fn kept(vm: Keep<S>) -> Result<Arc<Self>, Error> {
        Self::begun(vm, false)
    }

    fn begun(vm: Keep<S>, is_bare: bool) -> Result<Arc<Self>, Error> {
        let tag = vm.allocate_tag()?;
        let root = vm.allocate_root().inspect_err(|_| vm.free_tag(tag))?;
        let pmap = Arc::new(Pmap {
            vm: vm.clone(),
            root,
            tag,
            asid: vm.tag_of_entries(tag),
            active: ActiveCpus::new(),
            tree: Tree::new(),
            gate: Padded(vm.gate().new_space()),
            resident: Padded(<S::Machine as Atomics>::AtomicUsize::new(0)),
            revocations: Padded(Revocations::new()),
            swept: Padded(<S::Machine as Atomics>::AtomicUsize::new(0)),
            is_bare,
            chunks: vm.pv_chunks().map(|chunks| chunks.new_pmap(tag)),
        });
        pmap.label();
        let known: Weak<Self> = Arc::downgrade(&pmap);
        vm.roster().enter(tag, known);
        Ok(pmap)
    }

    /// Makes the calling CPU translate with this pmap.
    ///
    /// A task that loses its CPU does so again when it is back, before it uses the space
    /// ([`machine::Locals::at_switch`]). The kernel has the CPU leave the pmap again before it
    /// drops it, which frees the root table: for another pmap, or by [`machine::Mmu::deactivate`].
    ///
    /// # Panics
    /// If the caller runs on no CPU of the VM's machine.
    pub fn activate(&self) {
        let (pin, machine) = (S::Machine::pin(), self.vm.machine());
        let cpu = machine.cpus().index_of(pin.cpu());
        assert!(
            cpu < machine.cpus().len(),
            "a pmap is activated on no CPU of its machine"
        );
        // Entries of other spaces with the same tag. A machine that has one tag forgets them by
        // itself.
        let flushes = self.asid == SHARED && machine.asids() > 1;
        let translate = |is_stale| {
            // SAFETY: the pmap's tables. They stay while the pmap does, and no task reaches memory
            // by them when it has gone: `Space::load` and its like see to that, and a kernel that
            // runs tasks in other ways leaves the pmap first, as said above.
            unsafe { machine.activate(self.root, self.asid) };
            // After the change: until it, a TLB may load more of the last space's entries. No task
            // of this space runs before.
            if is_stale {
                machine.flush_local(self.asid, Flush::All);
            }
        };
        self.active
            .enter(self.vm.current(), cpu, self.tag, flushes, translate);
    }

    /// Returns true if the calling CPU translates with this pmap.
    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        let cpus = self.vm.machine().cpus();
        // Until the answer is known: a task that moves to another CPU leaves this one's pmap.
        let pin = S::Machine::pin();
        self.vm.current().has(cpus.index_of(pin.cpu()), self.tag)
    }

    /// Checks that an embedder may change `range`: the pmap is no space's, and the range is one of
    /// whole pages of tasks.
    fn check(&self, range: VaRange) -> Result<(), Error> {
        if !self.is_bare {
            let reason = "the pmap is a space's, which changes it itself";
            return Err(Error::Invalid { reason });
        }
        let is_aligned = (range.start | range.end).is_multiple_of(PAGE_SIZE);
        if is_aligned && range.start <= range.end && range.end <= pte::USER_END {
            return Ok(());
        }
        let reason = "the range is not one of whole pages of tasks";
        Err(Error::Invalid { reason })
    }

    /// The number of pages that were mapped a moment ago. O(slots with the default invalidation).
    pub fn resident(&self) -> usize {
        if self.vm.invalidation().may_sleep() {
            self.resident.load(Ordering::Relaxed)
        } else {
            self.tree.resident()
        }
    }

    /// Begins a change of the page tables, before any slot is locked.
    #[inline]
    #[track_caller]
    pub(crate) fn lock_tables(&self) -> PmapGuard<'_, S> {
        self.vm.gate().lock_pmap(&self.gate)
    }

    /// Begins a change of the page tables, if that needs no waiting.
    #[inline]
    #[track_caller]
    pub(crate) fn try_lock_tables(&self) -> Option<PmapGuard<'_, S>> {
        self.vm.gate().try_lock_pmap(&self.gate)
    }

    /// The owner of the tables of `slot`, one of this pmap's.
    fn owner(&self, slot: &Slot<S>) -> Owner {
        Owner {
            pmap: ptr::from_ref(self).cast(),
            slot: ptr::from_ref(slot).cast(),
        }
    }

    /// Updates the count that [`Pmap::resident`] reads, if there is one.
    fn count_resident(&self, delta: isize) {
        if self.vm.invalidation().may_sleep() {
            // Relaxed: a number. A negative `delta` wraps.
            let old = self.resident.fetch_add(delta as usize, Ordering::Relaxed);
            debug_assert!(
                old.checked_add_signed(delta).is_some(),
                "{delta} pages more than {old}"
            );
        }
    }

    fn label(&self) {
        S::Machine::label_value(self, "Pmap");
        self.active.label();
        self.tree.label();
        S::Machine::label_value(&self.gate, "Pmap.gate");
        S::Gate::label_space(&self.gate);
        S::Machine::label_value(&self.resident, "Pmap.resident");
        S::Machine::label_value(&self.revocations, "Pmap.revocations");
        S::Machine::label_value(&self.swept, "Pmap.swept");
    }
}

impl<S: System> Vm<S> {
    /// Takes a frame for a root table, in which the kernel is mapped and nothing else.
    fn allocate_root(&self) -> Result<Frame, Error> {
        let root = self.allocate_table()?;
        if let Some(kernel) = self.kernel() {
            let machine = self.machine();
            let (mut first, end) = (kernel.places.start, kernel.places.end);
            // SAFETY: the kernel's root, for this purpose.
            let find = |first| unsafe { machine.find_word(kernel.root, first, end, !0) };
            while let Some((place, entry)) = find(first) {
                // SAFETY: the frame has just been allocated.
                let word = unsafe { machine.word(root, place) };
                // Relaxed: a CPU that activates the root has come by it in some ordered way.
                word.store(entry, Ordering::Relaxed);
                first = place + 1;
            }
        }
        Ok(root)
    }

    /// Takes a frame for a page table.
    fn allocate_table(&self) -> Result<Frame, Error> {
        let frame = self.allocate(Content::Zeroed)?;
        let memory = self.machine().direct_map(frame);
        S::Machine::label(memory.as_ptr().cast(), PAGE_SIZE, "page table");
        Ok(frame)
    }
}

impl<S: System> Spare for Pmap<S> {
    fn sweep(&self, wanted: usize) -> usize {
        self.sweep_tables(wanted)
    }

    fn empty_chunk(&self, victim: Victim) -> usize {
        self.empty(victim)
    }
}

impl<S: System> Drop for Pmap<S> {
    fn drop(&mut self) {
        if self.is_bare {
            let removed = self.remove(ALL);
            removed.expect("whole slots need no memory");
        }
        machine::invariant!(
            S::Machine: self.resident() == 0,
            "a pmap is emptied before it is dropped"
        );
        self.flush_everywhere();
        self.trim_chunks();
        self.free_tables();
        self.vm.free_tag(self.tag);
    }
}
