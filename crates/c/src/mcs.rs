//! the queue spin lock of Mellor-Crummey and Scott
//!
//! First in, first out. The caller supplies a node for each acquisition, usually on its stack, and
//! spins on it. The node must stay in place, and be used for nothing else, until the unlock. It
//! needs no initialisation. A release touches the cache line of one waiter, however many there are.
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
use sync::spin::{Mcs, McsNode};

/// An MCS lock.
#[repr(C)]
pub struct scalevm_mcs_t {
    tail: usize,
}

object!(scalevm_mcs_t = Mcs<Process>, 8, 8);

/// A place in the queue of an MCS lock.
#[repr(C)]
pub struct scalevm_mcs_node_t {
    words: [usize; 2],
}

object!(scalevm_mcs_node_t = McsNode<Process>, 16, 8);

/// Initialises the lock as free, as `SCALEVM_MCS_INIT` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_mcs_init(lock: *mut scalevm_mcs_t) {
    // SAFETY: the C caller guarantees this.
    unsafe { object::init(lock) };
}

/// Acquires the lock with this node, waiting as long as it takes. A thread that already holds it
/// deadlocks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_mcs_lock(lock: *mut scalevm_mcs_t, node: *mut scalevm_mcs_node_t) {
    // SAFETY: the C caller guarantees that the node is valid, in no queue, and stays until the
    // unlock.
    unsafe {
        object::init(node);
        is(lock).lock_with(is(node));
    }
    tsan::acquire(lock);
}

/// Acquires the lock with this node if the lock is free: returns 0, or EBUSY if it is not; the node
/// is then unused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_mcs_trylock(
    lock: *mut scalevm_mcs_t,
    node: *mut scalevm_mcs_node_t,
) -> c_int {
    // SAFETY: the C caller guarantees that the node is valid, in no queue, and stays until the
    // unlock.
    let locked = unsafe {
        object::init(node);
        is(lock).try_lock_with(is(node))
    };
    if !locked {
        return EBUSY;
    }
    tsan::acquire(lock);
    0
}

/// Releases the lock that was acquired with this node. Aborts if the lock is free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_mcs_unlock(
    lock: *mut scalevm_mcs_t,
    node: *mut scalevm_mcs_node_t,
) {
    // SAFETY: the C caller guarantees this.
    let (this, node) = unsafe { (is(lock), is(node)) };
    held(this.is_locked(), "scalevm_mcs_unlock");
    tsan::release(lock);
    // SAFETY: the lock is held, and as the C caller guarantees with this node.
    unsafe { this.unlock_with(node) };
}

/// Returns true if the lock was held a moment ago.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_mcs_locked(lock: *const scalevm_mcs_t) -> bool {
    // SAFETY: the C caller guarantees this.
    unsafe { object::locked(lock) }
}
