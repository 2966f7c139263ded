//! the queue spin lock of Craig, Landin and Hagersten
//!
//! First in, first out. A waiter spins on the node of its predecessor; the library has the nodes,
//! and a thread keeps those that it does not use. An acquisition is named by a scalevm_clh_held_t,
//! which the caller hands to the unlock. The lock owns a node once it has been acquired: destroy it
//! when it is not needed any more.
//!
//! A spin lock wastes the time of a waiter's CPU, and of all waiters if the holder loses its own:
//! sections are short, and threads do not outnumber CPUs. Waiters yield after 64 pauses, so that
//! every wait ends.
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

/// Makes the lock free, as `SCALEVM_CLH_INIT` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_clh_init(lock: *mut scalevm_clh_t) {
    // SAFETY: C's promise.
    unsafe { object::init(lock) };
}

/// Gives up what the lock owns: returns 0, or EBUSY, and does nothing, if the lock is held. It is
/// free then, as after an init.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_clh_destroy(lock: *mut scalevm_clh_t) -> c_int {
    // SAFETY: C's promise.
    if unsafe { object::locked(lock) } {
        return EBUSY;
    }
    // SAFETY: no thread uses the lock, by C's promise; it is a new one afterwards.
    unsafe {
        lock.cast::<Clh<Process>>().drop_in_place();
        object::init(lock);
    }
    0
}

/// Acquires the lock, waiting as long as it takes, and stores the acquisition. A thread that holds
/// it waits for itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_clh_lock(lock: *mut scalevm_clh_t, held: *mut scalevm_clh_held_t) {
    // SAFETY: C's promise.
    let acquired = unsafe { is(lock) }.lock();
    // SAFETY: C's promise; the types have one layout.
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
    // SAFETY: C's promise.
    let Some(acquired) = unsafe { is(lock) }.try_lock() else {
        return EBUSY;
    };
    // SAFETY: C's promise; the types have one layout.
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
    // SAFETY: C's promise; the types have one layout.
    let acquired = unsafe { (*held.cast::<Option<ClhHeld<Process>>>()).take() };
    self::held(acquired.is_some(), "scalevm_clh_unlock");
    tsan::release(lock);
    if let Some(acquired) = acquired {
        // SAFETY: an acquisition of this lock, by C's promise.
        unsafe { is(lock).unlock(acquired) };
    }
}

/// Returns true if the lock was held a moment ago.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_clh_locked(lock: *const scalevm_clh_t) -> bool {
    // SAFETY: C's promise.
    unsafe { object::locked(lock) }
}
