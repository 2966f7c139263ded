//! A pair of fences, one of them free: the kernel interrupts the other threads of the process
//! (`membarrier`).
//!
//! Both sides must follow one choice, which is made once in a process, by the first machine or the
//! first heavy fence. A light fence that comes before the choice is a full one, which any choice
//! allows. A thread that sees "interrupts" knows that the kernel has registered the process, so
//! each heavy fence from then on interrupts.

use core::sync::atomic::{AtomicU8, Ordering, compiler_fence};

/// Nothing is chosen yet.
const OPEN: u8 = 0;
/// Heavy fences interrupt, light ones only hold the compiler.
const INTERRUPTS: u8 = 1;
/// Both are full fences: the kernel refused.
const FULL: u8 = 2;

/// The choice. The thread that changes it from [`OPEN`] has made it.
static CHOICE: AtomicU8 = AtomicU8::new(OPEN);

/// Makes the choice, if it is open, and returns it.
pub(crate) fn choose() -> u8 {
    let seen = CHOICE.load(Ordering::Relaxed);
    if seen != OPEN {
        return seen;
    }
    let registered = membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
    let mine = if registered { INTERRUPTS } else { FULL };
    // Relaxed: only the value matters; what the kernel has registered holds for all threads.
    match CHOICE.compare_exchange(OPEN, mine, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => mine,
        Err(other) => other,
    }
}

/// [`machine::Atomics::light_fence`].
#[inline(always)]
pub(crate) fn light_fence() {
    if CHOICE.load(Ordering::Relaxed) == INTERRUPTS {
        compiler_fence(Ordering::SeqCst);
    } else {
        machine::full_fence();
    }
}

/// [`machine::Atomics::heavy_fence`].
///
/// # Panics
/// If the kernel registered the process and now refuses, as under a filter of system calls that was
/// installed since: light fences are free already, so nothing else would do.
pub(crate) fn heavy_fence() {
    machine::full_fence();
    if choose() == INTERRUPTS {
        let interrupted = membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
        assert!(interrupted, "membarrier fails after it was registered");
    }
}

/// Asks the kernel; returns true if it did as asked.
fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: the call reads and writes none of the process's memory.
    !cfg!(miri) && unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) } == 0
}
