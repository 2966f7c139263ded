//! The kernel's heap, which may be out of memory.

use crate::error::{Error, Resource};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// `count` of what `make` makes.
pub(crate) fn filled<T>(count: usize, make: impl FnMut() -> T) -> Result<Box<[T]>, Error> {
    let mut all = Vec::new();
    all.try_reserve_exact(count)
        .map_err(|_| Error::OutOfMemory(Resource::Heap))?;
    all.extend(core::iter::repeat_with(make).take(count));
    Ok(all.into_boxed_slice())
}
