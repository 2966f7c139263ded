//! a mutex that knows its owner, and sleeps
//!
//! A waiter spins while threads take the lock in quick succession, and sleeps if one owner keeps
//! it. A running thread may overtake a sleeping one; sleepers wake in turn. The thread that
//! acquires the lock must release it.
//!
//! An unlock happens before the lock that follows it.

use crate::object::{self, is, object};
use crate::process::Process;
use crate::tsan;
use libc::{EDEADLK, EPERM, c_int};
use sync::RawLock;
use sync::adaptive::Adaptive;

/// An adaptive mutex.
#[repr(C)]
pub struct scalevm_adaptive_t {
    owner: usize,
}

object!(scalevm_adaptive_t = Adaptive<Process>, 8, 8);

/// Initialises the lock as free, as `SCALEVM_ADAPTIVE_INIT` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_adaptive_init(lock: *mut scalevm_adaptive_t) {
    // SAFETY: the C caller guarantees this.
    unsafe { object::init(lock) };
}

/// Acquires the lock, waiting as long as it takes: returns 0, or EDEADLK if the caller holds it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_adaptive_lock(lock: *mut scalevm_adaptive_t) -> c_int {
    // SAFETY: the C caller guarantees this.
    let this = unsafe { is(lock) };
    if this.is_mine() {
        return EDEADLK;
    }
    this.lock();
    tsan::acquire(lock);
    0
}

/// Acquires the lock if it is free: returns 0, or EBUSY if it is not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_adaptive_trylock(lock: *mut scalevm_adaptive_t) -> c_int {
    // SAFETY: the C caller guarantees this.
    unsafe { object::try_lock(lock) }
}

/// Releases the lock: returns 0, or EPERM without an effect if the caller does not hold it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_adaptive_unlock(lock: *mut scalevm_adaptive_t) -> c_int {
    // SAFETY: the C caller guarantees this.
    let this = unsafe { is(lock) };
    if !this.is_mine() {
        return EPERM;
    }
    tsan::release(lock);
    // SAFETY: the caller holds the lock.
    unsafe { this.unlock(()) };
    0
}

/// Returns true if the caller holds the lock. The answer is exact.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_adaptive_owned(lock: *const scalevm_adaptive_t) -> bool {
    // SAFETY: the C caller guarantees this.
    unsafe { is(lock) }.is_mine()
}

/// Returns true if the lock was held a moment ago.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_adaptive_locked(lock: *const scalevm_adaptive_t) -> bool {
    // SAFETY: the C caller guarantees this.
    unsafe { object::locked(lock) }
}
