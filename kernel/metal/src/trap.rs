//! The entry of exceptions, interrupts and system calls.

use crate::apic;
use crate::cpu::Cpu;
use crate::frame::{Frame, PAGE_FAULT, SYSTEM_CALL, page_fault};
use crate::report;
use core::arch::asm;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering};
use x86_64::VirtAddr;
use x86_64::registers::model_specific::{Efer, EferFlags, LStar, SFMask, Star};
use x86_64::registers::rflags::RFlags;
use x86_64::structures::DescriptorTablePointer;
use x86_64::structures::gdt::SegmentSelector;

core::arch::global_asm!(
    include_str!("trap.s"),
    stack = const offset_of!(Cpu, user_stack),
    last = const offset_of!(Cpu, last_word),
    scratch = const offset_of!(Cpu, scratch),
    user_code = const USER_CODE,
    system_call = const SYSTEM_CALL,
);

/// Selectors, in the order that `syscall` and `sysret` require.
pub(crate) const KERNEL_CODE: u16 = 8;
pub(crate) const KERNEL_DATA: u16 = 16;
pub(crate) const USER_DATA: usize = 24 | 3;
pub(crate) const USER_CODE: usize = 32 | 3;

/// The numbers (IST, from 1) of a CPU's stacks: for interrupts; for exceptions, which may come in
/// the handler of an interrupt; and for those that may come anywhere.
const INTERRUPTS: u64 = 1;
const EXCEPTIONS: u64 = 2;
const WORST: u64 = 3;
/// Exceptions that may come anywhere: NMI, double fault, machine check.
const WORST_ONES: [usize; 3] = [2, 8, 18];

/// The interrupt descriptor table of all CPUs: two words for each number.
static TABLE: [[AtomicU64; 2]; 256] = [const { [const { AtomicU64::new(0) }; 2] }; 256];

unsafe extern "C" {
    static trap_stubs: [u64; 2];
    static trap_stubs_end: [u64; 2];
    static fixups: [usize; 2];
    static fixups_end: [usize; 2];
    fn system_call_entry();
    fn enter_by_iret(frame: *mut Frame);
    fn enter_by_sysret(frame: *mut Frame);
}

/// Enters user mode; returns at the next trap.
///
/// # Safety
/// Interrupts are off, and the frame leads to user mode.
#[inline]
pub(crate) unsafe fn iret(frame: &mut Frame) {
    // SAFETY: the caller's frame leads to user mode and is aligned; the rest is clobbered.
    unsafe {
        asm!("call {}", sym enter_by_iret, in("rdi") frame,
             out("r12") _, out("r13") _, out("r14") _, out("r15") _, clobber_abi("C"));
    }
}

/// Enters user mode after a system call, at less cost than [`iret`]; returns at the next trap.
///
/// # Safety
/// Interrupts are off, and the frame leads to user mode, with RIP also in RCX and RFLAGS also in
/// R11.
#[inline]
pub(crate) unsafe fn sysret(frame: &mut Frame) {
    // SAFETY: the caller's frame leads to user mode, with RCX and R11 as `sysret` needs them; the
    // rest is clobbered.
    unsafe {
        asm!("call {}", sym enter_by_sysret, in("rdi") frame,
             out("r12") _, out("r13") _, out("r14") _, out("r15") _, clobber_abi("C"));
    }
}

/// Fills the table. Called once, before interrupts are on.
pub(crate) fn fill_table() {
    for &[number, handler] in between(&raw const trap_stubs, &raw const trap_stubs_end) {
        let number = number as usize;
        let stack = match number {
            _ if WORST_ONES.contains(&number) => WORST,
            _ if number < apic::FIRST => EXCEPTIONS,
            _ => INTERRUPTS,
        };
        const PRESENT_INTERRUPT_GATE: u64 = 0x8e << 40;
        const FOR_TASKS: u64 = 3 << 45;
        const BREAKPOINT: usize = 3;
        let low = handler & 0xffff | u64::from(KERNEL_CODE) << 16 | stack << 32;
        // Tasks may use the instruction `int3`.
        let low = if number == BREAKPOINT {
            low | FOR_TASKS
        } else {
            low
        };
        let low = low | PRESENT_INTERRUPT_GATE | (handler >> 16 & 0xffff) << 48;
        TABLE[number][0].store(low, Ordering::Relaxed);
        TABLE[number][1].store(handler >> 32, Ordering::Relaxed);
    }
}

/// Makes the calling CPU use the table, and take system calls.
pub(crate) fn begin() {
    let pointer = DescriptorTablePointer {
        limit: (size_of_val(&TABLE) - 1) as u16,
        base: VirtAddr::from_ptr(&raw const TABLE),
    };
    // SAFETY: the table is filled and stays; the entry is one.
    unsafe {
        x86_64::instructions::tables::lidt(&pointer);
        Efer::update(|flags| flags.insert(EferFlags::SYSTEM_CALL_EXTENSIONS));
    }
    let [user_code, user_data] = [USER_CODE, USER_DATA].map(|it| SegmentSelector(it as u16));
    Star::write(
        user_code,
        user_data,
        SegmentSelector(KERNEL_CODE),
        SegmentSelector(KERNEL_DATA),
    )
    .expect("selectors are in order");
    LStar::write(VirtAddr::from_ptr(system_call_entry as *const ()));
    SFMask::write(
        RFlags::INTERRUPT_FLAG
            | RFlags::DIRECTION_FLAG
            | RFlags::TRAP_FLAG
            | RFlags::ALIGNMENT_CHECK
            | RFlags::NESTED_TASK,
    );
}

/// The records of a table in `trap.s`.
fn between<T>(start: *const T, end: *const T) -> &'static [T] {
    // SAFETY: both are of one table.
    unsafe { core::slice::from_raw_parts(start, end.offset_from_unsigned(start)) }
}

/// Called by `trap.s` for traps in the kernel, with interrupts off.
#[unsafe(no_mangle)]
extern "C" fn metal_trap_in_kernel(frame: &mut Frame) {
    if frame.number >= apic::FIRST {
        return apic::serve(frame);
    }
    if frame.number == PAGE_FAULT {
        let fault = page_fault(frame.error);
        let all = between(&raw const fixups, &raw const fixups_end);
        if let Some(&[_, to]) = all.iter().find(|[at, _]| *at == frame.rip) {
            Cpu::this().fault.set(Some(fault));
            frame.rip = to;
            return;
        }
        report::backtrace(frame.rbp);
        panic!("{fault}, in the kernel at {:#x}", frame.rip);
    }
    report::backtrace(frame.rbp);
    panic!(
        "exception {} ({:#x}) in the kernel at {:#x}",
        frame.number, frame.error, frame.rip
    );
}
