//! a test-and-set spin lock of one byte
//!
//! Waiters read until the lock looks free, then try to acquire it, with a delay that doubles after
//! a lost race. The lock is not fair; of all spin locks here it suffers least if threads outnumber
//! CPUs.
//!
//! A waiter keeps its CPU busy, and all waiters waste time while the holder is off its CPU: keep
//! sections short, and use no more threads than CPUs. Waiters yield after 64 pauses, so that every
//! wait ends.
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

/// Initialises the lock as free, as `SCALEVM_TAS_INIT` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_tas_init(lock: *mut scalevm_tas_t) {
    // SAFETY: the C caller guarantees this.
    unsafe { object::init(lock) };
}

/// Acquires the lock, waiting as long as it takes. A thread that already holds it deadlocks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_tas_lock(lock: *mut scalevm_tas_t) {
    // SAFETY: the C caller guarantees this.
    unsafe { object::lock(lock) };
}

/// Acquires the lock if it is free: returns 0, or EBUSY if it is not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_tas_trylock(lock: *mut scalevm_tas_t) -> c_int {
    // SAFETY: the C caller guarantees this.
    unsafe { object::try_lock(lock) }
}

/// Releases the lock for its holder. Aborts if the lock is free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_tas_unlock(lock: *mut scalevm_tas_t) {
    // SAFETY: the C caller guarantees this.
    unsafe { object::unlock(lock, "scalevm_tas_unlock") };
}

/// Returns true if the lock was held a moment ago.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_tas_locked(lock: *const scalevm_tas_t) -> bool {
    // SAFETY: the C caller guarantees this.
    unsafe { object::locked(lock) }
}
