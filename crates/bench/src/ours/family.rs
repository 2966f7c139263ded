//! Waiting for a child that is a task of its own.

use ipc::Kernel;
use machine::{Atomic, Machine, Ordering, SharedCell};
use std::ptr::from_ref;
use workloads::Error;

/// The end of a child, for which its parent sleeps.
pub struct Over<M: Machine, R> {
    /// 1 when the child has ended.
    ended: M::AtomicU32,
    /// Its result; the child's until `ended`, then the parent's.
    left: M::Cell<Option<Left<R>>>,
}

/// The result of a child.
struct Left<R>(Result<R, Error>);

// SAFETY: the cell passes it from one task to another, and a task's possessions are bound to no
// thread.
unsafe impl<R> Send for Left<R> {}

impl<M: Machine, R> Over<M, R> {
    /// The state of a child that still runs.
    pub fn new() -> Self {
        Over {
            ended: M::AtomicU32::new(0),
            left: M::Cell::new(None),
        }
    }

    /// Announces the child's end. The parent may have continued when this returns.
    pub fn tell(&self, kernel: &impl Kernel<M>, left: Result<R, Error>) {
        let key = self.key();
        // SAFETY: the child's until it says that it has ended.
        unsafe { *self.left.write() = Some(Left(left)) };
        // Release: pairs with the acquire in `wait`.
        self.ended.store(1, Ordering::Release);
        kernel.wake(key, 1);
    }

    /// Sleeps until the child has ended; returns its result.
    pub fn wait(&self, kernel: &impl Kernel<M>) -> Result<R, Error> {
        // Acquire: pairs with the release in `tell`.
        while self.ended.load(Ordering::Acquire) == 0 {
            kernel.sleep(self.key(), || self.ended.load(Ordering::Acquire) == 0);
        }
        // SAFETY: the child has ended, so this is the parent's.
        let left = unsafe { (*self.left.write()).take() };
        left.expect("a child leaves something").0
    }

    fn key(&self) -> *const () {
        from_ref(self).cast()
    }
}
