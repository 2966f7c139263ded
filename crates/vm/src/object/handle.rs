//! Handles of objects.

use super::{Object, life};
use crate::system::System;
use alloc::boxed::Box;
use core::ops::Deref;
use core::ptr::NonNull;

/// A counted reference to an object, for the owner of a file. An object ends with its last handle
/// and its last attachment; then it writes its dirty pages to its store, and frees all pages.
///
/// The caller drops it where nothing is locked. Cloning and dropping write a cache line that all
/// CPUs share; making and dropping attachments does not.
pub struct ObjectRef<S: System>(NonNull<Object<S>>);

// SAFETY: a counted reference to an object, which CPUs share.
unsafe impl<S: System> Send for ObjectRef<S> {}
// SAFETY: all that an object lets others change is atomic or under its locks.
unsafe impl<S: System> Sync for ObjectRef<S> {}

impl<S: System> ObjectRef<S> {
    /// The first handle of a new object, which counts it already.
    pub(super) fn first(object: Box<Object<S>>) -> Self {
        ObjectRef(NonNull::from(Box::leak(object)))
    }
}

impl<S: System> Deref for ObjectRef<S> {
    type Target = Object<S>;

    fn deref(&self) -> &Object<S> {
        // SAFETY: a counted reference keeps it.
        unsafe { self.0.as_ref() }
    }
}

impl<S: System> Clone for ObjectRef<S> {
    fn clone(&self) -> Self {
        self.life.add_handle();
        ObjectRef(self.0)
    }
}

impl<S: System> Drop for ObjectRef<S> {
    fn drop(&mut self) {
        if self.life.drop_handle() {
            self.life.close();
            // SAFETY: the counter began with one for the task that closes.
            unsafe { life::count_down(self.0) };
        }
    }
}
