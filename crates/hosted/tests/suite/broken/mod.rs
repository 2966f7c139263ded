//! The hosted machine with one flaw.

use hosted::{Hosted, Pin, Task};
use machine::{
    Anchor, Asid, Atomics, Clock, CpuRange, CpuSet, Cpus, Execute, Flush, Frame, Job,
    KernelEntries, Locals, Memory, Mmu, Ordering, PAGE_SIZE, PageFault, Tasks, Topology, VaRange,
    pte,
};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};

/// The flaw.
pub type Flaw = u8;
pub const NONE: Flaw = 0;
pub const NO_SHOOTDOWN: Flaw = 1;
pub const SPARES_ITSELF: Flaw = 2;
pub const LOSES_REQUESTS: Flaw = 3;
pub const NO_LOCAL_FLUSH: Flaw = 4;
pub const FLUSHES_ONE_PAGE: Flaw = 5;
pub const ONE_ASID: Flaw = 6;
pub const FORGETFUL_TLB: Flaw = 7;
pub const LOSES_DIRTY: Flaw = 8;
pub const IGNORES_RIGHTS: Flaw = 9;
pub const NO_ZERO: Flaw = 10;
pub const NO_COPY: Flaw = 11;
pub const WRONG_CPU: Flaw = 12;
pub const CLOCK_GOES_BACK: Flaw = 13;
pub const MANY_ANCHORS: Flaw = 14;
pub const FORGETS_LOCALS: Flaw = 15;
pub const KEEPS_LARGE: Flaw = 16;
pub const EXECUTES_DATA: Flaw = 17;
pub const MEMORY_TWICE: Flaw = 18;
pub const KERNEL_AMONG_USERS: Flaw = 19;
pub const KERNEL_HANDED_OVER: Flaw = 20;
pub const NO_ASIDS: Flaw = 21;
pub const CLOCK_STANDS_STILL: Flaw = 22;

#[derive(Clone)]
pub struct Broken<const FLAW: Flaw> {
    inner: Hosted,
    /// The root in use last; the suite's checks use one at a time where it matters.
    root: Arc<AtomicU32>,
    shootdowns: Arc<AtomicUsize>,
}

impl<const FLAW: Flaw> Broken<FLAW> {
    pub fn new(inner: Hosted) -> Self {
        Broken {
            inner,
            root: Arc::default(),
            shootdowns: Arc::default(),
        }
    }

    fn asid(asid: Asid) -> Asid {
        if FLAW == ONE_ASID { Asid(0) } else { asid }
    }

    fn before_access(&self) {
        if FLAW == FORGETFUL_TLB {
            for asid in 0..4 {
                self.inner.flush_local(Asid(asid), Flush::All);
            }
        }
    }

    fn clean(&self, address: usize) {
        let mut table = Frame(self.root.load(Ordering::Relaxed));
        for level in (1..pte::LEVELS).rev() {
            // SAFETY: a table of the suite's.
            let word = unsafe { self.inner.word(table, pte::index(address, level)) };
            let entry = word.load(Ordering::Relaxed);
            if entry & pte::HUGE != 0 {
                word.fetch_and(!pte::DIRTY, Ordering::Relaxed);
            }
            if entry & pte::PRESENT == 0 || entry & pte::HUGE != 0 {
                return;
            }
            table = pte::frame(entry);
        }
        // SAFETY: a table of the suite's.
        let leaf = unsafe { self.inner.word(table, pte::index(address, 0)) };
        leaf.fetch_and(!pte::DIRTY, Ordering::Relaxed);
    }
}

impl<const FLAW: Flaw> Atomics for Broken<FLAW> {
    type AtomicU8 = <Hosted as Atomics>::AtomicU8;
    type AtomicU16 = <Hosted as Atomics>::AtomicU16;
    type AtomicU32 = <Hosted as Atomics>::AtomicU32;
    type AtomicU64 = AtomicU64;
    type AtomicUsize = <Hosted as Atomics>::AtomicUsize;
    type AtomicPtr = <Hosted as Atomics>::AtomicPtr;
    type AtomicPair = <Hosted as Atomics>::AtomicPair;
    type Cell<T: Send> = <Hosted as Atomics>::Cell<T>;

    fn fence(order: Ordering) {
        Hosted::fence(order);
    }
}

// SAFETY: every method forwards to the hosted machine, which keeps the contract.
unsafe impl<const FLAW: Flaw> Cpus for Broken<FLAW> {
    type Pin = Pin;

    fn pin() -> Pin {
        Hosted::pin()
    }
    fn pins() -> u32 {
        Hosted::pins()
    }
    fn relax(round: u32) {
        Hosted::relax(round);
    }
    fn delay(pauses: u32) {
        Hosted::delay(pauses);
    }
}

impl<const FLAW: Flaw> Tasks for Broken<FLAW> {
    type Task = Task;

    fn current_task() -> Task {
        Hosted::current_task()
    }
    fn park() {
        Hosted::park();
    }
    fn unpark(task: Task) {
        Hosted::unpark(task);
    }
    fn yield_now() {
        Hosted::yield_now();
    }
    fn with_locals<R>(f: impl FnOnce(&Locals) -> R) -> R {
        if FLAW == FORGETS_LOCALS {
            let fresh = Locals::ZERO;
            return f(&fresh);
        }
        Hosted::with_locals(f)
    }
    fn anchor() -> &'static Anchor {
        if FLAW == MANY_ANCHORS {
            return Box::leak(Box::default());
        }
        Hosted::anchor()
    }
}

