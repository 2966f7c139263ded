//! Access to C's objects as the library's own types, and what all locks have in common.

use crate::errno;
use crate::process::{CPUS, Pin, Process, abort};
use crate::tsan;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use libc::{EBUSY, EINVAL, c_int};
use machine::{CpuRange, Cpus, Pinned};
use sync::RawLock;

/// A type of C.
///
/// # Safety
/// Its objects have the size and the alignment of `Is`, and all zeroes are a valid object.
pub(crate) unsafe trait Object {
    /// The library's own type.
    type Is;
}

/// `object!(c_type = Type, size, alignment);` The header asserts the same numbers.
macro_rules! object {
    ($object:ty = $is:ty, $size:literal, $align:literal) => {
        const _: () = {
            assert!(size_of::<$object>() == $size && size_of::<$is>() == $size);
            assert!(align_of::<$object>() == $align && align_of::<$is>() == $align);
        };
        // SAFETY: the size and the alignment are those asserted; all fields are atomics, for which
        // zeroes are valid.
        unsafe impl crate::object::Object for $object {
            type Is = $is;
        }
    };
}
pub(crate) use object;

/// # Safety
/// The pointer is valid while the result is used, and only this library accesses the object.
#[inline(always)]
pub(crate) unsafe fn is<'a, C: Object>(object: *const C) -> &'a C::Is {
    // SAFETY: the caller and the trait guarantee this.
    unsafe { &*object.cast() }
}

/// Makes the object all zeroes.
///
/// # Safety
/// The pointer is valid, and no thread uses the object.
pub(crate) unsafe fn init<C: Object>(object: *mut C) {
    // SAFETY: the caller guarantees this, and the trait that zeroes are an object.
    unsafe { object.write_bytes(0, 1) };
}

/// # Safety
/// See [`is`].
#[inline(always)]
pub(crate) unsafe fn lock<C: Object<Is: RawLock<Process, Held = ()>>>(object: *mut C) {
    // SAFETY: the caller guarantees this.
    unsafe { is(object) }.lock();
    tsan::acquire(object);
}

/// 0, or `EBUSY`.
///
/// # Safety
/// See [`is`].
#[inline(always)]
pub(crate) unsafe fn try_lock<C: Object<Is: RawLock<Process, Held = ()>>>(object: *mut C) -> c_int {
    // SAFETY: the caller guarantees this.
    match unsafe { is(object) }.try_lock() {
        Some(()) => {
            tsan::acquire(object);
            0
        }
        None => EBUSY,
    }
}

/// Aborts if the lock is free.
///
/// # Safety
/// See [`is`].
#[inline(always)]
pub(crate) unsafe fn unlock<C: Object<Is: RawLock<Process, Held = ()>>>(
    object: *mut C,
    function: &str,
) {
    // SAFETY: the caller guarantees this.
    let lock = unsafe { is(object) };
    held(lock.is_locked(), function);
    tsan::release(object);
    // SAFETY: the lock is held. The C caller guarantees that it holds it.
    unsafe { lock.unlock(()) };
}

/// # Safety
/// See [`is`].
#[inline(always)]
pub(crate) unsafe fn locked<C: Object<Is: RawLock<Process>>>(object: *const C) -> bool {
    // SAFETY: the caller guarantees this.
    unsafe { is(object) }.is_locked()
}

/// Aborts if a lock that a thread releases is not held.
#[inline(always)]
pub(crate) fn held(is_held: bool, function: &str) {
    if !is_held {
        abort(function, "the lock is not held");
    }
}

/// An object's memory on the heap, made for the first thread that needs it.
#[repr(transparent)]
pub(crate) struct Owned<T>(AtomicPtr<T>);

impl<T> Owned<T> {
    /// Returns the memory if it has been made.
    #[inline(always)]
    pub(crate) fn get(&self) -> Option<&T> {
        // Acquire: pairs with the release in `set`.
        // SAFETY: null, or what `set` has stored; it is freed when no thread uses the object.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// Returns the memory, made by `make` if needed. If that fails, aborts with a message that
    /// names `object`, and `limits` if one of these is exceeded.
    #[inline(always)]
    pub(crate) fn get_or_make(
        &self,
        object: &str,
        limits: &str,
        make: impl FnOnce() -> Result<Box<T>, c_int>,
    ) -> &T {
        self.get()
            .unwrap_or_else(|| self.make(object, limits, make))
    }

    #[cold]
    #[inline(never)]
    fn make(&self, object: &str, limits: &str, make: impl FnOnce() -> Result<Box<T>, c_int>) -> &T {
        match make() {
            Ok(made) => self.set(made),
            Err(EINVAL) => abort(object, limits),
            Err(_) => abort(object, "no memory"),
        }
    }

    /// Stores the memory of an object that no thread uses yet: returns 0, or the error's number.
    pub(crate) fn begin(&self, made: Result<Box<T>, c_int>) -> c_int {
        let begun = made.map(|made| self.set(made));
        begun.err().unwrap_or(0)
    }

    /// Stores `made`, unless another thread was faster.
    fn set(&self, made: Box<T>) -> &T {
        let made = Box::into_raw(made);
        // Release: pairs with the acquire in `get`.
        let stored = self
            .0
            .compare_exchange(null_mut(), made, Ordering::AcqRel, Ordering::Acquire);
        match stored {
            // SAFETY: stored above, so valid while threads use the object.
            Ok(_) => unsafe { &*made },
            Err(other) => {
                // SAFETY: no other thread has seen it.
                drop(unsafe { Box::from_raw(made) });
                // SAFETY: another thread has stored it, so it is valid while threads use the
                // object.
                unsafe { &*other }
            }
        }
    }

    /// Takes the memory of an object that no thread uses.
    pub(crate) fn take(&self) -> Option<Box<T>> {
        let made = self.0.swap(null_mut(), Ordering::Acquire);
        // SAFETY: null, or a box that `set` has stored, which no thread uses.
        (!made.is_null()).then(|| unsafe { Box::from_raw(made) })
    }
}

/// The first `threads` threads as CPUs; 0 means as many as are possible. `None` if there are too
/// many.
pub(crate) fn cpus(threads: u32) -> Option<CpuRange> {
    // The first use of the range may wait for another thread that makes it.
    let _errno = errno::keep();
    match threads as usize {
        0 => Some(*CPUS),
        count if count <= CPUS.len() => Some(CPUS.first(count)),
        _ => None,
    }
}

/// Pins the caller, and aborts if it is no CPU of `cpus`.
#[inline(always)]
pub(crate) fn pin(cpus: CpuRange, function: &str) -> Pin {
    let pin = Process::pin();
    if cpus.index_of(pin.cpu()) >= cpus.len() {
        abort(function, "more threads than it was made for");
    }
    pin
}
