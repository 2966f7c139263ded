//! A process's limits (`setrlimit`).
//!
//! The space keeps limits of memory, the descriptors keep the limit of their number, and [`room`]
//! checks the size of files. The other limits have no effect here: they do not bind root, which all
//! users are, or there is nothing to limit.

use super::{Info, Process, Signal, with_current};
use crate::errno::Errno;
use crate::fs::{MOST, caller};
use crate::system::Space;
use linux_raw_sys::general::*;

/// No limit.
pub const NONE: u64 = u64::MAX;

/// A limit in force, and how far the process may raise it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The limit in force.
    pub soft: u64,
    /// The most to which it may be raised.
    pub hard: u64,
}

impl Limit {
    /// The limit in force, if there is one.
    fn bytes(self) -> Option<usize> {
        (self.soft != NONE).then_some(self.soft as usize)
    }
}

/// The limits that a space keeps.
const MEMORY: [(u32, vm::Limit); 4] = [
    (RLIMIT_AS, vm::Limit::AddressSpace),
    (RLIMIT_DATA, vm::Limit::Data),
    (RLIMIT_MEMLOCK, vm::Limit::Locked),
    (RLIMIT_STACK, vm::Limit::Stack),
];

/// The limits of a process, by `RLIMIT_…`.
#[derive(Clone)]
pub struct Limits([Limit; RLIM_NLIMITS as usize]);

impl Limits {
    /// The limits of the first process: those of Linux, unless the VM has others.
    pub fn new() -> Self {
        let unlimited = Limit {
            soft: NONE,
            hard: NONE,
        };
        let mut limits = Limits([unlimited; _]);
        let mut set =
            |resource: u32, soft, hard| limits.0[resource as usize] = Limit { soft, hard };
        set(RLIMIT_STACK, 8 << 20, NONE);
        // There are no dumps.
        set(RLIMIT_CORE, 0, NONE);
        set(RLIMIT_NOFILE, 1024, 4096);
        // There are no priorities, and no message queues.
        set(RLIMIT_NICE, 0, 0);
        set(RLIMIT_RTPRIO, 0, 0);
        set(RLIMIT_MSGQUEUE, 0, 0);
        limits
    }

    /// Makes a new space keep these limits.
    pub fn set(&self, space: &Space) -> Result<(), Errno> {
        for (resource, of_memory) in MEMORY {
            space.set_limit(of_memory, self.get(resource as usize)?.bytes())?;
        }
        Ok(())
    }

    /// The limit of a resource.
    pub fn get(&self, resource: usize) -> Result<Limit, Errno> {
        self.0.get(resource).copied().ok_or(Errno::INVAL)
    }
}

impl Process {
    /// Changes a limit, and returns the old one.
    pub fn set_limit(&self, resource: usize, limit: Limit) -> Result<Limit, Errno> {
        // Held throughout, so that the keeper of the limit has the same value.
        let mut limits = self.limits.lock();
        let before = limits.get(resource)?;
        if limit.soft > limit.hard {
            return Err(Errno::INVAL);
        }
        match resource as u32 {
            _ if limit.hard > before.hard && !caller().is_root() => return Err(Errno::PERM),
            RLIMIT_NOFILE if limit.hard > MOST as u64 => return Err(Errno::PERM),
            RLIMIT_NOFILE => self.files.lock().limit(limit.soft as usize),
            resource => {
                if let Some((_, of_memory)) = MEMORY.iter().find(|(it, _)| *it == resource) {
                    self.space()?.set_limit(*of_memory, limit.bytes())?;
                }
            }
        }
        limits.0[resource] = limit;
        Ok(before)
    }
}

/// The number of the `bytes` that the calling process may write to a file from `offset` on. If it
/// may write none, it gets a signal.
pub fn room(offset: u64, bytes: usize) -> Result<usize, Errno> {
    match file_size()?.saturating_sub(offset) {
        0 => Err(too_large()),
        room => Ok(usize::try_from(room).map_or(bytes, |room| room.min(bytes))),
    }
}

/// Fails if the calling process may not make a file of `size` bytes.
pub fn refuse_size(size: u64) -> Result<(), Errno> {
    if size > file_size()? {
        Err(too_large())
    } else {
        Ok(())
    }
}

fn file_size() -> Result<u64, Errno> {
    with_current(|thread| match thread {
        Some(thread) => Ok(thread
            .process
            .limits
            .lock()
            .get(RLIMIT_FSIZE as usize)?
            .soft),
        None => Ok(NONE),
    })
}

/// Sends the signal, and returns the error.
fn too_large() -> Errno {
    with_current(|thread| {
        if let Some(thread) = thread {
            let info = Info::user(Signal::FILE_SIZE, &thread.process);
            // The thread exists, and this fails only for queued signals.
            let _ = thread.process.send_to(thread.tid(), info);
        }
    });
    Errno::FBIG
}
