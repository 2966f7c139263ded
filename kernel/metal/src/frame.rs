//! The CPU's state at a trap.

use crate::apic;
use crate::cpu::Cpu;
use crate::trap;
use core::sync::atomic::Ordering;
use machine::{Access, PageFault, pte};
use x86_64::instructions::interrupts;
use x86_64::registers::control::Cr2;

/// The registers of interrupted code. `trap.s` relies on the order.
#[repr(C, align(16))]
#[derive(Clone)]
#[allow(missing_docs)] // the processor's own names
pub struct Frame {
    /// The SSE registers, as `fxsave` writes them.
    pub sse: [u8; 512],
    pub r15: usize,
    pub r14: usize,
    pub r13: usize,
    pub r12: usize,
    pub(crate) r11: usize,
    // A system call's arguments, in their order.
    pub rdi: usize,
    pub rsi: usize,
    pub rdx: usize,
    pub r10: usize,
    pub r8: usize,
    pub r9: usize,
    pub rbp: usize,
    pub(crate) rcx: usize,
    pub rbx: usize,
    pub rax: usize,
    /// The exception's or interrupt's number, or [`SYSTEM_CALL`]; 0 if the thread continues at
    /// another address.
    pub(crate) number: usize,
    /// The exception's error code.
    pub(crate) error: usize,
    pub(crate) rip: usize,
    pub(crate) cs: usize,
    pub(crate) rflags: usize,
    pub rsp: usize,
    pub(crate) ss: usize,
}

/// The reason why a thread has left user mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trap {
    /// The thread makes a system call.
    SystemCall,
    /// Translation refused an access.
    PageFault(PageFault),
    /// Another exception, with its number.
    Exception(usize),
    /// An interrupt, which has been served.
    Interrupt,
    /// No trap: an interrupt that came in the kernel waits for a safe point.
    Wanted,
}

/// The number of a system call's frame.
pub(crate) const SYSTEM_CALL: usize = 256;
/// The number of a page fault.
pub(crate) const PAGE_FAULT: usize = 14;
/// Flags of user code: interrupts are on.
const FLAGS: usize = 0x202;
/// The flag by which the processor traps after each instruction.
const TRAP_FLAG: usize = 0x100;
/// The flags that user code may set: the arithmetic ones, TF, DF, AC, ID.
const USER_FLAGS: usize = 0x24_0dd5;

impl Frame {
    /// A thread that begins at `rip` with the stack `rsp`; all other registers are 0.
    pub fn new(rip: usize, rsp: usize) -> Self {
        let mut frame = Frame {
            sse: [0; 512],
            r15: 0,
            r14: 0,
            r13: 0,
            r12: 0,
            r11: 0,
            rdi: 0,
            rsi: 0,
            rdx: 0,
            r10: 0,
            r8: 0,
            r9: 0,
            rbp: 0,
            rcx: 0,
            rbx: 0,
            rax: 0,
            number: 0,
            error: 0,
            rip,
            cs: trap::USER_CODE,
            rflags: FLAGS,
            rsp,
            ss: trap::USER_DATA,
        };
        // All exceptions masked: the x87 control word, and MXCSR.
        frame.sse[..2].copy_from_slice(&0x37f_u16.to_le_bytes());
        frame.sse[24..28].copy_from_slice(&0x1f80_u32.to_le_bytes());
        frame
    }

    /// A system call's arguments.
    #[inline]
    pub fn arguments(&self) -> [usize; 6] {
        [self.rdi, self.rsi, self.rdx, self.r10, self.r8, self.r9]
    }

    /// The address at which the thread continues.
    pub fn rip(&self) -> usize {
        self.rip
    }

    /// Makes the thread continue at `rip`.
    pub fn go_to(&mut self, rip: usize) {
        self.rip = rip;
        self.number = 0;
    }

    /// Makes the thread continue without these flags.
    pub fn clear_flags(&mut self, flags: usize) {
        self.rflags = self.rflags & !flags | FLAGS;
        self.number = 0;
    }

