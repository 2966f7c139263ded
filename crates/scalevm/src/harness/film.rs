//! A film that one task plays while others work.

use std::sync::{Mutex, PoisonError};
use workloads::{Counter, Error, Frame, System, Workload};

/// What the last task of a run plays, while the others run a workload.
#[derive(Debug)]
pub struct Film {
    /// What the others do.
    pub background: &'static Workload,
    /// How many frames there are.
    length: usize,
    /// What became of those that were due. Has room for all: a simulated CPU must not allocate what
    /// outlives its machine.
    frames: Mutex<Vec<Frame>>,
}

impl Film {
    /// A film of so many frames. It stays as long as the process, as jobs do.
    pub fn new(background: &'static Workload, length: usize) -> &'static Self {
        Box::leak(Box::new(Film {
            background,
            length,
            frames: Mutex::new(Vec::with_capacity(length)),
        }))
    }

    /// Plays it to its end, or until `tick` says stop.
    pub fn play<S: System>(&self, system: &mut S, tick: &Counter) -> Result<(), Error> {
        workloads::play(system, |frame| {
            let mut frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
            frames.push(frame);
            tick.add(1) && frames.len() < self.length
        })
    }

    /// Whether each frame has been shown or skipped.
    pub fn is_over(&self) -> bool {
        self.frames().len() >= self.length
    }

    /// What became of the frames so far.
    pub fn frames(&self) -> Vec<Frame> {
        let frames = self.frames.lock();
        frames.unwrap_or_else(PoisonError::into_inner).clone()
    }
}
