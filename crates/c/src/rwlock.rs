//! a reader/writer lock of four bytes that sleeps
//!
//! Waiters spin for a few rounds, then sleep. A writer that waits stops new readers, and its
//! release admits all readers that wait then: neither starves. So a reader must not acquire the
//! lock for reading again: it deadlocks if a writer came in between. At most 268435455 (2^28 - 1)
//! readers hold the lock; one more aborts.
//!
//! A write unlock happens before each lock that follows, and a read unlock before the write lock
//! that follows.

use crate::object::{self, held, is, object};
use crate::process::{Process, abort};
use crate::tsan;
use libc::{EBUSY, c_int};
use sync::rwlock::{RawRw, SpinParkRw};

/// A reader/writer lock.
#[repr(C)]
pub struct scalevm_rwlock_t {
    word: u32,
}

object!(scalevm_rwlock_t = SpinParkRw<Process>, 4, 4);

/// For ThreadSanitizer: what readers release, and writers acquire. The lock's own address is what
/// writers release.
fn readers(lock: *const scalevm_rwlock_t) -> *const u8 {
    lock.cast::<u8>().wrapping_add(1)
}

/// Aborts if the maximum number of readers hold the lock. The message is printed here: a panic of a
/// thread without a place prints more than one line.
#[inline(always)]
fn has_room(lock: &SpinParkRw<Process>, function: &str) {
    const MOST: u32 = (1 << 28) - 1;
    if lock.readers() >= MOST {
        abort(function, "too many readers");
    }
}

/// Initialises the lock as free, as `SCALEVM_RWLOCK_INIT` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_rwlock_init(lock: *mut scalevm_rwlock_t) {
    // SAFETY: the C caller guarantees this.
    unsafe { object::init(lock) };
}

/// Acquires the lock for reading, waiting as long as it takes. Other readers may hold it too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_rwlock_rdlock(lock: *mut scalevm_rwlock_t) {
    // SAFETY: the C caller guarantees this.
    let this = unsafe { is(lock) };
    has_room(this, "scalevm_rwlock_rdlock");
    this.read();
    tsan::acquire(lock);
}

/// Acquires the lock for reading if no writer holds it or waits for readers: returns 0, or EBUSY
/// if one does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_rwlock_tryrdlock(lock: *mut scalevm_rwlock_t) -> c_int {
    // SAFETY: the C caller guarantees this.
    let this = unsafe { is(lock) };
    has_room(this, "scalevm_rwlock_tryrdlock");
    if !this.try_read() {
        return EBUSY;
    }
    tsan::acquire(lock);
    0
}

/// Releases the lock for a reader. Aborts if no reader holds it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_rwlock_rdunlock(lock: *mut scalevm_rwlock_t) {
    // SAFETY: the C caller guarantees this.
    let this = unsafe { is(lock) };
    held(this.readers() > 0, "scalevm_rwlock_rdunlock");
    tsan::release(readers(lock));
    // SAFETY: readers hold the lock, as the C caller guarantees the caller.
    unsafe { this.read_unlock() };
}

/// Acquires the lock for writing, waiting as long as it takes. A thread that already holds it
/// deadlocks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_rwlock_wrlock(lock: *mut scalevm_rwlock_t) {
    // SAFETY: the C caller guarantees this.
    unsafe { is(lock) }.write();
    tsan::acquire(lock);
    tsan::acquire(readers(lock));
}

/// Acquires the lock for writing if it is free: returns 0, or EBUSY if it is not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_rwlock_trywrlock(lock: *mut scalevm_rwlock_t) -> c_int {
    // SAFETY: the C caller guarantees this.
    if !unsafe { is(lock) }.try_write() {
        return EBUSY;
    }
    tsan::acquire(lock);
    tsan::acquire(readers(lock));
    0
}

/// Releases the lock for its writer. Aborts if no writer holds it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_rwlock_wrunlock(lock: *mut scalevm_rwlock_t) {
    // SAFETY: the C caller guarantees this.
    let this = unsafe { is(lock) };
    held(this.is_write_locked(), "scalevm_rwlock_wrunlock");
    tsan::release(lock);
    // SAFETY: a writer holds the lock, as the C caller guarantees the caller.
    unsafe { this.write_unlock() };
}

/// Returns true if the lock was held a moment ago.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_rwlock_locked(lock: *const scalevm_rwlock_t) -> bool {
    // SAFETY: the C caller guarantees this.
    unsafe { is(lock) }.is_locked()
}
