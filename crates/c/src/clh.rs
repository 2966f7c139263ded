//! the queue spin lock of Craig, Landin and Hagersten
//!
//! First in, first out. A waiter spins on the node of its predecessor. The library allocates the
//! nodes, and a thread keeps those that it does not use. A scalevm_clh_held_t names an acquisition;
//! the caller passes it to the unlock. A lock that was ever acquired owns a node: destroy the lock
//! when it is no longer needed.
//!
//! A waiter keeps its CPU busy, and all waiters waste time while the holder is off its CPU: keep
//! sections short, and use no more threads than CPUs. Waiters yield after 64 pauses, so that every
//! wait ends.
//!
//! An unlock happens before the lock that follows it.

use crate::object::{self, held, is, object};
use crate::process::Process;
use crate::tsan;
use libc::{EBUSY, c_int};
use sync::RawLock;
use sync::spin::{Clh, ClhHeld};

/// A CLH lock.
#[repr(C)]
pub struct scalevm_clh_t {
    tail: usize,
}

object!(scalevm_clh_t = Clh<Process>, 8, 8);

/// An acquisition of a CLH lock.
#[repr(C)]
pub struct scalevm_clh_held_t {
    node: usize,
}

object!(scalevm_clh_held_t = Option<ClhHeld<Process>>, 8, 8);

/// Initialises the lock as free, as `SCALEVM_CLH_INIT` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_clh_init(lock: *mut scalevm_clh_t) {
    // SAFETY: the C caller guarantees this.
    unsafe { object::init(lock) };
}

/// Frees what the lock owns: returns 0, or EBUSY without an effect if the lock is held. Afterwards
/// the lock is free, as after an init.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_clh_destroy(lock: *mut scalevm_clh_t) -> c_int {
    // SAFETY: the C caller guarantees this.
    if unsafe { object::locked(lock) } {
        return EBUSY;
    }
    // SAFETY: no thread uses the lock, as the C caller guarantees; it is a new one afterwards.
    unsafe {
        lock.cast::<Clh<Process>>().drop_in_place();
        object::init(lock);
    }
    0
}

/// Acquires the lock, waiting as long as it takes, and stores the acquisition. A thread that
/// already holds it deadlocks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_clh_lock(lock: *mut scalevm_clh_t, held: *mut scalevm_clh_held_t) {
    // SAFETY: the C caller guarantees this.
    let acquired = unsafe { is(lock) }.lock();
    // SAFETY: the C caller guarantees this; the types have the same layout.
    unsafe {
        held.cast::<Option<ClhHeld<Process>>>()
            .write(Some(acquired))
    };
    tsan::acquire(lock);
}

/// Acquires the lock if it is free, and stores the acquisition: returns 0, or EBUSY if it is not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_clh_trylock(
    lock: *mut scalevm_clh_t,
    held: *mut scalevm_clh_held_t,
) -> c_int {
    // SAFETY: the C caller guarantees this.
    let Some(acquired) = unsafe { is(lock) }.try_lock() else {
        return EBUSY;
    };
    // SAFETY: the C caller guarantees this; the types have the same layout.
    unsafe {
        held.cast::<Option<ClhHeld<Process>>>()
            .write(Some(acquired))
    };
    tsan::acquire(lock);
    0
}

/// Releases the acquisition. Aborts if it was released before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_clh_unlock(
    lock: *mut scalevm_clh_t,
    held: *mut scalevm_clh_held_t,
) {
    // SAFETY: the C caller guarantees this; the types have the same layout.
    let acquired = unsafe { (*held.cast::<Option<ClhHeld<Process>>>()).take() };
    self::held(acquired.is_some(), "scalevm_clh_unlock");
    tsan::release(lock);
    if let Some(acquired) = acquired {
        // SAFETY: an acquisition of this lock, as the C caller guarantees.
        unsafe { is(lock).unlock(acquired) };
    }
}

/// Returns true if the lock was held a moment ago.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_clh_locked(lock: *const scalevm_clh_t) -> bool {
    // SAFETY: the C caller guarantees this.
    unsafe { object::locked(lock) }
}
