//! Locks that exclude as ever, but cost their tasks no time: what would be without their waits?
//!
//! A machine in virtual time can give a task back the time that it has spent. It does so for each
//! acquisition and each release of the chosen classes, which the profile then leaves out.

use crate::watch::ClassState;
use alloc::boxed::Box;
use alloc::string::String;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use machine::{Anchor, Machine};

/// A step of a task with a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It begins to acquire the lock.
    Acquiring,
    /// It has the lock.
    Acquired,
    /// It has the lock, by `try_lock`.
    Tried,
    /// It begins to release the lock.
    Releasing,
    /// It has released the lock.
    Released,
}

/// What a machine does for the calling task.
#[derive(Clone, Copy, Debug)]
pub struct Refund {
    /// It does this with a lock that costs nothing.
    pub step: fn(Step),
    /// It has another lock, by its address, for itself. Returns the nanoseconds for which it would
    /// have waited for that, had it come when the time that it has got back began.
    pub enter: fn(usize) -> u64,
    /// It is about to release that lock.
    pub leave: fn(usize),
}

/// The number of machines that refund locks; every operation reads it first.
static REFUNDING: AtomicUsize = AtomicUsize::new(0);

/// The classes of a machine's locks that are refunded. It lies in the machine's [`Anchor`].
struct Refunded {
    classes: Box<[String]>,
    refund: Refund,
}

/// From now on, locks of `classes`, by their names, cost the tasks of the machine that `anchor`
/// belongs to no time. Called once, before the tasks begin.
pub fn refund(anchor: &Anchor, classes: Box<[String]>, refund: Refund) {
    anchor.get_or_init(|| {
        REFUNDING.fetch_add(1, Relaxed);
        Refunded { classes, refund }
    });
}

/// The refund of the class on the calling task's machine, if it has one. Only virtual time can be
/// given back: it is also free to read.
#[inline]
pub(super) fn of<M: Machine>(class: &ClassState) -> Option<Refund> {
    match is_on::<M>() {
        true => find::<M>(class, true),
        false => None,
    }
}

/// What the calling task's machine does for locks of the class, if it refunds others.
#[inline]
pub(super) fn of_others<M: Machine>(class: &ClassState) -> Option<Refund> {
    match is_on::<M>() {
        true => find::<M>(class, false),
        false => None,
    }
}

#[inline]
fn is_on<M: Machine>() -> bool {
    // Relaxed: the machine's tasks begin after it was set.
    M::FREE && REFUNDING.load(Relaxed) > 0
}

#[cold]
fn find<M: Machine>(class: &ClassState, is_refunded: bool) -> Option<Refund> {
    let refunded = M::anchor().get::<Refunded>()?;
    let mut classes = refunded.classes.iter();
    let found = classes.any(|name| name == class.name());
    (found == is_refunded).then_some(refunded.refund)
}

impl Drop for Refunded {
    fn drop(&mut self) {
        REFUNDING.fetch_sub(1, Relaxed);
    }
}
