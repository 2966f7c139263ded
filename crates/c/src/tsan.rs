//! What the library orders, for ThreadSanitizer: its runtime sees C's accesses, but none of the
//! library's.
//!
//! The two functions are weak symbols: without the runtime their addresses are 0, and a call here
//! is a load of a constant and a branch.

use crate::errno;
use core::arch::asm;
use core::ffi::c_void;
use core::mem::transmute;
use core::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard};

/// What happened before the releases of `object` so far happens before what follows.
#[inline(always)]
pub(crate) fn acquire<T>(object: *const T) {
    let function: *const c_void;
    // SAFETY: a load from the global offset table of the function's address, or 0.
    unsafe {
        asm!(".weak __tsan_acquire", "mov {}, qword ptr [rip + __tsan_acquire@GOTPCREL]",
             out(reg) function, options(pure, nomem, nostack, preserves_flags));
    }
    call(function, object);
}

/// What happened so far happens before what follows an [`acquire`] of `object`.
#[inline(always)]
pub(crate) fn release<T>(object: *const T) {
    let function: *const c_void;
    // SAFETY: a load from the global offset table of the function's address, or 0.
    unsafe {
        asm!(".weak __tsan_release", "mov {}, qword ptr [rip + __tsan_release@GOTPCREL]",
             out(reg) function, options(pure, nomem, nostack, preserves_flags));
    }
    call(function, object);
}

#[inline(always)]
fn call<T>(function: *const c_void, object: *const T) {
    if !function.is_null() {
        // SAFETY: the address of a function of this type.
        let function = unsafe { transmute::<*const c_void, extern "C" fn(*mut c_void)>(function) };
        function(object.cast_mut().cast());
    }
}

/// A value of the library's own behind a mutex, whose order the runtime sees: it sees calls of
/// `realloc` and the like.
pub(crate) struct Guarded<T>(Mutex<T>);

/// Access to the value; the mutex is released when this is dropped.
pub(crate) struct Guard<'a, T>(MutexGuard<'a, T>);

impl<T> Guarded<T> {
    pub(crate) const fn new(value: T) -> Self {
        Guarded(Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> Guard<'_, T> {
        let _errno = errno::keep();
        // No panic is survived.
        let guard = self.0.lock().unwrap_or_else(|e| e.into_inner());
        acquire(&*guard);
        Guard(guard)
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        release(&*self.0);
    }
}
