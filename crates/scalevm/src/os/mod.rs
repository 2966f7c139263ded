//! The kernel of this computer, through libc.
//!
//! Tasks are child processes or threads, pinned round-robin over cores or CPUs.
//! Their counters and what became of them lie in memory shared by all of them.
//! Nothing outlives the measurement: children are killed and reaped when it ends in
//! whatever way, and by the kernel itself should this process be killed.

pub mod places;
mod processes;
mod shared;
mod system;
mod threads;

#[cfg(test)]
mod tests;

use crate::harness::{Failure, Mode, Plan, Running, Target};
use places::Affinity;
use shared::Area;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use system::Linux;

/// The kernel of this computer as a target.
pub struct Os {
    /// Where tasks run.
    pub affinity: Affinity,
}

impl Target for Os {
    fn start(&self, plan: &Plan) -> Result<Box<dyn Running>, Failure> {
        self.start_in(plan, std::env::temp_dir())
    }
}

impl Os {
    /// As [`Target::start`], with the files in `directory`.
    fn start_in(&self, plan: &Plan, directory: PathBuf) -> Result<Box<dyn Running>, Failure> {
        let places = places::places(self.affinity).map_err(Failure::start("CPU affinity"))?;
        let area = Area::new(plan.tasks).map_err(Failure::start("shared memory"))?;
        let gate = Gate::new().map_err(Failure::start("pipe"))?;
        let system = Linux::new(directory);
        Ok(match plan.mode {
            Mode::Processes => Box::new(processes::start(plan, &places, area, &gate, &system)?),
            Mode::Threads => Box::new(threads::start(plan, &places, area, gate, &system)?),
        })
    }
}

/// Holds the tasks back until all have been created.
struct Gate {
    reader: PipeReader,
    writer: PipeWriter,
}

impl Gate {
    fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(Gate { reader, writer })
    }

    /// Waits until the gate is open. Allocates nothing, so a forked child may.
    fn pass(&self) {
        let mut poll = libc::pollfd {
            fd: self.reader.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one valid entry. A signal may end the wait early: wait again.
        while unsafe { libc::poll(&mut poll, 1, -1) } < 0 {}
    }

    /// Lets all tasks through: the byte is never read, so each of them sees it.
    fn open(&self) -> io::Result<()> {
        (&self.writer).write_all(&[1])
    }
}
