//! The start of the CPUs.

use crate::cpu::{Cpu, MOST, claim_range};
use crate::memory::{kernel_root, physical};
use crate::stacks::Stack;
use crate::{Metal, acpi, apic, context, execute, mmu, trap};
use alloc::boxed::Box;
use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use machine::{Clock, Memory, NativeCell, SharedCell, pte};
use x86_64::VirtAddr;
use x86_64::instructions::port::Port;
use x86_64::instructions::segmentation::{CS, DS, SS, Segment};
use x86_64::instructions::tables::load_tss;
use x86_64::registers::control::{Cr4, Cr4Flags};
use x86_64::registers::model_specific::{GsBase, KernelGsBase};
use x86_64::structures::gdt::{Descriptor, SegmentSelector};

/// The address at which `boot.s` expects the other CPUs' first code.
const TRAMPOLINE: u64 = 0x8000;
/// Bytes of one of a CPU's own stacks for traps.
const TRAP_STACK: usize = 16 << 10;
const TRAP_STACKS: usize = 3;
/// The time that a CPU may take to start, in nanoseconds.
const PATIENCE: u64 = 1_000_000_000;

type TrapStacks = [[u8; TRAP_STACK]; TRAP_STACKS];

static FIRST: Cpu = Cpu::new();
static FIRST_STACKS: NativeCell<TrapStacks> = NativeCell::holding([[0; TRAP_STACK]; TRAP_STACKS]);

/// The local APICs that the firmware lists. Written once.
static APICS: [AtomicU8; MOST] = [const { AtomicU8::new(0) }; MOST];
static APIC_COUNT: AtomicUsize = AtomicUsize::new(0);

/// The values for the CPU that starts now: its stack pointer, and itself. `boot.s` reads them.
#[unsafe(no_mangle)]
static starting_stack: AtomicUsize = AtomicUsize::new(0);
#[unsafe(no_mangle)]
static starting_cpu: AtomicUsize = AtomicUsize::new(0);
/// The number of running CPUs.
static RUNNING: AtomicUsize = AtomicUsize::new(1);

unsafe extern "C" {
    static trampoline_start: u8;
    static trampoline_end: u8;
}

/// Prepares the first CPU.
pub(crate) fn first_cpu() {
    trap::fill_table();
    FIRST.enroll(0);
    // SAFETY: the first CPU's own stacks.
    prepare(&FIRST, unsafe { &mut *FIRST_STACKS.write() });
    FIRST.apic.set(apic::begin());
    silence_old_controllers();
    x86_64::instructions::interrupts::enable();
}

/// Keeps the numbers of the CPUs for [`start_cpus`].
pub(crate) fn find_cpus(rsdp: u64) {
    acpi::cpus(rsdp, |apic| {
        let index = APIC_COUNT.load(Ordering::Relaxed);
        if let Some(place) = APICS.get(index) {
            place.store(apic, Ordering::Relaxed);
            APIC_COUNT.store(index + 1, Ordering::Relaxed);
        }
    });
}

/// Starts the other CPUs. Called once, by `kernel_main`, when it has an allocator.
pub fn start_cpus() -> Metal {
    context::adopt(&FIRST);
    // SAFETY: a page of RAM that is not used otherwise, for code that fits in it.
    unsafe {
        let code = &raw const trampoline_start;
        let bytes = (&raw const trampoline_end).offset_from_unsigned(code);
        let to = physical::<u8>(TRAMPOLINE).cast_mut();
        core::ptr::copy_nonoverlapping(code, to, bytes);
    }
    let mine = FIRST.apic.get();
    let apics = APICS[..APIC_COUNT.load(Ordering::Relaxed)].iter();
    let others = apics.map(|apic| u32::from(apic.load(Ordering::Relaxed)));
    others.filter(|&apic| apic != mine).for_each(start);
    // The lower half was only for the start.
    for place in 0..pte::USER_ENTRIES {
        // SAFETY: the kernel's root, whose lower half nothing needs any more.
        unsafe { Metal.word(kernel_root(), place) }.store(0, Ordering::Relaxed);
    }
    claim_range();
    execute::go();
    Metal
}

