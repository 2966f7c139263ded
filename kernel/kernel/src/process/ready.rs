//! Signals when a file is ready (`O_ASYNC`): a task waits at a set of interests in such files, and
//! sends a signal to the owner of each that changes.

use super::{Info, PROCESSES, Signal, group};
use crate::errno::Errno;
use crate::fs::{Epoll, Interest, OpenFile};
use crate::single::Single;
use crate::system::{Lock, system};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use core::sync::atomic::Ordering;
use ipc::Kernel;
use linux_raw_sys::general::{FASYNC, POLLIN, POLLOUT};
use machine::{Clock, Scheduler};
use metal::Metal;

/// The files whose owners get signals.
pub static READY: Single<Ready> = Single::new();

/// Files, and what happens there.
pub struct Ready {
    interests: Epoll,
    /// The files by the words of their interests: their addresses.
    files: Lock<BTreeMap<u64, Weak<OpenFile>>>,
}

/// The number of the most events that are taken at once.
const MOST: usize = 64;
/// How long the task sleeps when memory is short, in nanoseconds.
const NAP: u64 = 10_000_000;
/// Each change counts once.
const ON_CHANGES: u32 = 1 << 31;

impl Ready {
    /// No files.
    pub fn new() -> Result<Self, Errno> {
        Ok(Ready {
            interests: Epoll::new()?,
            files: Lock::default(),
        })
    }

    /// Signals to the file's owner begin, or end.
    pub fn watch(&self, file: &Arc<OpenFile>, is_on: bool) -> Result<(), Errno> {
        let word = Arc::as_ptr(file).addr() as u64;
        let wanted = if file.reads() { POLLIN } else { POLLOUT };
        let mut interest = Interest::new(0, file, ON_CHANGES | wanted, word);
        interest.skip_present(file)?;
        if !is_on {
            file.flags.fetch_and(!FASYNC, Ordering::Relaxed);
            self.files.lock().remove(&word);
            // There is none if signals have not begun.
            let _ = self.interests.remove(&interest);
            return Ok(());
        }
        if file.flags.fetch_or(FASYNC, Ordering::Relaxed) & FASYNC != 0 {
            return Ok(());
        }
        let mut files = self.files.lock();
        files.retain(|_, file| file.strong_count() > 0);
        files.insert(word, Arc::downgrade(file));
        drop(files);
        match self.interests.add(interest) {
            Err(Errno::EXIST) => Ok(()),
            added => added,
        }
    }

    /// The code of the task.
    fn run(&self) {
        loop {
            // Without memory to wait there, it looks again later.
            let happened = self.interests.wait(MOST, || true).unwrap_or_default();
            for one in &happened {
                let file = self.files.lock().get(&one.data).and_then(Weak::upgrade);
                if let Some(file) = file {
                    tell(file.owner.load(Ordering::Relaxed));
                }
            }
            if happened.is_empty() {
                system().kernel.sleep_until(Metal::now() + NAP);
            }
        }
    }
}

/// Sends the signal to a process, or to a group, whose number is negative.
fn tell(owner: i32) {
    let info = Info::kernel(Signal::IO);
    match owner {
        0 => {}
        1.. => {
            if let Some(process) = PROCESSES.get(owner as u32) {
                // This fails only for queued signals.
                let _ = process.send(info);
            }
        }
        _ => group(owner.unsigned_abs()).for_each(|process| {
            let _ = process.send(info);
        }),
    }
}

/// Starts the task.
pub fn begin() {
    system().scheduler.start(Box::new(|| READY.run()));
}
