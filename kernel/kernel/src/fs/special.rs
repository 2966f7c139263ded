//! Files that only one call makes, and from which events are read.

use super::{Kind, OpenFile, Target};
use crate::errno::Errno;
use alloc::sync::Arc;
use core::any::Any;
use ipc::Pipe;
use metal::Metal;

/// A file from which events are read.
pub trait Special: Send + Sync + Any {
    /// Its name in `/proc`.
    fn name(&self) -> &'static [u8];

    /// Reads events, and waits for one while `waits` returns true. `blocks` tells why it does not.
    fn read(
        &self,
        to: &mut dyn Target,
        blocks: bool,
        waits: &dyn Fn() -> bool,
    ) -> Result<usize, Errno>;

    /// Returns true if there is something to read.
    fn is_ready(&self) -> bool;

    /// The number of bytes that may be read, if that is counted.
    fn available(&self) -> Option<u64> {
        None
    }

    /// The pipe whose reading end changes when that may have changed.
    fn pipe(&self) -> &Arc<Pipe<Metal>>;
}

impl OpenFile {
    /// What events are read from, if it is of the type `T`.
    pub fn special<T: Special>(&self) -> Option<&T> {
        match &self.inode().kind {
            Kind::Special(special) => {
                let any: &dyn Any = &**special;
                any.downcast_ref()
            }
            _ => None,
        }
    }
}
