//! The console, the report channel to the host, and the end of the machine.

use crate::memory::DIRECT_MAP;
use core::arch::asm;
use core::fmt::{self, Write};
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicBool, Ordering};
use x86_64::instructions::port::Port;

/// A serial port.
pub struct Serial(u16);

/// The first serial port: the user's terminal.
pub const CONSOLE: Serial = Serial(0x3f8);
/// The second serial port: lines for the program that has started the machine.
pub const REPORT: Serial = Serial(0x2f8);

/// The port of QEMU's isa-debug-exit.
const EXIT: u16 = 0xf4;
/// The most return addresses of a backtrace.
const DEPTH: usize = 64;

impl Serial {
    fn port(&self, register: u16) -> Port<u8> {
        Port::new(self.0 + register)
    }

    /// Sets up the port: 115,200 bits a second, 8 bits, no interrupts.
    pub(crate) fn begin(&self) {
        for (register, value) in [(1, 0), (3, 0x80), (0, 1), (1, 0), (3, 3), (2, 7), (4, 3)] {
            // SAFETY: the registers of a serial port touch no memory.
            unsafe { self.port(register).write(value) };
        }
    }

    /// Waits until the port is free, and sends a byte.
    pub fn send(&self, byte: u8) {
        // SAFETY: a serial port's registers touch no memory.
        unsafe {
            while self.port(5).read() & 0x20 == 0 {}
            self.port(0).write(byte);
        }
    }

    /// A byte that has arrived, if there is one.
    pub fn receive(&self) -> Option<u8> {
        // SAFETY: a serial port's registers touch no memory.
        unsafe { (self.port(5).read() & 1 != 0).then(|| self.port(0).read()) }
    }
}

impl Write for Serial {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().for_each(|byte| self.send(byte));
        Ok(())
    }
}

/// Writes a line to the report channel.
pub fn report(line: fmt::Arguments) {
    // Writing to a serial port does not fail.
    let _ = writeln!(Serial(REPORT.0), "{line}");
}

/// Ends the machine.
pub fn end(code: u8) -> ! {
    // SAFETY: the port ends QEMU, and is nothing elsewhere.
    unsafe { Port::<u32>::new(EXIT).write(u32::from(code)) };
    loop {
        x86_64::instructions::interrupts::disable();
        x86_64::instructions::hlt();
    }
}

/// Reports a panic, with a backtrace, and ends the machine.
pub fn panicked(info: &PanicInfo) -> ! {
    static FIRST: AtomicBool = AtomicBool::new(true);
    x86_64::instructions::interrupts::disable();
    if !FIRST.swap(false, Ordering::Relaxed) {
        // Another CPU ends the machine, or this one while it reports.
        end(2);
    }
    match info.location() {
        Some(at) => report(format_args!(
            "panic {}:{}: {}",
            at.file(),
            at.line(),
            info.message()
        )),
        None => report(format_args!("panic {}", info.message())),
    }
    let frame: usize;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, rbp", out(reg) frame, options(nomem, nostack, preserves_flags)) };
    backtrace(frame);
    end(1)
}

/// Reports the return addresses from the frame pointer `frame` on.
pub(crate) fn backtrace(mut frame: usize) {
    for _ in 0..DEPTH {
        if frame < DIRECT_MAP || !frame.is_multiple_of(8) {
            return;
        }
        // SAFETY: the kernel is compiled with frame pointers, and 0 ends their list.
        let Some((next, back)) = (unsafe { above(frame) }) else {
            return;
        };
        report(format_args!("at {back:#x}"));
        frame = next;
    }
}

/// The frame pointer above `frame`, and the return address; `None` at the list's end.
///
/// # Safety
/// `frame` is the address of two words.
pub(crate) unsafe fn above(frame: usize) -> Option<(usize, usize)> {
    // SAFETY: the caller's.
    let (next, back) = unsafe { (*(frame as *const usize), *((frame + 8) as *const usize)) };
    (back != 0).then_some((next, back))
}