impl<const FLAW: Flaw> Clock for Broken<FLAW> {
    fn now() -> u64 {
        match FLAW {
            CLOCK_GOES_BACK => !Hosted::now(),
            CLOCK_STANDS_STILL => 0,
            _ => Hosted::now(),
        }
    }

    fn sleep_until(time: u64) {
        Hosted::sleep_until(time);
    }
}

impl<const FLAW: Flaw> Topology for Broken<FLAW> {
    fn cpus(&self) -> CpuRange {
        self.inner.cpus()
    }
}

impl<const FLAW: Flaw> Execute for Broken<FLAW> {
    fn execute(&self, mut jobs: Vec<Job>) {
        if FLAW == WRONG_CPU {
            jobs.reverse();
        }
        self.inner.execute(jobs);
    }
}

// SAFETY: the frames and words are the hosted machine's, which keeps the contract.
unsafe impl<const FLAW: Flaw> Memory for Broken<FLAW> {
    fn frame_end(&self) -> usize {
        self.inner.frame_end()
    }
    fn usable(&self, each: &mut dyn FnMut(Range<u32>)) {
        self.inner.usable(each);
        if FLAW == MEMORY_TWICE {
            self.inner.usable(each);
        }
    }
    fn owned(&self) -> &AtomicBool {
        self.inner.owned()
    }
    fn direct_map(&self, frame: Frame) -> NonNull<u8> {
        self.inner.direct_map(frame)
    }
    unsafe fn word(&self, frame: Frame, index: usize) -> &AtomicU64 {
        // SAFETY: so says the caller.
        unsafe { self.inner.word(frame, index) }
    }
    unsafe fn zero(&self, frame: Frame) {
        if FLAW != NO_ZERO {
            // SAFETY: so says the caller.
            unsafe { self.inner.zero(frame) };
        }
    }
    unsafe fn copy(&self, from: Frame, to: Frame) {
        if FLAW != NO_COPY {
            // SAFETY: so says the caller.
            unsafe { self.inner.copy(from, to) };
        }
    }
}

// SAFETY: every method forwards to the hosted machine, except for the flaw, which the suite must
// find.
unsafe impl<const FLAW: Flaw> Mmu for Broken<FLAW> {
    fn asids(&self) -> usize {
        match FLAW {
            // Claims to have no tags, although 0 always is one.
            NO_ASIDS => 0,
            _ => self.inner.asids(),
        }
    }

    fn kernel_entries(&self) -> Option<KernelEntries> {
        let kernel = self.inner.kernel_entries()?;
        Some(match FLAW {
            KERNEL_AMONG_USERS => KernelEntries {
                places: 0..pte::ENTRIES,
                ..kernel
            },
            KERNEL_HANDED_OVER => KernelEntries {
                root: Frame(20),
                ..kernel
            },
            _ => kernel,
        })
    }

    unsafe fn activate(&self, root: Frame, asid: Asid) {
        self.root.store(root.0, Ordering::Relaxed);
        // SAFETY: so says the caller.
        unsafe { self.inner.activate(root, Self::asid(asid)) };
    }

    fn deactivate(&self) {
        self.inner.deactivate();
    }

    fn flush_local(&self, asid: Asid, what: Flush) {
        let what = match what {
            _ if FLAW == NO_LOCAL_FLUSH => return,
            Flush::Range(range) if FLAW == FLUSHES_ONE_PAGE => {
                Flush::Range(VaRange::sized(range.start, PAGE_SIZE))
            }
            Flush::Range(range) if FLAW == KEEPS_LARGE && range.len() < pte::span(1) => return,
            what => what,
        };
        self.inner.flush_local(Self::asid(asid), what);
    }

    fn shootdown(&self, targets: &CpuSet, asid: Asid, what: Flush) {
        let mut targets = *targets;
        let before = self.shootdowns.fetch_add(1, Ordering::Relaxed);
        if FLAW == NO_SHOOTDOWN || FLAW == KEEPS_LARGE || (FLAW == LOSES_REQUESTS && before >= 8) {
            targets = CpuSet::EMPTY;
        }
        if FLAW == SPARES_ITSELF {
            targets.remove(0);
        }
        self.inner.shootdown(&targets, Self::asid(asid), what);
    }

    unsafe fn load(&self, address: usize) -> Result<u64, PageFault> {
        self.before_access();
        // SAFETY: so says the caller.
        unsafe { self.inner.load(address) }
    }

    unsafe fn store(&self, address: usize, value: u64) -> Result<(), PageFault> {
        self.before_access();
        // SAFETY: so says the caller.
        let stored = unsafe { self.inner.store(address, value) };
        match stored {
            Err(fault) if FLAW == IGNORES_RIGHTS && fault.present => return Ok(()),
            Ok(()) if FLAW == LOSES_DIRTY => self.clean(address),
            _ => {}
        }
        stored
    }

    unsafe fn fetch(&self, address: usize) -> Result<u64, PageFault> {
        self.before_access();
        // SAFETY: so says the caller.
        match unsafe { self.inner.fetch(address) } {
            // SAFETY: so says the caller.
            Err(fault) if FLAW == EXECUTES_DATA && fault.present => unsafe {
                self.inner.load(address)
            },
            fetched => fetched,
        }
    }
}
