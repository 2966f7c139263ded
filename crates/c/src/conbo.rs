//! a ticket spin lock with conservative backoff
//!
//! First in, first out. A waiter looks at the lock the less often the farther it is from its turn.
//!
//! A spin lock wastes the time of a waiter's CPU, and of all waiters if the holder loses its own:
//! sections are short, and threads do not outnumber CPUs. Waiters yield after 64 pauses, so that
//! every wait ends.
//!
//! An unlock happens before the lock that follows it.

use crate::object::{self, object};
use crate::process::Process;
use libc::c_int;
use sync::spin::Conbo;

/// A ticket lock with conservative backoff.
#[repr(C)]
pub struct scalevm_conbo_t {
    words: [u32; 2],
}

object!(scalevm_conbo_t = Conbo<Process>, 8, 4);

/// Makes the lock free, as `SCALEVM_CONBO_INIT` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_conbo_init(lock: *mut scalevm_conbo_t) {
    // SAFETY: C's promise.
    unsafe { object::init(lock) };
}

/// Acquires the lock, waiting as long as it takes. A thread that holds it waits for itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_conbo_lock(lock: *mut scalevm_conbo_t) {
    // SAFETY: C's promise.
    unsafe { object::lock(lock) };
}

/// Acquires the lock if it is free: returns 0, or EBUSY if it is not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_conbo_trylock(lock: *mut scalevm_conbo_t) -> c_int {
    // SAFETY: C's promise.
    unsafe { object::try_lock(lock) }
}

/// Releases the lock, for its holder. Aborts if it is free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_conbo_unlock(lock: *mut scalevm_conbo_t) {
    // SAFETY: C's promise.
    unsafe { object::unlock(lock, "scalevm_conbo_unlock") };
}

/// Returns true if the lock was held a moment ago.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_conbo_locked(lock: *const scalevm_conbo_t) -> bool {
    // SAFETY: C's promise.
    unsafe { object::locked(lock) }
}
