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

/// What a machine does at each step of the calling task.
pub type Refund = fn(Step);

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
    // Relaxed: the machine's tasks begin after it was set.
    if M::FREE && REFUNDING.load(Relaxed) > 0 {
        find::<M>(class)
    } else {
        None
    }
}

#[cold]
fn find<M: Machine>(class: &ClassState) -> Option<Refund> {
    let refunded = M::anchor().get::<Refunded>()?;
    let mut classes = refunded.classes.iter();
    classes
        .any(|name| name == class.name())
        .then_some(refunded.refund)
}

impl Drop for Refunded {
    fn drop(&mut self) {
        REFUNDING.fetch_sub(1, Relaxed);
    }
}
