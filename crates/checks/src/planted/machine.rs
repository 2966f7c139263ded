//! The simulated machine with one flaw, which behaves as if the VM forgot something.

use core::sync::atomic::AtomicBool;
use machine::{
    Anchor, Asid, Atomics, Clock, CpuRange, CpuSet, Cpus, Flush, Frame, KernelEntries, Locals,
    Memory, Mmu, Ordering, PageFault, Pinned, Tasks, Topology,
};
use sim::{Pin, Sim, Task};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

/// The flaw.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// Flushes of whole spaces, at a fork and at a space's end, do not reach other CPUs.
    ForgetsFlush,
    /// A copy is made before the shootdown that was requested just before it. Other shootdowns of
    /// ranges are done at their CPU's next request to the machine.
    CopiesEarly,
}

/// A postponed shootdown.
type Due = (CpuSet, Asid, Flush);

/// The machine, and the shootdown that each CPU has postponed.
pub struct Flawed {
    sim: Sim,
    flaw: Flaw,
    /// Held only between accesses of the machine.
    due: Mutex<Box<[Option<Due>]>>,
}

impl Flawed {
    /// The machine, with this flaw.
    pub fn new(sim: Sim, flaw: Flaw) -> Self {
        let due = vec![None; sim.cpus().len()];
        Flawed {
            sim,
            flaw,
            due: Mutex::new(due.into()),
        }
    }

    /// Postpones `due` for the calling CPU; returns the shootdown postponed before.
    fn put_off(&self, due: Option<Due>) -> Option<Due> {
        let cpu = self.sim.cpus().index_of(Sim::pin().cpu());
        let mut all = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut all[cpu], due)
    }

    /// Does the calling CPU's postponed shootdown.
    fn catch_up(&self) {
        if self.flaw == Flaw::CopiesEarly
            && let Some((targets, asid, what)) = self.put_off(None)
        {
            self.sim.shootdown(&targets, asid, what);
        }
    }
}

impl Atomics for Flawed {
    type AtomicU8 = <Sim as Atomics>::AtomicU8;
    type AtomicU16 = <Sim as Atomics>::AtomicU16;
    type AtomicU32 = <Sim as Atomics>::AtomicU32;
    type AtomicU64 = <Sim as Atomics>::AtomicU64;
    type AtomicUsize = <Sim as Atomics>::AtomicUsize;
    type AtomicPtr = <Sim as Atomics>::AtomicPtr;
    type AtomicPair = <Sim as Atomics>::AtomicPair;
    type Cell<T: Send> = <Sim as Atomics>::Cell<T>;

    fn fence(order: Ordering) {
        Sim::fence(order);
    }

    fn inspect(look: impl FnOnce() -> bool) -> bool {
        Sim::inspect(look)
    }

    fn key(address: usize) -> usize {
        Sim::key(address)
    }
}

// SAFETY: all operations are the simulated machine's.
unsafe impl Cpus for Flawed {
    type Pin = Pin;

    fn pin() -> Pin {
        Sim::pin()
    }

    fn pins() -> u32 {
        Sim::pins()
    }
    fn numa_node() -> usize {
        Sim::numa_node()
    }
    fn relax(round: u32) {
        Sim::relax(round);
    }
    fn delay(pauses: u32) {
        Sim::delay(pauses);
    }
}

impl Tasks for Flawed {
    type Task = Task;

    fn current_task() -> Task {
        Sim::current_task()
    }
    fn park() {
        Sim::park();
    }
    fn unpark(task: Task) {
        Sim::unpark(task);
    }
    fn yield_now() {
        Sim::yield_now();
    }
    fn with_locals<R>(f: impl FnOnce(&Locals) -> R) -> R {
        Sim::with_locals(f)
    }
    fn anchor() -> &'static Anchor {
        Sim::anchor()
    }
}

impl Clock for Flawed {
    fn now() -> u64 {
        Sim::now()
    }

    fn sleep_until(time: u64) {
        Sim::sleep_until(time);
    }
}

impl Topology for Flawed {
    fn cpus(&self) -> CpuRange {
        self.sim.cpus()
    }

    fn numa_nodes(&self) -> usize {
        self.sim.numa_nodes()
    }
}

// SAFETY: the frames and words are the simulated machine's.
unsafe impl Memory for Flawed {
    fn frame_end(&self) -> usize {
        self.sim.frame_end()
    }
    fn usable(&self, each: &mut dyn FnMut(Range<u32>)) {
        self.sim.usable(each);
    }
    fn owned(&self) -> &AtomicBool {
        self.sim.owned()
    }
    fn direct_map(&self, frame: Frame) -> NonNull<u8> {
        self.sim.direct_map(frame)
    }
    unsafe fn word(&self, frame: Frame, index: usize) -> &Self::AtomicU64 {
        // SAFETY: so says the caller.
        unsafe { self.sim.word(frame, index) }
    }
    unsafe fn zero(&self, frame: Frame) {
        self.catch_up();
        // SAFETY: so says the caller.
        unsafe { self.sim.zero(frame) };
    }
    unsafe fn copy(&self, from: Frame, to: Frame) {
        // SAFETY: so says the caller.
        unsafe { self.sim.copy(from, to) };
        self.catch_up();
    }
    fn allocated(&self, frame: Frame) {
        self.catch_up();
        self.sim.allocated(frame);
    }
    fn freed(&self, frame: Frame) {
        self.catch_up();
        self.sim.freed(frame);
    }
}

// SAFETY: all operations are the simulated machine's, except for the planted flaw, which only
// affects simulated memory.
unsafe impl Mmu for Flawed {
    fn asids(&self) -> usize {
        self.sim.asids()
    }

    fn kernel_entries(&self) -> Option<KernelEntries> {
        self.sim.kernel_entries()
    }

    unsafe fn activate(&self, root: Frame, asid: Asid) {
        self.catch_up();
        // SAFETY: so says the caller.
        unsafe { self.sim.activate(root, asid) };
    }

    fn deactivate(&self) {
        self.catch_up();
        self.sim.deactivate();
    }

    // This follows a shootdown of the same translations, so it does not catch up.
    fn flush_local(&self, asid: Asid, what: Flush) {
        self.sim.flush_local(asid, what);
    }

    fn shootdown(&self, targets: &CpuSet, asid: Asid, what: Flush) {
        self.catch_up();
        match what {
            Flush::All if self.flaw == Flaw::ForgetsFlush => {}
            Flush::Range(_) if self.flaw == Flaw::CopiesEarly => {
                self.put_off(Some((*targets, asid, what)));
            }
            what => self.sim.shootdown(targets, asid, what),
        }
    }

    unsafe fn load(&self, address: usize) -> Result<u64, PageFault> {
        self.catch_up();
        // SAFETY: so says the caller.
        unsafe { self.sim.load(address) }
    }

    unsafe fn store(&self, address: usize, value: u64) -> Result<(), PageFault> {
        self.catch_up();
        // SAFETY: so says the caller.
        unsafe { self.sim.store(address, value) }
    }

    unsafe fn fetch(&self, address: usize) -> Result<u64, PageFault> {
        self.catch_up();
        // SAFETY: so says the caller.
        unsafe { self.sim.fetch(address) }
    }
}
