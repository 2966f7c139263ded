//! Translation: each access goes through the CPU's TLB, then the tables.

use crate::shootdown::{self, Gate, Order, Outcome};
use crate::stats::Counters;
use crate::{Hosted, Probe};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU64, Ordering};
use machine::soft::{Entry, SETS, Tlb, walk};
use machine::{
    Access, Asid, CpuSet, Cpus, Flush, Frame, KernelEntries, Mmu, PAGE_SHIFT, PAGE_SIZE, PageFault,
    Pinned, pte,
};

/// The translation hardware of one CPU.
pub(crate) struct CpuMmu {
    /// The part that other CPUs touch.
    gate: Gate<Hosted>,
    own: Owned,
    pub(crate) counters: Counters,
}

/// The part that only the CPU's thread touches, on cache lines of its own.
#[repr(align(128))]
struct Owned(UnsafeCell<State>);

struct State {
    /// The tables in use, and the tag of their entries.
    active: Option<(Frame, Asid)>,
    tlb: Tlb,
}

// SAFETY: only `CpuMmu::own` reaches the cell, and its callers run on the CPU that owns it; the
// claim of a CPU passes it from thread to thread.
unsafe impl Sync for Owned {}

impl CpuMmu {
    pub(crate) fn new() -> Self {
        CpuMmu {
            gate: Gate::new(),
            own: Owned(UnsafeCell::new(State {
                active: None,
                tlb: Tlb::new(SETS),
            })),
            counters: Counters::default(),
        }
    }

    /// The part that only the owner touches.
    ///
    /// # Safety
    /// The caller runs on this CPU, and drops the result before the next call.
    #[inline]
    #[allow(clippy::mut_from_ref)]
    unsafe fn own(&self) -> &mut State {
        // SAFETY: one thread at a time is the CPU (see `Hosted::attach`).
        unsafe { &mut *self.own.0.get() }
    }

    /// Carries out the requests of other CPUs.
    ///
    /// # Safety
    /// The caller runs on this CPU, and holds no result of [`CpuMmu::own`].
    #[inline]
    unsafe fn serve(&self) {
        // SAFETY: the caller runs on this CPU and holds no result of `own`; the closure's result
        // ends with each use.
        let tlb = || unsafe { &mut self.own().tlb };
        let served = self.gate.serve(|order| match order {
            Order::Flush(asid, what) => tlb().flush(asid, what),
            Order::Everything => {
                tlb().clear();
                self.counters.overflows.add(1);
            }
        });
        if served > 0 {
            self.counters.served.add(served);
        }
    }
}

impl State {
    /// The entry that allows the access.
    ///
    /// # Safety
    /// As for [`Mmu::load`].
    #[inline]
    unsafe fn translate(
        &mut self,
        machine: &Hosted,
        counters: &Counters,
        address: usize,
        access: Access,
    ) -> Result<Entry, PageFault> {
        let fault = |present| PageFault {
            address,
            access,
            present,
        };
        let (root, asid) = self.active.ok_or(fault(false))?;
        let page = address >> PAGE_SHIFT;
        // Beyond the user half a page number might alias another page's.
        let cached = (address < pte::USER_END).then(|| self.tlb.lookup(asid, page));
        if let Some(entry) = cached.flatten() {
            if entry.allows(access) {
                counters.hits.add(1);
                return Ok(entry);
            }
            if entry.forbids(access) {
                self.tlb.remove(asid, page);
                return Err(fault(true));
            }
        }
        counters.walks.add(1);
        // SAFETY: `root` and the tables below it are tables, so says the caller of the access.
        let mut walked = unsafe { walk(machine, root, address, access) };
        if let (Ok(entry), Some(oracle)) = (&mut walked, &machine.inner.oracle) {
            entry.note = oracle.note(entry);
        }
        match walked {
            Ok(entry) => self.tlb.insert(asid, page, entry),
            // As in hardware, a fault drops the cached entry of its address.
            Err(_) => self.tlb.remove(asid, page),
        }
        walked
    }
}

impl Hosted {
    /// The translation hardware of the calling CPU.
    #[inline]
    fn mmu(&self) -> &CpuMmu {
        let index = self.inner.cpus.index_of(Hosted::pin().cpu());
        match self.inner.mmus.get(index) {
            Some(mmu) => mmu,
            None => no_mmu(),
        }
    }

    /// Makes the calling CPU translate by this root with this tag, or not at all.
    fn translate_by(&self, tables: Option<(Frame, Asid)>) {
        // SAFETY: the caller runs on the CPU, and holds no result of `own`.
        let own = unsafe { self.mmu().own() };
        if self.inner.asids == 1 && own.active != tables {
            own.tlb.flush(Asid(0), Flush::All);
        }
        own.active = tables;
    }

