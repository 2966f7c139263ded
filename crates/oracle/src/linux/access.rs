//! Accesses that may raise SIGSEGV or SIGBUS, and survive it.
//!
//! Before each access the address behind it is noted; the handler makes the access end
//! there, and notes the signal. A signal at any other time ends the process.
//!
//! The register with the address is chosen here: an access by way of RBP or RSP that no
//! processor could make (to an address that is not canonical) raises SIGBUS, any other SIGSEGV.

use std::arch::asm;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// Where to go on after a fault; 0 if none is expected. Written and read by one thread and its
/// signal handler, so relaxed is enough.
static RESUME: AtomicU64 = AtomicU64::new(0);
/// The signal that was raised since it was last taken, or 0.
static RAISED: AtomicI32 = AtomicI32::new(0);

/// From now on this process survives guarded accesses.
pub fn install() {
    // SAFETY: plain system calls; the handler only touches the statics and its context.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = handle as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
        for signal in [libc::SIGSEGV, libc::SIGBUS] {
            libc::sigaction(signal, &action, ptr::null_mut());
        }
    }
}

extern "C" fn handle(signal: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let resume = RESUME.load(Ordering::Relaxed);
    if resume == 0 {
        // SAFETY: a plain system call; the access is repeated, and ends the process.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        return;
    }
    RAISED.store(signal, Ordering::Relaxed);
    // SAFETY: the kernel's context of this handler; `resume` is an address in the function
    // that was interrupted, where only its clobbered registers are used.
    unsafe {
        let context = context.cast::<libc::ucontext_t>();
        (*context).uc_mcontext.gregs[libc::REG_RIP as usize] = resume.cast_signed();
    }
}

/// Ends a guarded access.
fn outcome<T>(value: T) -> Result<T, i32> {
    match RAISED.swap(0, Ordering::Relaxed) {
        0 => Ok(value),
        signal => Err(signal),
    }
}

/// Reads one or eight bytes.
///
/// # Errors
/// The signal that this raised.
pub fn load(address: u64, bytes: u64) -> Result<u64, i32> {
    let mut value: u64 = 0;
    // SAFETY: reads memory only; a fault goes on at the label, see the module.
    unsafe {
        if bytes == 1 {
            asm!(
                "lea {next}, [rip + 2f]",
                "mov [{resume}], {next}",
                "movzx {value:e}, byte ptr [rdi]",
                "2:",
                "mov qword ptr [{resume}], 0",
                next = out(reg) _,
                value = inout(reg) value,
                in("rdi") address,
                resume = in(reg) RESUME.as_ptr(),
                options(nostack),
            );
        } else {
            asm!(
                "lea {next}, [rip + 2f]",
                "mov [{resume}], {next}",
                "mov {value}, [rdi]",
                "2:",
                "mov qword ptr [{resume}], 0",
                next = out(reg) _,
                value = inout(reg) value,
                in("rdi") address,
                resume = in(reg) RESUME.as_ptr(),
                options(nostack),
            );
        }
    }
    outcome(value)
}

/// Writes one or eight bytes.
///
/// # Safety
/// Nobody relies on what is there.
///
/// # Errors
/// The signal that this raised.
pub unsafe fn store(address: u64, bytes: u64, value: u64) -> Result<(), i32> {
    // SAFETY: the caller's promise; a fault goes on at the label, see the module.
    unsafe {
        if bytes == 1 {
            asm!(
                "lea {next}, [rip + 2f]",
                "mov [{resume}], {next}",
                "mov byte ptr [rdi], {value}",
                "2:",
                "mov qword ptr [{resume}], 0",
                next = out(reg) _,
                value = in(reg_byte) value as u8,
                in("rdi") address,
                resume = in(reg) RESUME.as_ptr(),
                options(nostack),
            );
        } else {
            asm!(
                "lea {next}, [rip + 2f]",
                "mov [{resume}], {next}",
                "mov [rdi], {value}",
                "2:",
                "mov qword ptr [{resume}], 0",
                next = out(reg) _,
                value = in(reg) value,
                in("rdi") address,
                resume = in(reg) RESUME.as_ptr(),
                options(nostack),
            );
        }
    }
    outcome(())
}

/// Copies a page.
///
/// # Safety
/// `to` may be written.
///
/// # Errors
/// The signal that this raised.
pub unsafe fn copy(address: u64, to: *mut u8, bytes: usize) -> Result<(), i32> {
    // SAFETY: the caller's promise; a fault goes on at the label, see the module.
    unsafe {
        asm!(
            "lea {next}, [rip + 2f]",
            "mov [{resume}], {next}",
            "rep movsb",
            "2:",
            "mov qword ptr [{resume}], 0",
            next = out(reg) _,
            resume = in(reg) RESUME.as_ptr(),
            inout("rsi") address => _,
            inout("rdi") to => _,
            inout("rcx") bytes => _,
            options(nostack),
        );
    }
    outcome(())
}