/// Starts the CPU with this APIC, and waits for it.
fn start(apic: u32) {
    let cpu: &'static Cpu = Box::leak(Box::new(Cpu::new()));
    let stack = Stack::new().expect("memory for a CPU's stack");
    cpu.enroll(apic);
    starting_stack.store(stack.top(), Ordering::Relaxed);
    starting_cpu.store(core::ptr::from_ref(cpu).addr(), Ordering::Release);
    let running = RUNNING.load(Ordering::Relaxed);
    let pause = |time| {
        let end = Metal::now() + time;
        while Metal::now() < end && RUNNING.load(Ordering::Acquire) == running {}
    };
    apic::send(apic, apic::INIT);
    pause(10_000_000);
    for patience in [1_000_000, PATIENCE] {
        apic::send(apic, apic::STARTUP | (TRAMPOLINE >> 12) as u32);
        pause(patience);
        if RUNNING.load(Ordering::Acquire) != running {
            return;
        }
    }
    panic!("the CPU with APIC {apic} does not start");
}

/// Called by `boot.s` on each other CPU.
#[unsafe(no_mangle)]
extern "C" fn metal_cpu(cpu: &'static Cpu) -> ! {
    // SAFETY: zeroed bytes are stacks.
    let stacks = unsafe { Box::<TrapStacks>::new_zeroed().assume_init() };
    GsBase::write(VirtAddr::from_ptr(cpu));
    prepare(cpu, Box::leak(stacks));
    apic::begin();
    context::adopt(cpu);
    // Release: pairs with the acquire in `start`.
    RUNNING.fetch_add(1, Ordering::Release);
    x86_64::instructions::interrupts::enable();
    execute::work(cpu)
}

/// Loads the calling CPU's tables and registers.
fn prepare(cpu: &'static Cpu, stacks: &'static mut TrapStacks) {
    // SAFETY: the CPU's own structures, before it uses them; the selectors name the appended
    // descriptors.
    unsafe {
        let tss = &mut *cpu.tss.get();
        for (index, stack) in stacks.iter().enumerate() {
            tss.interrupt_stack_table[index] = VirtAddr::from_ptr(stack.as_ptr_range().end);
        }
        let gdt = &mut *cpu.gdt.get();
        for descriptor in [
            Descriptor::kernel_code_segment(),
            Descriptor::kernel_data_segment(),
            Descriptor::user_data_segment(),
            Descriptor::user_code_segment(),
        ] {
            gdt.append(descriptor);
        }
        let tss = gdt.append(Descriptor::tss_segment_unchecked(cpu.tss.get()));
        gdt.load_unsafe();
        CS::set_reg(SegmentSelector(trap::KERNEL_CODE));
        SS::set_reg(SegmentSelector(trap::KERNEL_DATA));
        DS::set_reg(SegmentSelector(0));
        load_tss(tss);
        let mut flags = Cr4::read();
        flags.set(Cr4Flags::SUPERVISOR_MODE_EXECUTION_PROTECTION, has(SMEP));
        flags.set(Cr4Flags::SUPERVISOR_MODE_ACCESS_PREVENTION, has(SMAP));
        Cr4::write(flags);
    }
    mmu::begin();
    GsBase::write(VirtAddr::from_ptr(cpu));
    KernelGsBase::write(VirtAddr::zero());
    trap::begin();
}

/// Bits of CPUID's leaf 7: SMEP, by which the kernel executes no user page, and SMAP, by which it
/// accesses one only where it allows that.
const SMEP: u32 = 1 << 7;
pub(crate) const SMAP: u32 = 1 << 20;

/// The processor's features as programs get them: CPUID's leaf 1, EDX.
pub fn hardware_capabilities() -> usize {
    core::arch::x86_64::__cpuid(1).edx as usize
}

/// Returns true if the processor has a feature of leaf 7.
pub(crate) fn has(feature: u32) -> bool {
    use core::arch::x86_64::{__cpuid, __cpuid_count};
    __cpuid(0).eax >= 7 && __cpuid_count(7, 0).ebx & feature != 0
}

/// Returns true if the processor tags TLB entries: CPUID's leaf 1, ECX, bit 17.
pub(crate) fn has_tags() -> bool {
    core::arch::x86_64::__cpuid(1).ecx & 1 << 17 != 0
}

/// Masks all interrupts of the PC's first interrupt controllers.
fn silence_old_controllers() {
    for port in [0x21, 0xa1] {
        // SAFETY: the controllers touch no memory.
        unsafe { Port::<u8>::new(port).write(0xff) };
    }
}
