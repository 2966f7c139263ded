//! a ticket spin lock, first in, first out
//!
//! All waiters read the lock's cache line again after each release.
//!
//! A spin lock wastes the time of a waiter's CPU, and of all waiters if the holder loses its own:
//! sections are short, and threads do not outnumber CPUs. Waiters yield after 64 pauses, so that
//! every wait ends.
//!
//! An unlock happens before the lock that follows it.

use crate::object::{self, object};
use crate::process::Process;
use libc::c_int;
use sync::spin::Ticket;

/// A ticket lock.
#[repr(C)]
pub struct scalevm_ticket_t {
    words: [u32; 2],
}

object!(scalevm_ticket_t = Ticket<Process>, 8, 4);

/// Makes the lock free, as `SCALEVM_TICKET_INIT` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_ticket_init(lock: *mut scalevm_ticket_t) {
    // SAFETY: C's promise.
    unsafe { object::init(lock) };
}

/// Acquires the lock, waiting as long as it takes. A thread that holds it waits for itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_ticket_lock(lock: *mut scalevm_ticket_t) {
    // SAFETY: C's promise.
    unsafe { object::lock(lock) };
}

/// Acquires the lock if it is free: returns 0, or EBUSY if it is not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_ticket_trylock(lock: *mut scalevm_ticket_t) -> c_int {
    // SAFETY: C's promise.
    unsafe { object::try_lock(lock) }
}

/// Releases the lock, for its holder. Aborts if it is free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_ticket_unlock(lock: *mut scalevm_ticket_t) {
    // SAFETY: C's promise.
    unsafe { object::unlock(lock, "scalevm_ticket_unlock") };
}

/// Returns true if the lock was held a moment ago.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_ticket_locked(lock: *const scalevm_ticket_t) -> bool {
    // SAFETY: C's promise.
    unsafe { object::locked(lock) }
}
