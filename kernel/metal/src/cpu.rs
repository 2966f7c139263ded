//! The data of one CPU, and pins.

use crate::Metal;
use crate::context::Context;
use crate::mmu::Tables;
use core::arch::asm;
use core::cell::{Cell, UnsafeCell};
use core::marker::PhantomData;
use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use machine::{Asid, CpuId, CpuRange, Cpus, Flush, Job, NativeCell, PageFault, Pinned};
use machine::{SharedCell, TaskName, Topology};
use x86_64::structures::gdt::GlobalDescriptorTable;
use x86_64::structures::tss::TaskStateSegment;

/// The most CPUs: local APICs have 8-bit numbers, and 255 means all of them.
pub const MOST: usize = 255;

/// A CPU; the register GS has its address while the kernel runs. `trap.s` uses some fields.
///
/// Only code on the CPU accesses its cells, including handlers of interrupts where a field says so.
/// Other CPUs access the atomics.
#[repr(C)]
pub(crate) struct Cpu {
    /// The address of this structure.
    this: Cell<*const Cpu>,
    /// A user register, while its frame is being filled.
    pub(crate) scratch: Cell<usize>,
    /// The stack pointer with which the kernel continues when the thread leaves user mode.
    pub(crate) user_stack: Cell<usize>,
    /// The address after the last word of that thread's frame.
    pub(crate) last_word: Cell<usize>,
    /// The number of pins that the running task holds.
    pins: Cell<u32>,
    /// True if an interrupt waits for a safe point. Handlers set it.
    pub(crate) pending: AtomicBool,
    /// Its id while it runs tasks; [`CpuId::NONE`] before.
    pub(crate) id: Cell<CpuId>,
    pub(crate) index: Cell<usize>,
    /// The number of its local APIC.
    pub(crate) apic: Cell<u32>,
    /// The context that it runs.
    pub(crate) context: Cell<Option<Context>>,
    /// A context that has ended, until a switch leaves it.
    pub(crate) ended: Cell<Option<Context>>,
    /// The thread pointer in the register FS.
    pub(crate) thread_pointer: Cell<usize>,
    /// The tables by which it translates for tasks, and their tag.
    pub(crate) tables: Cell<Option<Tables>>,
    /// The tables by which it translates, or last translated.
    pub(crate) last_tables: Cell<Option<Tables>>,
    /// When the timer is to go off, in nanoseconds.
    pub(crate) deadline: Cell<u64>,
    /// When the timer is to go off for the task that `wakes` names, [`u64::MAX`] for never. The
    /// timer's handler sets it when the time has come; a safe point then takes the task.
    pub(crate) wake_at: Cell<u64>,
    pub(crate) wakes: Cell<Option<TaskName>>,
    /// When the next sample is due, [`u64::MAX`] for never. The timer's handler sets it.
    pub(crate) sample_at: Cell<u64>,
    /// When the last sample was taken. The timer's handler sets it.
    pub(crate) sampled: Cell<u64>,
    /// The last page fault of an access that may fault. The handler sets it.
    pub(crate) fault: Cell<Option<PageFault>>,
    pub(crate) gdt: UnsafeCell<GlobalDescriptorTable>,
    pub(crate) tss: UnsafeCell<TaskStateSegment>,
    /// The running job's number, on a machine without a scheduler.
    pub(crate) serial: AtomicU64,
    /// The running job's permit.
    pub(crate) permit: AtomicU64,
    /// A job to run, until the CPU takes it.
    pub(crate) job: AtomicPtr<Job>,
    /// True if the CPU waits for an interrupt.
    pub(crate) idle: AtomicBool,
    /// True if it translates for no task (see `shootdown`).
    pub(crate) absent: AtomicBool,
    /// True if an initiator has left it out of a flush while it was absent.
    pub(crate) missed: AtomicBool,
    /// Bit *i*: CPU *i* asks for a flush.
    pub(crate) asked_by: [AtomicU64; MOST.div_ceil(64)],
    /// The flush that this CPU requests. A target reads it after its bit was set and before it
    /// acknowledges.
    pub(crate) request: NativeCell<(Asid, Flush)>,
    /// The number of targets that have not acknowledged.
    pub(crate) unacknowledged: AtomicU32,
}

// SAFETY: see the fields.
unsafe impl Sync for Cpu {}
// SAFETY: see the fields.
unsafe impl Send for Cpu {}

/// The CPUs, by index. Written before any other CPU runs tasks.
static CPUS: [AtomicPtr<Cpu>; MOST] = [const { AtomicPtr::new(core::ptr::null_mut()) }; MOST];
static COUNT: AtomicUsize = AtomicUsize::new(0);
static RANGE: NativeCell<Option<CpuRange>> = NativeCell::holding(None);

