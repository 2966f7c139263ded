//! Stores of pages: where pages come from, and where they go when memory does not keep them.

use crate::{Frame, Memory};
use alloc::sync::Arc;
use core::fmt;

/// A store of pages: a file, a device, a swap space.
///
/// Calls may block; the caller holds no spin lock. Calls for different pages may run concurrently;
/// the caller ensures that no two concern the same page at once.
pub trait Pager<M: Memory>: Send + Sync + 'static {
    /// Fills `frames` with the pages `first`, `first + 1`, …; a page that the store lacks is zero.
    /// After an error their content is undefined.
    ///
    /// # Safety
    /// The frames are of `machine`, and their content is the caller's to touch, as
    /// [`Memory`] says; only the caller accesses it.
    unsafe fn read(&self, machine: &M, first: u64, frames: &[Frame]) -> Result<(), PagerError>;

    /// Keeps the first `bytes` bytes of `frames` as the pages `first`, `first + 1`, …; the rest of
    /// the last page stays as the store has it. Tasks may write the frames meanwhile; then either
    /// content of a word is kept. After an error the store's content of these pages is undefined.
    ///
    /// # Safety
    /// The frames are of `machine`, and their content is the caller's to touch, as
    /// [`Memory`] says.
    unsafe fn write(
        &self,
        machine: &M,
        first: u64,
        frames: &[Frame],
        bytes: usize,
    ) -> Result<(), PagerError>;
}

/// A pager whose store can be truncated, as a file can.
pub trait Truncate<M: Memory>: Pager<M> {
    /// Forgets everything past the first `bytes` bytes: read again, it is zero. No effect on a
    /// store that is no longer than that.
    ///
    /// May run concurrently with calls for pages that begin before `bytes`, but not with a write
    /// past it. After an error the content past `bytes` is undefined.
    fn truncate(&self, machine: &M, bytes: u64) -> Result<(), PagerError>;
}

/// A handle of a shared store is a pager, too.
impl<M: Memory, P: Pager<M> + ?Sized> Pager<M> for Arc<P> {
    unsafe fn read(&self, machine: &M, first: u64, frames: &[Frame]) -> Result<(), PagerError> {
        // SAFETY: so says the caller.
        unsafe { (**self).read(machine, first, frames) }
    }

    unsafe fn write(
        &self,
        machine: &M,
        first: u64,
        frames: &[Frame],
        bytes: usize,
    ) -> Result<(), PagerError> {
        // SAFETY: so says the caller.
        unsafe { (**self).write(machine, first, frames, bytes) }
    }
}

/// Why a store failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PagerError {
    /// The errno (Linux numbering): 5 is `EIO`, 28 is `ENOSPC`.
    pub errno: i32,
}

impl fmt::Display for PagerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the pager failed (errno {})", self.errno)
    }
}

impl core::error::Error for PagerError {}
