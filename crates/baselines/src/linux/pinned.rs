//! What stays in place because others have pointers to it.

use alloc::boxed::Box;
use core::ops::Deref;
use core::ptr::NonNull;

/// A value on the heap. Unlike a `Box` it may be moved while others look at the value.
pub(super) struct Pinned<T>(NonNull<T>);

// SAFETY: it owns the value.
unsafe impl<T: Send> Send for Pinned<T> {}
// SAFETY: it only gives shared references.
unsafe impl<T: Sync> Sync for Pinned<T> {}

impl<T> Pinned<T> {
    pub(super) fn new(value: T) -> Self {
        Pinned(NonNull::from(Box::leak(Box::new(value))))
    }
}

impl<T> Deref for Pinned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: it lives as long as this.
        unsafe { self.0.as_ref() }
    }
}

impl<T> Drop for Pinned<T> {
    fn drop(&mut self) {
        // SAFETY: from a box, and nobody looks at it any more.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}
