//! Parts of recorded programs: how they announce their steps, and wait.

use ipc::Kernel;
use machine::Machine;
use std::ptr::from_ref;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed, Ordering::SeqCst};
use workloads::replay::Replay;

/// The steps that the parts of each task's program have announced. They are the host's, not the
/// machine's: a replay's own order costs no line's transfer.
pub struct Steps {
    words: Box<[Announced]>,
    parts: usize,
}

/// A part's steps.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Announced {
    steps: AtomicU32,
    /// The number of parts that sleep, or are about to, until there are more.
    sleepers: AtomicU32,
}

impl Steps {
    /// Those of `tasks` tasks.
    pub fn new(tasks: usize, replay: &Replay) -> Self {
        let parts = replay.parts.len();
        let words = (0..tasks * parts).map(|_| Announced::default());
        Steps {
            words: words.collect(),
            parts,
        }
    }

    pub fn of(&self, task: usize, part: u32) -> &Announced {
        &self.words[task * self.parts + part as usize]
    }

    pub fn clear(&self, task: usize) {
        for part in &self.words[task * self.parts..][..self.parts] {
            part.steps.store(0, Relaxed);
        }
    }
}

/// Sequentially consistent throughout: either who announces sees the sleeper, or the sleeper the
/// steps.
impl Announced {
    /// Announces `steps`; returns true if there may be sleepers to be woken.
    pub fn announce(&self, steps: u32) -> bool {
        self.steps.store(steps, SeqCst);
        self.sleepers.load(SeqCst) > 0
    }

    pub fn wake<M: Machine>(&self, kernel: &impl Kernel<M>) {
        kernel.wake(self.key(), usize::MAX);
    }

    /// Returns true if `steps` have been announced.
    pub fn has(&self, steps: u32) -> bool {
        self.steps.load(SeqCst) >= steps
    }

    /// Sleeps until `steps` have been announced.
    pub fn wait<M: Machine>(&self, kernel: &impl Kernel<M>, steps: u32) {
        self.sleepers.fetch_add(1, SeqCst);
        while !self.has(steps) {
            kernel.sleep(self.key(), || !self.has(steps));
        }
        self.sleepers.fetch_sub(1, SeqCst);
    }

    fn key(&self) -> *const () {
        from_ref(self).cast()
    }
}