    /// Performs one access of a task: `op` on the word at `address`.
    ///
    /// # Safety
    /// As for [`Mmu::load`].
    #[inline]
    unsafe fn perform<R>(
        &self,
        address: usize,
        access: Access,
        op: impl FnOnce(&AtomicU64) -> R,
    ) -> Result<R, PageFault> {
        let mmu = self.mmu();
        // The access ends when this is dropped, after `op`, or by a panic (a table that names no
        // frame).
        let _access = mmu.gate.begin();
        // SAFETY: the caller runs on the CPU, and holds no result of `own` here.
        unsafe { mmu.serve() };
        // SAFETY: the caller runs on the CPU; neither the walk nor `op` calls `own` again.
        let state = unsafe { mmu.own() };
        // SAFETY: so says the caller.
        match unsafe { state.translate(self, &mmu.counters, address, access) } {
            Ok(entry) => {
                let word = (address % PAGE_SIZE) / size_of::<u64>();
                let result = op(self.inner.arena.word(entry.frame, word));
                // After the access: a frame that is freed meanwhile was freed too early as well.
                if let Some(oracle) = &self.inner.oracle {
                    oracle.used(
                        &entry,
                        address,
                        self.inner.cpus.index_of(Hosted::pin().cpu()),
                    );
                }
                Ok(result)
            }
            Err(fault) => {
                mmu.counters.faults.add(1);
                Err(fault)
            }
        }
    }
}

#[cold]
#[inline(never)]
fn no_mmu() -> ! {
    panic!("translation on no CPU of this machine, or on a machine without memory")
}

/// The calling thread must be a CPU of the machine, and the machine have memory; every operation
/// panics otherwise.
///
/// An access costs one `xchg` and a TLB look-up. Loads acquire and stores release, as on x86. A
/// page of 2 MiB takes one entry of the TLB. An access that a cached entry forbids faults, even if
/// the tables allow it by now, and the fault drops the entry: a handler must tolerate such spurious
/// faults, as on x86.
// SAFETY: `soft::walk` and the exact TLB keep the contract of accesses; the protocol in `shootdown`
// shows why a flush has ended on all CPUs when the call returns.
unsafe impl Mmu for Hosted {
    fn asids(&self) -> usize {
        self.inner.asids
    }

    fn kernel_entries(&self) -> Option<KernelEntries> {
        self.inner.kernel.map(|root| KernelEntries {
            root,
            places: pte::USER_ENTRIES..pte::ENTRIES,
        })
    }

    unsafe fn activate(&self, root: Frame, asid: Asid) {
        assert!(
            usize::from(asid.0) < self.inner.asids,
            "there is no {asid:?}"
        );
        self.check_root(root);
        self.translate_by(Some((root, asid)));
    }

    fn deactivate(&self) {
        self.translate_by(None);
    }

    fn flush_local(&self, asid: Asid, what: Flush) {
        let mmu = self.mmu();
        mmu.counters.local_flushes.add(1);
        // SAFETY: the caller runs on the CPU, and holds no result of `own`.
        unsafe { mmu.own() }.tlb.flush(asid, what);
    }

    fn shootdown(&self, targets: &CpuSet, asid: Asid, what: Flush) {
        let mmu = self.mmu();
        let me = self.inner.cpus.index_of(Hosted::pin().cpu());
        self.inner.hook.reach(Probe::BeforeShootdown { cpu: me });
        let others = || targets.iter().filter(|&cpu| cpu != me);
        let gates = || others().map(|cpu| &self.inner.mmus[cpu].gate);

        mmu.counters.shootdowns.add(1);
        if targets.contains(me) {
            // SAFETY: the caller runs on the CPU, and holds no result of `own`.
            unsafe { mmu.own() }.tlb.flush(asid, what);
        }
        // No CPU waits for this one, but its mailbox should not fill up meanwhile.
        // SAFETY: the caller runs on the CPU, and holds no result of `own`.
        let meanwhile = || unsafe { mmu.serve() };
        shootdown::reach(gates, asid, what, meanwhile, |outcome| {
            mmu.counters.requests.add(1);
            match outcome {
                Outcome::Acknowledged => mmu.counters.acknowledged.add(1),
                Outcome::Deferred => mmu.counters.deferred.add(1),
            }
        });
    }

    #[inline]
    unsafe fn load(&self, address: usize) -> Result<u64, PageFault> {
        debug_assert!(
            address.is_multiple_of(size_of::<u64>()),
            "{address:#x} is not aligned"
        );
        // SAFETY: so says the caller.
        unsafe { self.perform(address, Access::Read, |word| word.load(Ordering::Acquire)) }
    }

    #[inline]
    unsafe fn store(&self, address: usize, value: u64) -> Result<(), PageFault> {
        debug_assert!(
            address.is_multiple_of(size_of::<u64>()),
            "{address:#x} is not aligned"
        );
        let store = |word: &AtomicU64| word.store(value, Ordering::Release);
        // SAFETY: so says the caller.
        unsafe { self.perform(address, Access::Write, store) }
    }

    unsafe fn fetch(&self, address: usize) -> Result<u64, PageFault> {
        debug_assert!(
            address.is_multiple_of(size_of::<u64>()),
            "{address:#x} is not aligned"
        );
        // SAFETY: so says the caller.
        unsafe {
            self.perform(address, Access::Execute, |word| {
                word.load(Ordering::Acquire)
            })
        }
    }
}
