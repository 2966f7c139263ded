//! Control data: what Unix sockets hand over besides bytes.

use crate::caller::Identity;
use crate::fs::OpenFile;
use crate::single::Single;
use crate::system::Lock;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// What comes with bytes.
#[derive(Clone, Default)]
pub struct Control {
    /// Open files.
    pub files: Vec<Arc<OpenFile>>,
    /// The sender.
    pub sender: Option<Identity>,
}

impl Control {
    /// Returns true if nothing comes.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.sender.is_none()
    }
}

/// Files that nobody has received. A file may be a socket that has others, and so on: one thread
/// drops them one after the other, since kernel stacks are small.
pub static DROPPED: Single<Lock<Dropped>> = Single::new();

#[derive(Default)]
pub struct Dropped {
    files: Vec<Arc<OpenFile>>,
    /// True if a thread drops them.
    has_thread: bool,
}

impl Drop for Control {
    fn drop(&mut self) {
        if self.files.is_empty() {
            return;
        }
        let mut dropped = DROPPED.lock();
        dropped.files.append(&mut self.files);
        if core::mem::replace(&mut dropped.has_thread, true) {
            return;
        }
        while let Some(file) = dropped.files.pop() {
            drop(dropped);
            drop(file);
            dropped = DROPPED.lock();
        }
        dropped.has_thread = false;
    }
}