impl Cpu {
    pub(crate) const fn new() -> Self {
        Cpu {
            this: Cell::new(core::ptr::null()),
            scratch: Cell::new(0),
            user_stack: Cell::new(0),
            last_word: Cell::new(0),
            pins: Cell::new(0),
            pending: AtomicBool::new(false),
            id: Cell::new(CpuId::NONE),
            index: Cell::new(0),
            apic: Cell::new(0),
            context: Cell::new(None),
            ended: Cell::new(None),
            thread_pointer: Cell::new(0),
            tables: Cell::new(None),
            last_tables: Cell::new(None),
            deadline: Cell::new(u64::MAX),
            wake_at: Cell::new(u64::MAX),
            wakes: Cell::new(None),
            sample_at: Cell::new(u64::MAX),
            sampled: Cell::new(0),
            fault: Cell::new(None),
            gdt: UnsafeCell::new(GlobalDescriptorTable::new()),
            tss: UnsafeCell::new(TaskStateSegment::new()),
            serial: AtomicU64::new(0),
            permit: AtomicU64::new(0),
            job: AtomicPtr::new(core::ptr::null_mut()),
            idle: AtomicBool::new(false),
            absent: AtomicBool::new(true),
            missed: AtomicBool::new(false),
            asked_by: [const { AtomicU64::new(0) }; MOST.div_ceil(64)],
            request: NativeCell::holding((Asid(0), Flush::All)),
            unacknowledged: AtomicU32::new(0),
        }
    }

    /// The calling CPU. The result is valid until the next switch.
    #[inline]
    pub(crate) fn this() -> &'static Cpu {
        let this: *const Cpu;
        // SAFETY: reads the field `this` of the CPU that GS leads to.
        unsafe {
            asm!("mov {}, gs:[0]", out(reg) this, options(nostack, preserves_flags, readonly));
            &*this
        }
    }

    /// The CPU with this index.
    pub(crate) fn of(index: usize) -> &'static Cpu {
        // SAFETY: the machine has as many CPUs, which stay forever.
        unsafe { &*CPUS[..COUNT.load(Ordering::Relaxed)][index].load(Ordering::Relaxed) }
    }

    /// Gives the CPU the next index, and lets `this` find it.
    pub(crate) fn enroll(&'static self, apic: u32) {
        let index = COUNT.load(Ordering::Relaxed);
        self.this.set(self);
        self.apic.set(apic);
        self.index.set(index);
        CPUS[index].store(core::ptr::from_ref(self).cast_mut(), Ordering::Relaxed);
        COUNT.store(index + 1, Ordering::Relaxed);
    }
}

/// Gives ids to the CPUs that exist.
pub(crate) fn claim_range() {
    let range = CpuRange::claim(COUNT.load(Ordering::Relaxed));
    // SAFETY: the first CPU writes it once, before the others run tasks.
    unsafe { *RANGE.write() = Some(range) };
}

impl Topology for Metal {
    fn cpus(&self) -> CpuRange {
        // SAFETY: written before tasks run, and not again.
        unsafe { *RANGE.read() }.expect("the CPUs are known")
    }
}

/// The calling task's pin. While it lives the task does not leave its CPU; the kernel is not
/// preempted anyway, so it is a count.
pub struct Pin {
    cpu: CpuId,
    /// A pin belongs to its task.
    not_send: PhantomData<*mut ()>,
}

impl Pin {
    /// A pin that is counted already.
    pub(crate) fn counted() -> Self {
        Pin {
            cpu: Cpu::this().id.get(),
            not_send: PhantomData,
        }
    }
}

impl Pinned for Pin {
    #[inline(always)]
    fn cpu(&self) -> CpuId {
        self.cpu
    }
}

impl Drop for Pin {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: changes the field `pins` of the calling CPU.
        unsafe {
            asm!("dec dword ptr gs:[{}]", const offset_of!(Cpu, pins), options(nostack));
        }
    }
}

// SAFETY: tasks leave their CPU only by `Contexts::switch`, whose callers hold one pin, which they
// pass on; safe points and sleeps assert that there is none.
unsafe impl Cpus for Metal {
    type Pin = Pin;

    #[inline(always)]
    fn pin() -> Pin {
        // SAFETY: changes the field `pins` of the calling CPU.
        unsafe {
            asm!("inc dword ptr gs:[{}]", const offset_of!(Cpu, pins), options(nostack));
        }
        Pin::counted()
    }

    fn pins() -> u32 {
        Cpu::this().pins.get()
    }

    #[inline]
    fn relax(_round: u32) {
        core::hint::spin_loop();
    }

    #[inline]
    fn delay(pauses: u32) {
        (0..pauses).for_each(|_| core::hint::spin_loop());
    }
}
