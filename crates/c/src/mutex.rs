//! a mutex of one byte that sleeps
//!
//! A waiter spins and yields for a few rounds, then sleeps in a queue that the library finds by the
//! lock's address. A running thread may overtake a sleeping one; sleepers wake in turn.
//!
//! An unlock happens before the lock that follows it.

use crate::object::{self, object};
use crate::process::Process;
use libc::c_int;
use sync::obm::Threads;

/// A mutex of one byte.
#[repr(C)]
pub struct scalevm_mutex_t {
    state: u8,
}

object!(scalevm_mutex_t = Threads<Process>, 1, 1);

/// Initialises the lock as free, as `SCALEVM_MUTEX_INIT` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_mutex_init(lock: *mut scalevm_mutex_t) {
    // SAFETY: the C caller guarantees this.
    unsafe { object::init(lock) };
}

/// Acquires the lock, waiting as long as it takes. A thread that already holds it deadlocks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_mutex_lock(lock: *mut scalevm_mutex_t) {
    // SAFETY: the C caller guarantees this.
    unsafe { object::lock(lock) };
}

/// Acquires the lock if it is free: returns 0, or EBUSY if it is not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_mutex_trylock(lock: *mut scalevm_mutex_t) -> c_int {
    // SAFETY: the C caller guarantees this.
    unsafe { object::try_lock(lock) }
}

/// Releases the lock for its holder. Aborts if the lock is free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_mutex_unlock(lock: *mut scalevm_mutex_t) {
    // SAFETY: the C caller guarantees this.
    unsafe { object::unlock(lock, "scalevm_mutex_unlock") };
}

/// Returns true if the lock was held a moment ago.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_mutex_locked(lock: *const scalevm_mutex_t) -> bool {
    // SAFETY: the C caller guarantees this.
    unsafe { object::locked(lock) }
}
