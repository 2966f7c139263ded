//! What each watched thread did.

use super::{Account, Sleep, StackId};
use crate::unwind::Word;
use std::collections::HashMap;

/// What a thread off its CPU waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Cause {
    /// A kernel lock, by the stack and the flags with which the wait began.
    Lock(StackId, u32),
    /// Anything else, with the word that may be a futex.
    Sleep(StackId, Option<Word>),
    /// Anything else, at a place that was not sampled.
    Unsampled,
    /// Sleep that began before the recording.
    Early(Sleep),
    Cpu,
}

/// A thread's time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    pub pid: u32,
    /// Its process's command.
    pub process: String,
    /// Its own name at the end, if it has one and is alive.
    pub name: Option<String>,
    pub samples: u64,
    /// Nanoseconds off CPU.
    pub off: HashMap<Cause, u64>,
}

impl Account {
    /// Counts a sample of a thread.
    pub(super) fn ran(&mut self, tid: u32) {
        if let Some(spent) = self.spent(tid) {
            spent.samples += 1;
        }
    }

    /// Counts time off CPU of a thread.
    pub(super) fn was_off(&mut self, tid: u32, cause: Cause, nanoseconds: u64) {
        if let Some(spent) = self.spent(tid) {
            *spent.off.entry(cause).or_default() += nanoseconds;
        }
    }

    /// Notes what the threads that were told apart are called now.
    pub(super) fn name_threads(&mut self) {
        for (&tid, spent) in &mut self.totals.threads {
            spent.name = self.family.name(tid).map(str::to_owned);
        }
    }

    /// The time of a watched thread, if threads are told apart.
    fn spent(&mut self, tid: u32) -> Option<&mut Spent> {
        if !self.by_thread {
            return None;
        }
        let (pid, process) = self.family.of(tid)?;
        Some(self.totals.threads.entry(tid).or_insert_with(|| Spent {
            pid,
            process: process.name.clone(),
            ..Spent::default()
        }))
    }
}
