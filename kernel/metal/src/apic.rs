//! The local APIC: interrupts between CPUs, and each CPU's timer.

use crate::cpu::Cpu;
use crate::frame::Frame;
use crate::memory::physical;
use crate::{clock, sample, shootdown};
use core::sync::atomic::Ordering;

/// The first number of an interrupt; lower numbers are exceptions.
pub(crate) const FIRST: usize = 32;
/// The interrupt that makes a CPU call its scheduler.
pub(crate) const KICK: u8 = 240;
/// The interrupt of a CPU's timer.
const TIMER: u8 = 241;
/// The interrupt that makes a CPU flush.
pub(crate) const FLUSH: u8 = 242;
/// An interrupt that was withdrawn; it is not acknowledged.
const SPURIOUS: u8 = 255;

/// The address of the registers.
const BASE: u64 = 0xfee0_0000;
const ID: u64 = 0x20;
const TASK_PRIORITY: u64 = 0x80;
const END_OF_INTERRUPT: u64 = 0xb0;
const SPURIOUS_VECTOR: u64 = 0xf0;
const COMMAND: u64 = 0x300;
const COMMAND_TARGET: u64 = 0x310;
const TIMER_VECTOR: u64 = 0x320;
const TIMER_COUNT: u64 = 0x380;
const TIMER_REST: u64 = 0x390;
const TIMER_DIVISOR: u64 = 0x3e0;

/// Bit of the spurious vector: the APIC is on.
const ON: u32 = 1 << 8;
/// Divider of the timer: it counts 16 bus cycles as one.
const BY_16: u32 = 3;
/// Bit of a command: it is still being delivered.
const PENDING: u32 = 1 << 12;
/// Commands by which a CPU starts: INIT, and STARTUP at a page below 1 MiB.
pub(crate) const INIT: u32 = 0x4500;
pub(crate) const STARTUP: u32 = 0x4600;

fn read(register: u64) -> u32 {
    // SAFETY: a register of the calling CPU's APIC, in the direct map.
    unsafe { physical::<u32>(BASE + register).read_volatile() }
}

fn write(register: u64, value: u32) {
    // SAFETY: a register of the calling CPU's APIC, in the direct map; the registers touch no
    // memory.
    unsafe {
        physical::<u32>(BASE + register)
            .cast_mut()
            .write_volatile(value)
    };
}

/// Turns the calling CPU's APIC on; returns its number.
pub(crate) fn begin() -> u32 {
    write(TASK_PRIORITY, 0);
    write(SPURIOUS_VECTOR, ON | u32::from(SPURIOUS));
    write(TIMER_DIVISOR, BY_16);
    write(TIMER_VECTOR, u32::from(TIMER));
    read(ID) >> 24
}

/// Sends a command, or an interrupt's number, to a CPU. Handlers send nothing, so none comes
/// between the two halves of a command.
pub(crate) fn send(apic: u32, command: u32) {
    while read(COMMAND) & PENDING != 0 {
        core::hint::spin_loop();
    }
    write(COMMAND_TARGET, apic << 24);
    write(COMMAND, command);
}

/// Starts the timer, which counts down to 0.
pub(crate) fn set_timer(ticks: u32) {
    write(TIMER_COUNT, ticks);
}

/// The timer's remaining ticks.
pub(crate) fn timer_rest() -> u32 {
    read(TIMER_REST)
}

/// Serves an interrupt of the calling CPU, whose interrupts are off, and which ran `frame`.
pub(crate) fn serve(frame: &Frame) {
    if frame.number == usize::from(SPURIOUS) {
        return;
    }
    write(END_OF_INTERRUPT, 0);
    match frame.number as u8 {
        // Long waits take several rounds of the timer.
        TIMER if !clock::ring(frame) => {}
        FLUSH => shootdown::serve(),
        _ => {
            let cpu = Cpu::this();
            sample::notice(cpu);
            cpu.pending.store(true, Ordering::Relaxed);
        }
    }
}
