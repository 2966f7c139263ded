//! Accesses that survive a SIGSEGV or SIGBUS.
//!
//! Before each access the address of the code after it is recorded; on a signal, the handler
//! records the signal and continues there. A signal at any other time ends the process.
//!
//! The register with the address is chosen here: an access through RBP or RSP to an address that is
//! not canonical raises SIGBUS, one through any other register SIGSEGV.

use std::arch::asm;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// Where to continue after a fault; 0 if none is expected. Only one thread and its signal handler
/// read and write it, so relaxed is enough.
static RESUME: AtomicU64 = AtomicU64::new(0);
/// The signal raised since this was last read, or 0.
static RAISED: AtomicI32 = AtomicI32::new(0);

/// Lets this process survive guarded accesses from now on.
pub fn install() {
    // SAFETY: the system calls use structures on this stack; the handler accesses only the statics
    // and its context.
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
        // SAFETY: the call takes no memory; the access is repeated, and then ends the process.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        return;
    }
    RAISED.store(signal, Ordering::Relaxed);
    // SAFETY: the kernel passes the interrupted context; `resume` is an address in the interrupted
    // function, which afterwards uses only registers that the assembly declares.
    unsafe {
        let context = context.cast::<libc::ucontext_t>();
        (*context).uc_mcontext.gregs[libc::REG_RIP as usize] = resume.cast_signed();
    }
}

/// Completes a guarded access.
fn outcome<T>(value: T) -> Result<T, i32> {
    match RAISED.swap(0, Ordering::Relaxed) {
        0 => Ok(value),
        signal => Err(signal),
    }
}

/// One access, with `rdi` or `rsi` as its address; a fault continues after it.
macro_rules! guarded {
    ($access:literal, $($operands:tt)*) => {
        asm!(
            "lea {next}, [rip + 2f]",
            "mov [{resume}], {next}",
            $access,
            "2:",
            "mov qword ptr [{resume}], 0",
            next = out(reg) _,
            resume = in(reg) RESUME.as_ptr(),
            $($operands)*
            options(nostack),
        )
    };
}

/// Reads one or eight bytes.
///
/// # Errors
/// The signal that the access raised.
pub fn load(address: u64, bytes: u64) -> Result<u64, i32> {
    let mut value: u64 = 0;
    // SAFETY: the assembly only reads memory; after a fault it continues at the label, as the
    // module explains.
    unsafe {
        match bytes {
            1 => {
                guarded!("movzx {value:e}, byte ptr [rdi]",
                         value = inout(reg) value, in("rdi") address,)
            }
            _ => guarded!("mov {value}, [rdi]", value = inout(reg) value, in("rdi") address,),
        }
    }
    outcome(value)
}

/// Writes one or eight bytes.
///
/// # Safety
/// No other code relies on the bytes at `address`.
///
/// # Errors
/// The signal that the access raised.
pub unsafe fn store(address: u64, bytes: u64, value: u64) -> Result<(), i32> {
    // SAFETY: the caller guarantees that nothing relies on the bytes written; after a fault it
    // continues at the label, as the module explains.
    unsafe {
        match bytes {
            1 => {
                guarded!("mov byte ptr [rdi], {value}",
                         value = in(reg_byte) value as u8, in("rdi") address,)
            }
            _ => guarded!("mov [rdi], {value}", value = in(reg) value, in("rdi") address,),
        }
    }
    outcome(())
}

/// Copies a page.
///
/// # Safety
/// `to` may be written for `bytes` bytes.
///
/// # Errors
/// The signal that the access raised.
pub unsafe fn copy(address: u64, to: *mut u8, bytes: usize) -> Result<(), i32> {
    // SAFETY: the caller guarantees that `to` may be written; after a fault it continues at the
    // label, as the module explains.
    unsafe {
        guarded!(
            "rep movsb",
            inout("rsi") address => _,
            inout("rdi") to => _,
            inout("rcx") bytes => _,
        );
    }
    outcome(())
}
