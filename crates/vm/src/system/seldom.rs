//! Guards that are seldom held.

use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};

/// An optional guard that is mostly absent: then its drop calls nothing. (The drop code of a guard
/// that may be of several kinds is not inlined, and checks for a guard only after the call.)
#[derive(Debug)]
pub struct Seldom<G>(ManuallyDrop<Option<G>>);

impl<G> Seldom<G> {
    /// No guard.
    pub const NONE: Self = Seldom(ManuallyDrop::new(None));

    /// A guard.
    #[inline]
    pub fn some(guard: G) -> Self {
        Seldom(ManuallyDrop::new(Some(guard)))
    }

    /// Drops the guard, if there is one.
    #[inline]
    pub fn end(&mut self) {
        if self.0.is_some() {
            self.end_one();
        }
    }

    #[inline(never)]
    fn end_one(&mut self) {
        *self.0 = None;
    }
}

impl<G> Default for Seldom<G> {
    #[inline]
    fn default() -> Self {
        Self::NONE
    }
}

impl<G> Deref for Seldom<G> {
    type Target = Option<G>;

    #[inline]
    fn deref(&self) -> &Option<G> {
        &self.0
    }
}

impl<G> DerefMut for Seldom<G> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Option<G> {
        &mut self.0
    }
}

impl<G> Drop for Seldom<G> {
    #[inline]
    fn drop(&mut self) {
        self.end();
    }
}
