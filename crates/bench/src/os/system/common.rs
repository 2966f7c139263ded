//! The objects that the tasks of a run share: made before them, so that processes inherit them.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsRawFd;
use std::ptr;
use workloads::Descriptor;

/// A pipe and a page for each task.
pub struct Common {
    pipes: Vec<(PipeReader, PipeWriter)>,
    /// The address of the pages, for all of the tasks.
    memory: *mut libc::c_void,
    bytes: usize,
}

// SAFETY: the address of memory that any thread may use, as long as this lives.
unsafe impl Send for Common {}
// SAFETY: the fields are only read.
unsafe impl Sync for Common {}

impl Common {
    /// Makes the state that `tasks` tasks share.
    pub fn new(tasks: usize) -> io::Result<Self> {
        let pipes = (0..tasks).map(|_| io::pipe()).collect::<io::Result<_>>()?;
        let bytes = tasks * super::page_size();
        // SAFETY: a new mapping at an address of the kernel's choice.
        let memory = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Common {
            pipes,
            memory,
            bytes,
        })
    }

    pub fn pipe(&self, task: usize) -> Option<[Descriptor; 2]> {
        let (reader, writer) = self.pipes.get(task)?;
        Some([reader.as_raw_fd(), writer.as_raw_fd()].map(Descriptor))
    }

    /// The address of the pages.
    pub fn memory(&self) -> usize {
        self.memory.expose_provenance()
    }
}

impl Drop for Common {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`; tasks that used it are gone.
        unsafe { libc::munmap(self.memory, self.bytes) };
    }
}
