//! A machine made of a process: threads as CPUs, a vector as memory, translation in software.

use machine::soft::{Entry, SETS, Tlb, walk};
use machine::*;
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// The machine; all clones are one.
#[derive(Clone)]
pub struct Process(Arc<Parts>);

struct Parts {
    cpus: CpuRange,
    /// Held by the thread that is the CPU.
    seats: Box<[Mutex<()>]>,
    memory: Box<[Page]>,
    /// True while a VM has the memory.
    owned: AtomicBool,
    /// Held by a CPU during an access of its task, and by others to flush.
    translations: Box<[Mutex<Translation>]>,
}

impl Process {
    /// Creates a process with `cpus` CPUs and `frames` frames of memory.
    pub fn new(cpus: usize, frames: usize) -> Self {
        Process(Arc::new(Parts {
            cpus: CpuRange::claim(cpus),
            seats: (0..cpus).map(|_| Mutex::default()).collect(),
            memory: (0..frames).map(|_| Page::zero()).collect(),
            owned: AtomicBool::new(false),
            translations: (0..cpus).map(|_| Translation::none()).collect(),
        }))
    }
}

// Atomics, CPUs and tasks: locks and epochs need no more.

machine::native_atomics!(Process);

impl Topology for Process {
    fn cpus(&self) -> CpuRange {
        self.0.cpus
    }
}

thread_local! {
    static CPU: Cell<CpuId> = const { Cell::new(CpuId::NONE) };
    static LOCALS: Locals = const { Locals::ZERO };
    /// Never freed, as a name may outlive its task.
    static TASK: Task = Task(Box::leak(Box::new(thread::current())));
}

/// The thread is its CPU, so a pin holds nothing; but it stays in its thread.
pub struct Pin(CpuId, PhantomData<*mut ()>);

impl Pinned for Pin {
    fn cpu(&self) -> CpuId {
        self.0
    }
}

// SAFETY: a seat is one thread's at a time, and a thread is one task.
unsafe impl Cpus for Process {
    type Pin = Pin;

    fn pin() -> Pin {
        Pin(CPU.get(), PhantomData)
    }

    fn pins() -> u32 {
        0 // not counted
    }

    fn relax(round: u32) {
        match round {
            0..64 => std::hint::spin_loop(),
            _ => thread::yield_now(), // the awaited thread may not be running
        }
    }

    fn delay(pauses: u32) {
        (0..pauses).for_each(|_| std::hint::spin_loop());
    }
}

/// A task's name: its thread.
#[derive(Clone, Copy)]
pub struct Task(&'static Thread);

impl PartialEq for Task {
    fn eq(&self, other: &Self) -> bool {
        self.0.id() == other.0.id()
    }
}

impl Tasks for Process {
    type Task = Task;

    fn current_task() -> Task {
        TASK.with(|task| *task)
    }

    fn park() {
        thread::park();
    }

    fn unpark(task: Task) {
        task.0.unpark();
    }

    fn yield_now() {
        thread::yield_now();
    }

    fn with_locals<R>(f: impl FnOnce(&Locals) -> R) -> R {
        LOCALS.with(f)
    }

    fn anchor() -> &'static Anchor {
        static ANCHOR: Anchor = Anchor::new();
        &ANCHOR
    }
}

impl Clock for Process {
    fn now() -> u64 {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        START.elapsed().as_nanos() as u64
    }

    fn sleep_until(time: u64) {
        thread::sleep(Duration::from_nanos(time.saturating_sub(Self::now())));
    }
}

impl Execute for Process {
    fn execute(&self, jobs: Vec<Job>) {
        let start = |(cpu, job): (usize, Job)| {
            let Process(parts) = self.clone();
            thread::spawn(move || {
                let _seat = parts.seats[cpu].try_lock().expect("a CPU that is free");
                CPU.set(parts.cpus.cpu(cpu));
                job();
            })
        };
        let threads: Vec<_> = jobs.into_iter().enumerate().map(start).collect();
        threads.into_iter().for_each(|t| t.join().expect("a job"));
    }
}

// Memory and its translation: the VM needs these too.

#[repr(align(4096))]
struct Page([AtomicU64; WORDS_PER_FRAME]);

impl Page {
    fn zero() -> Self {
        Page([const { AtomicU64::new(0) }; WORDS_PER_FRAME])
    }
}

// SAFETY: pages are disjoint and aligned, live as long as the machine, and are atomic words.
unsafe impl Memory for Process {
    fn frame_end(&self) -> usize {
        self.0.memory.len()
    }

