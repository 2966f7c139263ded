//! a ticket spin lock, first in, first out
//!
//! All waiters read the lock's cache line again after each release.
//!
//! A waiter keeps its CPU busy, and all waiters waste time while the holder is off its CPU: keep
//! sections short, and use no more threads than CPUs. Waiters yield after 64 pauses, so that every
//! wait ends.
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

/// Initialises the lock as free, as `SCALEVM_TICKET_INIT` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_ticket_init(lock: *mut scalevm_ticket_t) {
    // SAFETY: the C caller guarantees this.
    unsafe { object::init(lock) };
}

/// Acquires the lock, waiting as long as it takes. A thread that already holds it deadlocks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_ticket_lock(lock: *mut scalevm_ticket_t) {
    // SAFETY: the C caller guarantees this.
    unsafe { object::lock(lock) };
}

/// Acquires the lock if it is free: returns 0, or EBUSY if it is not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_ticket_trylock(lock: *mut scalevm_ticket_t) -> c_int {
    // SAFETY: the C caller guarantees this.
    unsafe { object::try_lock(lock) }
}

/// Releases the lock for its holder. Aborts if the lock is free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_ticket_unlock(lock: *mut scalevm_ticket_t) {
    // SAFETY: the C caller guarantees this.
    unsafe { object::unlock(lock, "scalevm_ticket_unlock") };
}

/// Returns true if the lock was held a moment ago.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_ticket_locked(lock: *const scalevm_ticket_t) -> bool {
    // SAFETY: the C caller guarantees this.
    unsafe { object::locked(lock) }
}
