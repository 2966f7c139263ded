//! Handles of objects.

use super::{Object, life};
use crate::policy::Policies;
use alloc::boxed::Box;
use core::ops::Deref;
use core::ptr::NonNull;
use machine::Platform;

/// A handle, as a file's owner has it. An object goes when its last handle and its last
/// attachment have gone; then it writes its dirty pages to its store, and frees all pages.
///
/// To be dropped where nothing is locked. Cloning and dropping write a line that all
/// CPUs share; attachments do not.
pub struct ObjectRef<M: Platform, P: Policies<M>>(NonNull<Object<M, P>>);

// SAFETY: a counted reference to an object, which CPUs share.
unsafe impl<M: Platform, P: Policies<M>> Send for ObjectRef<M, P> {}
// SAFETY: all that an object lets others change is atomic or under its locks.
unsafe impl<M: Platform, P: Policies<M>> Sync for ObjectRef<M, P> {}

impl<M: Platform, P: Policies<M>> ObjectRef<M, P> {
    /// The handle that a new object counts.
    pub(super) fn first(object: Box<Object<M, P>>) -> Self {
        ObjectRef(NonNull::from(Box::leak(object)))
    }
}

impl<M: Platform, P: Policies<M>> Deref for ObjectRef<M, P> {
    type Target = Object<M, P>;

    fn deref(&self) -> &Object<M, P> {
        // SAFETY: a counted reference keeps it.
        unsafe { self.0.as_ref() }
    }
}

impl<M: Platform, P: Policies<M>> Clone for ObjectRef<M, P> {
    fn clone(&self) -> Self {
        self.life.add_handle();
        ObjectRef(self.0)
    }
}

impl<M: Platform, P: Policies<M>> Drop for ObjectRef<M, P> {
    fn drop(&mut self) {
        if self.life.drop_handle() {
            self.life.close();
            // SAFETY: the counter began with one for the task that closes.
            unsafe { life::count_down(self.0) };
        }
    }
}
