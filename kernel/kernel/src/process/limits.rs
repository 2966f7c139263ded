//! A process's limits (`setrlimit`).
//!
//! The space keeps limits of memory, the descriptors keep the limit of their number, and [`room`]
//! checks the size of files. The others limit nothing here: all users are root, whom they do not
//! bind, or there is nothing to limit.

use super::{Info, Process, Signal, with_current};
use crate::errno::Errno;
use crate::fs::MOST;
use crate::system::Space;
use linux_raw_sys::general::*;

/// No limit.
pub const NONE: u64 = u64::MAX;

/// A limit as it is now, and how far the process may raise it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The limit in force.
    pub soft: u64,
    /// The most that it may become.
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
    /// The first process's limits: as on Linux, unless the VM says otherwise.
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
        set(RLIMIT_NOFILE, 1024, MOST as u64);
        // There are no priorities, and no message queues.
        set(RLIMIT_NICE, 0, 0);
        set(RLIMIT_RTPRIO, 0, 0);
        set(RLIMIT_MSGQUEUE, 0, 0);
        limits
    }

    /// Makes a new space keep its limits.
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
        // Held throughout: so the keeper of the limit agrees with it.
        let mut limits = self.limits.lock();
        let before = limits.get(resource)?;
        if limit.soft > limit.hard {
            return Err(Errno::INVAL);
        }
        match resource as u32 {
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

/// How many of the `bytes` the calling process may write to a file from `offset` on; if none, it
/// gets a signal.
pub fn room(offset: u64, bytes: usize) -> Result<usize, Errno> {
    match file_size()?.saturating_sub(offset) {
        0 => Err(too_large()),
        room => Ok(usize::try_from(room).map_or(bytes, |room| room.min(bytes))),
    }
}

/// Refuses to make a file as large as `size`, if the calling process may not.
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

/// The signal, and the error.
fn too_large() -> Errno {
    with_current(|thread| {
        if let Some(thread) = thread {
            let info = Info::user(Signal::FILE_SIZE, &thread.process);
            // The thread is there, and one of these always finds room.
            let _ = thread.process.send_to(thread.tid(), info);
        }
    });
    Errno::FBIG
}
