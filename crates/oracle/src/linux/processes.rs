//! The real processes, and the communication with them.

use super::area::{Area, Command, Reply, Slot};
use super::worker;
use crate::address::PAGE;
use crate::step::{PROCESSES, ProcessId};
use crate::system::Broken;
use std::collections::BTreeMap;
use std::io::PipeWriter;
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};
use std::{fs, io, ptr};

/// The time that a call may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// The interval of checks that the process is alive.
const LOOK: Duration = Duration::from_millis(200);
/// The keeper's slot; those of the other processes follow.
const KEEPER: usize = 0;

/// The keeper and the processes of a sequence. Dropping it ends them.
pub struct Processes {
    area: Area,
    /// The process from which all others are forked.
    keeper: libc::pid_t,
    alive: BTreeMap<ProcessId, libc::pid_t>,
    /// Nobody writes to it. It is closed when this process ends, which shows at the other end.
    _life: PipeWriter,
}

impl Processes {
    /// Starts the keeper, which closes all descriptors except the standard ones and `kept`.
    pub fn new(kept: impl Iterator<Item = RawFd>) -> Result<Self, Broken> {
        let area = Area::new(1 + usize::from(PROCESSES))?;
        let (driver, life) = io::pipe().map_err(Broken::host("pipe"))?;
        let kept: Vec<_> = kept.chain([driver.as_raw_fd()]).collect();
        // SAFETY: the child only makes system calls and serves commands until it exits.
        match unsafe { libc::fork() } {
            0 => {
                worker::settle(&kept);
                worker::serve(&area, KEEPER, driver.as_raw_fd())
            }
            -1 => Err(Broken::host("fork")(io::Error::last_os_error())),
            keeper => Ok(Processes {
                area,
                keeper,
                alive: BTreeMap::new(),
                _life: life,
            }),
        }
    }

    /// Moves the keeper's break to the end of a page and returns it: the heaps of the sequences'
    /// processes begin there.
    pub fn align_heap(&self) -> Result<u64, Broken> {
        let brk = |to| self.ask_slot(KEEPER, Command::Call(libc::SYS_brk, [to, 0, 0, 0, 0, 0]));
        let Some(Reply::Value(now)) = brk(0) else {
            return Err(Broken::Own("the keeper process does not respond".into()));
        };
        let aligned = now.cast_unsigned().next_multiple_of(PAGE);
        match brk(aligned) {
            Some(Reply::Value(end)) if end.cast_unsigned() == aligned => Ok(aligned),
            other => Err(Broken::Own(format!("brk to {aligned:#x}: {other:?}"))),
        }
    }

    /// Ends all processes of the last sequence and starts process 0 of the next.
    pub fn begin(&mut self) -> Result<(), Broken> {
        let alive: Vec<_> = self.alive.keys().copied().collect();
        alive
            .into_iter()
            .try_for_each(|process| self.end(process))?;
        let pid = self.area_fork(KEEPER, 0);
        self.born(0, pid)
    }

    /// Lets `parent` fork `child`.
    pub fn fork(&mut self, parent: ProcessId, child: ProcessId) -> Result<(), Broken> {
        let pid = self.area_fork(index(parent), child);
        self.born(child, pid)
    }

    pub fn end(&mut self, process: ProcessId) -> Result<(), Broken> {
        self.ask(process, Command::Exit, "exit")?;
        self.alive.remove(&process);
        Ok(())
    }

    /// Sends a command to a process and waits for the answer. An error names `step`.
    pub fn ask(
        &self,
        process: ProcessId,
        command: Command,
        step: impl ToString,
    ) -> Result<Reply, Broken> {
        let silent = || Broken::Silent {
            process,
            step: step.to_string(),
        };
        self.ask_slot(index(process), command).ok_or_else(silent)
    }

    /// A process's mailbox.
    pub fn slot(&self, process: ProcessId) -> &Slot {
        self.area.slot(index(process))
    }

    /// `/proc/PID/maps` of a process.
    pub fn maps(&self, process: ProcessId) -> Result<String, Broken> {
        read_maps(self.alive[&process])
    }

    /// `/proc/PID/maps` of the keeper.
    pub fn keepers_maps(&self) -> Result<String, Broken> {
        read_maps(self.keeper)
    }

    fn area_fork(&self, parent: usize, child: ProcessId) -> Option<Reply> {
        self.slot(child).reset();
        self.ask_slot(parent, Command::Fork(index(child)))
    }

    fn born(&mut self, child: ProcessId, pid: Option<Reply>) -> Result<(), Broken> {
        match pid {
            Some(Reply::Value(pid)) if pid > 0 => {
                self.alive.insert(child, pid as libc::pid_t);
                Ok(())
            }
            Some(Reply::Value(errno)) => {
                let errno = io::Error::from_raw_os_error(-errno as i32);
                Err(Broken::host("fork")(errno))
            }
            _ => Err(Broken::Own(format!("process {child} was not created"))),
        }
    }

    /// Sends a command to the process of a slot; `None` if it is dead or takes too long.
    fn ask_slot(&self, slot: usize, command: Command) -> Option<Reply> {
        let pid = match slot {
            KEEPER => self.keeper,
            slot => self.alive[&(slot as ProcessId - 1)],
        };
        let mailbox = self.area.slot(slot);
        mailbox.ask(command);
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(reply) = mailbox.answer(LOOK) {
                return Some(reply);
            }
            // SAFETY: signal 0 only checks that the process exists.
            let lives = unsafe { libc::kill(pid, 0) } == 0;
            if !lives || Instant::now() >= deadline {
                return None;
            }
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for pid in self.alive.values().chain([&self.keeper]) {
            // SAFETY: this program forked these processes. They have died early only after an
            // error, and then their numbers are most likely unused.
            unsafe { libc::kill(*pid, libc::SIGKILL) };
        }
        // SAFETY: the keeper is a child of this process, and only this call waits for it.
        unsafe { libc::waitpid(self.keeper, ptr::null_mut(), 0) };
    }
}

fn index(process: ProcessId) -> usize {
    usize::from(process) + 1
}

fn read_maps(pid: libc::pid_t) -> Result<String, Broken> {
    fs::read_to_string(format!("/proc/{pid}/maps")).map_err(Broken::host("/proc/PID/maps"))
}
