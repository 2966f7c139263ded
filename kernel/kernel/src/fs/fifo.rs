//! FIFOs: pipes, with or without names.
//!
//! A FIFO has a pipe while any file has it open. A thread that opens one end waits until the other
//! is open, or has been opened meanwhile: each end counts how often it was opened.

use super::Inode;
use super::open::PipeEnd;
use crate::errno::Errno;
use crate::system::{Lock, is_disturbed, system};
use alloc::sync::Arc;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};
use ipc::{End, Kernel, Pipe};
use metal::Metal;

/// A FIFO.
pub struct Fifo {
    state: Lock<State>,
    /// How often each end has been opened. Written under the lock; the lock of the sleepers orders
    /// it: relaxed.
    opened: [AtomicU32; 2],
    /// True if it has a name. Opening one without a name does not wait.
    is_named: bool,
}

struct State {
    /// The number of open files that have each end.
    users: [u32; 2],
    /// The pipe, while there are such files.
    pipe: Option<Arc<Pipe<Metal>>>,
}

/// The ends that a file has.
pub type Ends = [bool; 2];

const BOTH: [End; 2] = [End::Reading, End::Writing];

impl Fifo {
    /// A FIFO with a name that no file has open.
    pub fn new() -> Self {
        Self::with_name(true)
    }

    /// A FIFO without a name that no file has open.
    pub fn unnamed() -> Self {
        Self::with_name(false)
    }

    fn with_name(is_named: bool) -> Self {
        Fifo {
            is_named,
            state: Lock::new(State {
                users: [0; 2],
                pipe: None,
            }),
            opened: [const { AtomicU32::new(0) }; 2],
        }
    }

    /// Returns true if the FIFO has a name.
    pub fn is_named(&self) -> bool {
        self.is_named
    }

    /// Opens `ends` of the FIFO `inode`. Waits for the other end, if that is not among them. If
    /// `waits` is false, it does not wait, and a writer needs a reader.
    pub fn open(&self, inode: &Arc<Inode>, ends: Ends, waits: bool) -> Result<PipeEnd, Errno> {
        let other = ends.map(|has| !has).into_iter().position(|lacks| lacks);
        let (pipe, seen) = {
            let mut state = self.state.lock();
            let is_alone = self.is_named && other.is_some_and(|other| state.users[other] == 0);
            if is_alone && !waits && ends[End::Writing as usize] {
                return Err(Errno::NXIO);
            }
            let pipe = self.join(&mut state, ends)?;
            let waited = other.filter(|_| is_alone && waits);
            (pipe, waited.map(|end| (end, self.count(end))))
        };
        let kernel = &system().kernel;
        kernel.wake(self.sleepers(), usize::MAX);
        let end = if ends[End::Reading as usize] {
            End::Reading
        } else {
            End::Writing
        };
        let file = PipeEnd::of_fifo(pipe, end, inode.clone(), ends);
        if let Some((end, seen)) = seen {
            while self.count(end) == seen {
                if is_disturbed() {
                    return Err(Errno::INTR);
                }
                kernel.sleep(self.sleepers(), || self.count(end) == seen);
            }
        }
        Ok(file)
    }

    /// Adds a file with these `ends`; returns the pipe.
    fn join(&self, state: &mut State, ends: Ends) -> Result<Arc<Pipe<Metal>>, Errno> {
        let kernel = &system().kernel;
        let pipe = match &state.pipe {
            Some(pipe) => pipe.clone(),
            None => {
                let pipe = Arc::new(Pipe::try_new().map_err(|_| Errno::NFILE)?);
                BOTH.iter().for_each(|end| pipe.close(kernel, *end));
                state.pipe.insert(pipe).clone()
            }
        };
        for end in BOTH.into_iter().filter(|end| ends[*end as usize]) {
            let users = &mut state.users[end as usize];
            *users += 1;
            if *users == 1 {
                pipe.open(kernel, end);
            }
            self.opened[end as usize].fetch_add(1, Ordering::Relaxed);
        }
        Ok(pipe)
    }

    /// Removes a file with these ends, which is closed.
    pub fn close(&self, ends: Ends) {
        let mut state = self.state.lock();
        for end in BOTH.into_iter().filter(|end| ends[*end as usize]) {
            let users = &mut state.users[end as usize];
            *users -= 1;
            if let (0, Some(pipe)) = (*users, &state.pipe) {
                pipe.close(&system().kernel, end);
            }
        }
        if state.users == [0; 2] {
            state.pipe = None;
        }
    }

    fn count(&self, end: usize) -> u32 {
        self.opened[end].load(Ordering::Relaxed)
    }

    fn sleepers(&self) -> *const () {
        ptr::from_ref(self).cast()
    }
}
