//! a queue spin lock whose holder has no node
//!
//! First in, first out. Waiters queue with nodes on their own stacks, and each spins on its own
//! node: K42's variant of the MCS lock. A release touches the cache line of one waiter, however
//! many there are.
//!
//! A waiter keeps its CPU busy, and all waiters waste time while the holder is off its CPU: keep
//! sections short, and use no more threads than CPUs. Waiters yield after 64 pauses, so that every
//! wait ends.
//!
//! An unlock happens before the lock that follows it.

use crate::object::{self, object};
use crate::process::Process;
use libc::c_int;
use sync::spin::K42;

/// A K42 lock.
#[repr(C)]
pub struct scalevm_k42_t {
    words: [usize; 2],
}

object!(scalevm_k42_t = K42<Process>, 16, 8);

/// Initialises the lock as free, as `SCALEVM_K42_INIT` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_k42_init(lock: *mut scalevm_k42_t) {
    // SAFETY: the C caller guarantees this.
    unsafe { object::init(lock) };
}

/// Acquires the lock, waiting as long as it takes. A thread that already holds it deadlocks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_k42_lock(lock: *mut scalevm_k42_t) {
    // SAFETY: the C caller guarantees this.
    unsafe { object::lock(lock) };
}

/// Acquires the lock if it is free: returns 0, or EBUSY if it is not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_k42_trylock(lock: *mut scalevm_k42_t) -> c_int {
    // SAFETY: the C caller guarantees this.
    unsafe { object::try_lock(lock) }
}

/// Releases the lock for its holder. Aborts if the lock is free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_k42_unlock(lock: *mut scalevm_k42_t) {
    // SAFETY: the C caller guarantees this.
    unsafe { object::unlock(lock, "scalevm_k42_unlock") };
}

/// Returns true if the lock was held a moment ago.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_k42_locked(lock: *const scalevm_k42_t) -> bool {
    // SAFETY: the C caller guarantees this.
    unsafe { object::locked(lock) }
}
