//! The kernel's heap, which may be out of memory.

use crate::error::Error;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// `count` values from `make`.
pub fn filled<T>(count: usize, make: impl FnMut() -> T) -> Result<Box<[T]>, Error> {
    let mut all = Vec::new();
    all.try_reserve_exact(count)?;
    all.extend(core::iter::repeat_with(make).take(count));
    Ok(all.into_boxed_slice())
}

/// `value` on the heap, if there is room.
pub(crate) fn try_box<T>(value: T) -> Result<Box<T>, Error> {
    let mut place = Vec::new();
    place.try_reserve_exact(1)?;
    place.push(value);
    let one: *mut [T] = Box::into_raw(place.into_boxed_slice());
    // SAFETY: a boxed slice of one has the layout of a boxed value.
    Ok(unsafe { Box::from_raw(one.cast::<T>()) })
}

/// Puts `item` on `list`, if there is room for it.
pub(crate) fn push<T>(list: &mut Vec<T>, item: T) -> Result<(), Error> {
    list.try_reserve(1)?;
    list.push(item);
    Ok(())
}
