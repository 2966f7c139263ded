//! a test-and-set spin lock of one byte
//!
//! Waiters read until the lock looks free, then try, with a delay that doubles after a lost race.
//! Not fair: of all spin locks here the one that suffers least if threads outnumber CPUs.
//!
//! A spin lock wastes the time of a waiter's CPU, and of all waiters if the holder loses its own:
//! sections are short, and threads do not outnumber CPUs. Waiters yield after 64 pauses, so that
//! every wait ends.
//!
//! An unlock happens before the lock that follows it.

use crate::object::{self, object};
use crate::process::Process;
use libc::c_int;
use sync::spin::TestAndSet;

/// A test-and-set lock.
#[repr(C)]
pub struct scalevm_tas_t {
    held: u8,
}

object!(scalevm_tas_t = TestAndSet<Process>, 1, 1);

/// Makes the lock free, as `SCALEVM_TAS_INIT` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_tas_init(lock: *mut scalevm_tas_t) {
    // SAFETY: C's promise.
    unsafe { object::init(lock) };
}

/// Acquires the lock, waiting as long as it takes. A thread that holds it waits for itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_tas_lock(lock: *mut scalevm_tas_t) {
    // SAFETY: C's promise.
    unsafe { object::lock(lock) };
}

/// Acquires the lock if it is free: returns 0, or EBUSY if it is not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_tas_trylock(lock: *mut scalevm_tas_t) -> c_int {
    // SAFETY: C's promise.
    unsafe { object::try_lock(lock) }
}

/// Releases the lock, for its holder. Aborts if it is free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_tas_unlock(lock: *mut scalevm_tas_t) {
    // SAFETY: C's promise.
    unsafe { object::unlock(lock, "scalevm_tas_unlock") };
}

/// Returns true if the lock was held a moment ago.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_tas_locked(lock: *const scalevm_tas_t) -> bool {
    // SAFETY: C's promise.
    unsafe { object::locked(lock) }
}
