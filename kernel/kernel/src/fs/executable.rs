//! Files from which programs run, and files that may be written: no file is both.

use super::{Inode, Name};
use crate::errno::Errno;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicI32, Ordering};

/// The uses of a file: how many writers it has, or, as a negative number, how many programs run
/// from it. The number guards no other memory: relaxed.
#[derive(Default)]
pub struct Uses(AtomicI32);

impl Uses {
    /// Adds `one`, a writer (1) or a program (-1), unless there are others.
    fn add(&self, one: i32) -> Result<(), Errno> {
        let sum = |count: i32| (count.signum() != -one).then(|| count + one);
        let added = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum);
        added.map(drop).map_err(|_| Errno::TXTBSY)
    }

    fn remove(&self, one: i32) {
        self.0.fetch_sub(one, Ordering::Relaxed);
    }
}

/// A writer of a file, as long as this exists.
pub struct Writer(Arc<Inode>);

impl Writer {
    /// Adds a writer.
    ///
    /// # Errors
    /// If programs run from the file.
    pub fn new(inode: &Arc<Inode>) -> Result<Self, Errno> {
        inode.uses.add(1)?;
        Ok(Writer(inode.clone()))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.uses.remove(1);
    }
}

/// A program's file, which is not written as long as this exists, and the path by which it was
/// found.
#[derive(Default)]
pub struct Executable {
    path: Name,
    inode: Option<Arc<Inode>>,
}

impl Executable {
    /// Adds a program that begins to run.
    ///
    /// # Errors
    /// If the file is open for writing.
    pub fn new(inode: &Arc<Inode>) -> Result<Self, Errno> {
        inode.uses.add(-1)?;
        Ok(Executable {
            path: Name::new(),
            inode: Some(inode.clone()),
        })
    }

    /// The program, as found at `path`.
    pub fn at(mut self, path: Name) -> Self {
        self.path = path;
        self
    }

    /// The path by which the file was found.
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// The file; `None` before the first program, and after a process's end.
    pub fn inode(&self) -> Option<&Arc<Inode>> {
        self.inode.as_ref()
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        if let Some(inode) = &self.inode {
            inode.uses.remove(-1);
        }
    }
}
