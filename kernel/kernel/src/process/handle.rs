//! Processes as files (`pidfd`).

use super::{PROCESSES, Process};
use crate::errno::Errno;
use crate::fs::{ARRIVALS, Special, Target, Waiting};
use alloc::sync::Arc;
use core::sync::atomic::Ordering;
use ipc::Pipe;
use metal::Metal;

/// A process as a file, which is ready when the process has ended.
pub struct Handle {
    process: Arc<Process>,
    _waiting: Waiting,
}

impl Handle {
    /// A file for the process.
    pub fn new(process: Arc<Process>) -> Self {
        let _waiting = ARRIVALS.begin();
        Handle { process, _waiting }
    }

    /// The process.
    ///
    /// # Errors
    /// If it has ended, and its parent knows.
    pub fn process(&self) -> Result<&Arc<Process>, Errno> {
        match self.is_forgotten() {
            true => Err(Errno::SRCH),
            false => Ok(&self.process),
        }
    }

    fn is_forgotten(&self) -> bool {
        let same = PROCESSES.get(self.process.pid);
        same.is_none_or(|process| !Arc::ptr_eq(&process, &self.process))
    }
}

impl Special for Handle {
    fn name(&self) -> &'static [u8] {
        b"anon_inode:[pidfd]"
    }

    fn read(&self, _: &mut dyn Target, _: bool, _: &dyn Fn() -> bool) -> Result<usize, Errno> {
        Err(Errno::INVAL)
    }

    fn is_ready(&self) -> bool {
        self.process.has_finished.load(Ordering::Acquire)
            && (self.process.family.has_ended() || self.is_forgotten())
    }

    fn pipe(&self) -> &Arc<Pipe<Metal>> {
        ARRIVALS.pipe()
    }
}