    fn usable(&self, each: &mut dyn FnMut(Range<u32>)) {
        each(0..self.0.memory.len() as u32);
    }

    fn owned(&self) -> &AtomicBool {
        &self.0.owned
    }

    fn direct_map(&self, frame: Frame) -> NonNull<u8> {
        NonNull::from(&self.0.memory[frame.index()]).cast()
    }

    unsafe fn word(&self, frame: Frame, index: usize) -> &AtomicU64 {
        &self.0.memory[frame.index()].0[index]
    }

    unsafe fn zero(&self, frame: Frame) {
        let words = self.0.memory[frame.index()].0.iter();
        words.for_each(|word| word.store(0, Ordering::Relaxed));
    }

    unsafe fn copy(&self, from: Frame, to: Frame) {
        let [from, to] = [from, to].map(|frame| self.0.memory[frame.index()].0.iter());
        let value = |word: &AtomicU64| word.load(Ordering::Relaxed);
        from.zip(to)
            .for_each(|(from, to)| to.store(value(from), Ordering::Relaxed));
    }
}

/// The translation hardware of a CPU: the tables in use, with their tag, and the TLB.
struct Translation(Option<(Frame, Asid)>, Tlb);

impl Translation {
    fn none() -> Mutex<Self> {
        Mutex::new(Translation(None, Tlb::new(SETS)))
    }

    /// Safety: as for [`Mmu::load`].
    unsafe fn find(&mut self, m: &Process, at: usize, access: Access) -> Result<Entry, PageFault> {
        let absent = PageFault {
            address: at,
            access,
            present: false,
        };
        let Translation(active, tlb) = self;
        let (root, asid) = active.ok_or(absent)?;
        let page = at >> PAGE_SHIFT;
        let cached = tlb.lookup(asid, page);
        if let Some(entry) = cached.filter(|e| at < pte::USER_END && e.allows(access)) {
            return Ok(entry);
        }
        tlb.remove(asid, page);
        // SAFETY: so says the caller.
        let entry = unsafe { walk(m, root, at, access) }?;
        tlb.insert(asid, page, entry);
        Ok(entry)
    }
}

impl Process {
    fn translation(&self, cpu: usize) -> MutexGuard<'_, Translation> {
        self.0.translations[cpu].lock().expect("no access panics")
    }

    /// The calling CPU's.
    fn own(&self) -> MutexGuard<'_, Translation> {
        self.translation(self.0.cpus.index_of(CPU.get()))
    }

    /// A task on the calling CPU reads the word at `at`, or writes `value` there. Safety: as for
    /// [`Mmu::load`].
    unsafe fn access(&self, at: usize, access: Access, value: u64) -> Result<u64, PageFault> {
        let mut own = self.own(); // until the access is performed
        // SAFETY: so says the caller.
        let entry = unsafe { own.find(self, at, access) }?;
        let word = &self.0.memory[entry.frame.index()].0[at % PAGE_SIZE / 8];
        if access == Access::Write {
            word.store(value, Ordering::Release);
        }
        Ok(word.load(Ordering::Acquire))
    }
}

// SAFETY: the walk follows the tables. A CPU's lock is held during each access: one that began
// before a flush has ended when the flush gets the lock, and one that begins later finds nothing
// cached, and the tables as they are.
unsafe impl Mmu for Process {
    fn asids(&self) -> usize {
        4096
    }

    fn kernel_entries(&self) -> Option<KernelEntries> {
        None
    }

    unsafe fn activate(&self, root: Frame, asid: Asid) {
        self.own().0 = Some((root, asid));
    }

    fn deactivate(&self) {
        self.own().0 = None;
    }

    fn flush_local(&self, asid: Asid, what: Flush) {
        self.own().1.flush(asid, what);
    }

    fn shootdown(&self, targets: &CpuSet, asid: Asid, what: Flush) {
        for cpu in targets.iter() {
            self.translation(cpu).1.flush(asid, what);
        }
    }

    unsafe fn load(&self, at: usize) -> Result<u64, PageFault> {
        // SAFETY: so says the caller.
        unsafe { self.access(at, Access::Read, 0) }
    }

    unsafe fn store(&self, at: usize, value: u64) -> Result<(), PageFault> {
        // SAFETY: so says the caller.
        unsafe { self.access(at, Access::Write, value) }.map(drop)
    }

    unsafe fn fetch(&self, at: usize) -> Result<u64, PageFault> {
        // SAFETY: so says the caller.
        unsafe { self.access(at, Access::Execute, 0) }
    }
}
