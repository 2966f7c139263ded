//! Smaller recordings: a span of time, or some of the threads.

mod numbers;
mod walk;

use crate::{Recording, What};
use std::ops::Range;
use walk::Walk;

impl Recording {
    /// What happened between two times, in nanoseconds, both included.
    ///
    /// Mappings that exist at `from` are [given](What::Given), without the pages that were touched
    /// before. A wait lasts at most since then, and a wait for a wake-up before is one for the time
    /// that it took. Threads and processes that do not exist in between are left out.
    pub fn cut(&self, from: u64, to: u64) -> Recording {
        let to = to.min(self.nanoseconds);
        let events = &self.events;
        let begin = events.partition_point(|event| event.at < from);
        let end = events.partition_point(|event| event.at <= to);
        let keep = self.exist(begin..end.max(begin));
        Walk::new(self, keep, begin..end.max(begin), from).part(to.saturating_sub(from))
    }

    /// What these threads did.
    ///
    /// What a process has mapped when the first of its threads that stay begins is
    /// [given](What::Given), and so are later calls of threads that are left out, where they make
    /// or change mappings that a thread that stays works on. A wait for a thread that is left out
    /// is one for the time that it took, and so is the birth by one.
    pub fn only(&self, threads: &[u32]) -> Recording {
        let mut keep = vec![false; self.threads.len()];
        for &thread in threads {
            if let Some(keep) = keep.get_mut(thread as usize) {
                *keep = true;
            }
        }
        Walk::new(self, keep, 0..self.events.len(), 0).part(self.nanoseconds)
    }

    /// Returns for each thread true if it exists in a span of the events.
    fn exist(&self, span: Range<usize>) -> Vec<bool> {
        let mut exist = vec![true; self.threads.len()];
        for event in &self.events[..span.start] {
            if event.what == What::Exit {
                exist[event.thread as usize] = false;
            }
        }
        for event in &self.events[span.end..] {
            if let What::Start { thread } | What::Fork { thread, .. } = event.what {
                exist[thread as usize] = false;
            }
        }
        exist
    }
}
