//! Objects that exist once in the system.

use alloc::boxed::Box;
use core::ops::Deref;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

/// An object that is made before tasks run, and is never dropped.
pub struct Single<T>(AtomicPtr<T>);

impl<T: Send + Sync> Single<T> {
    /// An object that is not made yet.
    pub const fn new() -> Self {
        Single(AtomicPtr::new(null_mut()))
    }

    /// Sets the object, once.
    pub fn set(&self, object: T) {
        // Release: pairs with the acquire in `deref`.
        self.0.store(Box::leak(Box::new(object)), Ordering::Release);
    }
}

impl<T: Send + Sync> Deref for Single<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: null, or an object that `set` has leaked.
        let object = unsafe { self.0.load(Ordering::Acquire).as_ref() };
        object.expect("it is made before tasks run")
    }
}