    /// The general registers in the order in which `sigcontext` has them: r8 to r15, rdi, rsi, rbp,
    /// rbx, rdx, rax, rcx, rsp, rip, and the flags.
    pub fn general(&self) -> [usize; 18] {
        [
            self.r8,
            self.r9,
            self.r10,
            self.r11,
            self.r12,
            self.r13,
            self.r14,
            self.r15,
            self.rdi,
            self.rsi,
            self.rbp,
            self.rbx,
            self.rdx,
            self.rax,
            self.rcx,
            self.rsp,
            self.rip,
            self.rflags,
        ]
    }

    /// Sets the registers of [`Frame::general`].
    pub fn set_general(&mut self, values: [usize; 18]) {
        let places = [
            &mut self.r8,
            &mut self.r9,
            &mut self.r10,
            &mut self.r11,
            &mut self.r12,
            &mut self.r13,
            &mut self.r14,
            &mut self.r15,
            &mut self.rdi,
            &mut self.rsi,
            &mut self.rbp,
            &mut self.rbx,
            &mut self.rdx,
            &mut self.rax,
            &mut self.rcx,
            &mut self.rsp,
            &mut self.rip,
            &mut self.rflags,
        ];
        for (place, value) in places.into_iter().zip(values) {
            *place = value;
        }
        self.rflags = self.rflags & USER_FLAGS | FLAGS;
        self.number = 0;
    }

    /// Sets the SSE registers to a task's values. Returns true if the processor accepts them: the
    /// upper half of MXCSR must be 0.
    pub fn set_sse(&mut self, sse: &[u8; 512]) -> bool {
        let fits = sse[26..28] == [0; 2];
        if fits {
            self.sse = *sse;
        }
        fits
    }

    /// The segment registers, as `sigcontext` has them: cs, gs, fs, ss.
    pub fn segments(&self) -> usize {
        self.cs | self.ss << 48
    }

    /// Runs the calling task in user mode, in the space that is active, up to its next trap.
    #[inline]
    pub fn run(&mut self) -> Trap {
        if self.rip >= pte::USER_END {
            // The processor would raise its exception in the kernel.
            return Trap::PageFault(PageFault {
                address: self.rip,
                access: Access::Execute,
                present: false,
            });
        }
        interrupts::disable();
        if Cpu::this().pending.load(Ordering::Relaxed) {
            interrupts::enable();
            return Trap::Wanted;
        }
        // SAFETY: the frame leads to user mode: `new` alone sets its segments, and its address and
        // flags are a task's. What `sysret` needs, `fits_sysret` says.
        unsafe {
            if self.fits_sysret() {
                trap::sysret(self)
            } else {
                trap::iret(self)
            }
        }
        let trap = match self.number {
            SYSTEM_CALL => Trap::SystemCall,
            _ => self.trap(),
        };
        interrupts::enable();
        trap
    }

    /// Returns true if `sysret` has the effect of `iret`, at less cost: a system call has left RIP
    /// in RCX and RFLAGS in R11, and they are unchanged. With TF it would trap one instruction
    /// later. It would raise the exception for an invalid RIP in the kernel, but `run` has checked
    /// RIP.
    #[inline]
    fn fits_sysret(&self) -> bool {
        self.number == SYSTEM_CALL && self.rflags & TRAP_FLAG == 0
    }

    /// The trap that has come, if it is no system call. Serves it if it is an interrupt.
    #[inline]
    fn trap(&self) -> Trap {
        // A system call clears AC; other traps do not.
        crate::access::forbid();
        match self.number {
            PAGE_FAULT => Trap::PageFault(page_fault(self.error)),
            number if number < apic::FIRST => Trap::Exception(number),
            _ => {
                apic::serve(self);
                Trap::Interrupt
            }
        }
    }
}

/// The page fault that has just come, by its error code.
pub(crate) fn page_fault(error: usize) -> PageFault {
    const PRESENT: usize = 1;
    const WRITE: usize = 2;
    const FETCH: usize = 16;
    let access = match error {
        _ if error & FETCH != 0 => Access::Execute,
        _ if error & WRITE != 0 => Access::Write,
        _ => Access::Read,
    };
    PageFault {
        address: Cr2::read_raw() as usize,
        access,
        present: error & PRESENT != 0,
    }
}
