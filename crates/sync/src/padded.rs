//! Padding, to keep values that different CPUs write on different cache lines.

use core::ops::{Deref, DerefMut};

/// A value with cache lines of its own.
///
/// 128 bytes, not 64: x86 prefetches lines in pairs, so a CPU that fetches a line also takes its
/// neighbour from another CPU.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Padded<T>(pub T);

impl<T> Deref for Padded<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Padded<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
