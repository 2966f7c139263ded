//! Holds of `mmap_lock`, and how long watched threads waited because of each.
//!
//! An acquisition names the address space, a wait the lock in it. The distance between the two
//! depends on the kernel; it is learnt from a thread that waits and then acquires.

use super::Span;
use crate::event::Thread;
use std::collections::HashMap;
use std::mem::take;

/// Bytes of an address space's structure at most.
const SPACE: u64 = 4096;
/// Steps that are kept until the distance is known.
const EARLY: usize = 1 << 14;

/// What happens to the locks of address spaces.
#[derive(Debug)]
pub(crate) enum Step {
    /// A watched thread begins to wait.
    Wait {
        tid: u32,
        lock: u64,
    },
    /// A watched thread's wait ends.
    Waited {
        tid: u32,
        lock: u64,
    },
    /// A thread has the lock, by its kernel stack `addresses`.
    Acquire {
        thread: Thread,
        space: u64,
        write: bool,
        is_watched: bool,
        addresses: Box<[u64]>,
    },
    Release {
        tid: u32,
        space: u64,
    },
    /// The kernel stack of a thread, whatever it holds.
    Stack {
        tid: u32,
        addresses: Box<[u64]>,
    },
}

/// A hold of the lock of one address space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    pub thread: Thread,
    pub write: bool,
    pub is_watched: bool,
    /// The kernel stack that acquired it.
    pub acquired: Box<[u64]>,
    /// Kernel stacks during the hold: of samples, and where the thread went off CPU.
    pub stacks: Vec<Box<[u64]>>,
    /// How long it lasted so far, and in the interval.
    pub span: Span,
    /// The time that watched threads waited meanwhile, added up.
    pub waited: u64,
    space: u64,
    since: u64,
}

impl Hold {
    /// Adds the part of a wait that lies within the hold, up to `time`.
    fn made_wait(&mut self, wait: &Wait, time: u64) {
        self.waited += time.saturating_sub(wait.since.max(self.since));
    }

    /// Sets how long it has lasted at `time`, at which it ends if `ended`.
    fn end(&mut self, time: u64, ended: bool) {
        let part = time.saturating_sub(self.since);
        let whole = self.span.whole + part;
        self.span = Span { part, whole, ended };
    }

    /// Takes the part up to `time`, at which the hold goes on.
    fn cut(&mut self, time: u64, ended: bool) -> Hold {
        self.end(time, ended);
        let part = self.clone();
        (self.since, self.waited) = (time, 0);
        self.stacks.clear();
        part
    }
}

#[derive(Debug)]
struct Wait {
    tid: u32,
    since: u64,
}

/// Holds and waits without an end so far.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    /// The time that watched threads waited for these locks, added up.
    pub waited: u64,
    /// How far the lock lies behind the begin of its address space, once known.
    distance: Option<u64>,
    early: Vec<(u64, Step)>,
    /// The last lock that a thread waited for, until the distance is known.
    ended: HashMap<u32, u64>,
    /// By thread.
    held: HashMap<u32, Vec<Hold>>,
    /// By lock.
    waits: HashMap<u64, Vec<Wait>>,
}

impl Holds {
    /// Takes the next step. Returns the holds that ended by it and that a watched thread waited
    /// for.
    pub fn take(&mut self, time: u64, step: Step) -> Vec<Hold> {
        match self.distance {
            Some(distance) => Vec::from_iter(self.apply(distance, time, step)),
            None => self.learn(time, step),
        }
    }

    /// Returns true if a thread is known to hold a lock.
    pub fn has_holder(&self, tid: u32) -> bool {
        self.held.get(&tid).is_some_and(|held| !held.is_empty())
    }

    /// Forgets everything open, because ends will not be seen.
    pub fn forget(&mut self) {
        self.early.clear();
        self.ended.clear();
        self.held.clear();
        self.waits.clear();
    }

    /// Forgets a thread that is gone.
    pub fn exit(&mut self, tid: u32) {
        self.ended.remove(&tid);
        self.held.remove(&tid);
        self.waits
            .values_mut()
            .for_each(|waits| waits.retain(|wait| wait.tid != tid));
    }

    /// The holds up to `time`, at which all ends if `ended`, that a watched thread waited for.
    pub fn cut(&mut self, time: u64, ended: bool) -> Vec<Hold> {
        let Some(distance) = self.distance else {
            return Vec::new();
        };
        let mut waits = take(&mut self.waits);
        for (lock, waits) in &mut waits {
            for wait in waits {
                self.blame(lock.wrapping_sub(distance), wait, time);
                wait.since = time;
            }
        }
        let open = self.held.values_mut().flatten();
        let cut = open.map(|hold| hold.cut(time, ended));
        let cut = cut.filter(|hold| hold.waited > 0).collect();
        match ended {
            true => self.held.clear(),
            false => self.waits = waits,
        }
        cut
    }

    /// Keeps a step until one shows the distance, and then takes all that were kept.
    fn learn(&mut self, time: u64, step: Step) -> Vec<Hold> {
        match &step {
            Step::Waited { tid, lock } => {
                self.ended.insert(*tid, *lock);
            }
            Step::Acquire { thread, space, .. } => {
                let lock = self.ended.remove(&thread.tid);
                let distance = lock.and_then(|lock| lock.checked_sub(*space));
                self.distance = distance.filter(|&distance| distance < SPACE);
            }
            _ => {}
        }
        if self.early.len() == EARLY {
            self.early.drain(..EARLY / 2);
        }
        self.early.push((time, step));
        let Some(distance) = self.distance else {
            return Vec::new();
        };
        let early = take(&mut self.early).into_iter();
        early
            .filter_map(|(time, step)| self.apply(distance, time, step))
            .collect()
    }

    fn apply(&mut self, distance: u64, time: u64, step: Step) -> Option<Hold> {
        match step {
            Step::Wait { tid, lock } => {
                let waits = self.waits.entry(lock).or_default();
                waits.push(Wait { tid, since: time });
                None
            }
            Step::Waited { tid, lock } => {
                let waits = self.waits.get_mut(&lock)?;
                let at = waits.iter().position(|wait| wait.tid == tid)?;
                let wait = waits.swap_remove(at);
                if waits.is_empty() {
                    self.waits.remove(&lock);
                }
                self.blame(lock.wrapping_sub(distance), &wait, time);
                None
            }
            Step::Acquire {
                thread,
                space,
                write,
                is_watched,
                addresses,
            } => {
                // A second acquisition by the holder is a downgrade.
                let before = self.release(thread.tid, space, distance, time);
                self.held.entry(thread.tid).or_default().push(Hold {
                    thread,
                    write,
                    is_watched,
                    acquired: addresses,
                    stacks: Vec::new(),
                    span: Span {
                        part: 0,
                        whole: 0,
                        ended: false,
                    },
                    waited: 0,
                    space,
                    since: time,
                });
                before
            }
            Step::Release { tid, space } => self.release(tid, space, distance, time),
            Step::Stack { tid, addresses } => {
                for hold in self.held.get_mut(&tid).into_iter().flatten() {
                    hold.stacks.push(addresses.clone());
                }
                None
            }
        }
    }

    fn release(&mut self, tid: u32, space: u64, distance: u64, time: u64) -> Option<Hold> {
        let held = self.held.get_mut(&tid)?;
        let at = held.iter().position(|hold| hold.space == space)?;
        let hold = held.swap_remove(at);
        self.ended(hold, distance, time)
    }

    /// The hold with its end at `time`, if a watched thread waited for it.
    fn ended(&self, mut hold: Hold, distance: u64, time: u64) -> Option<Hold> {
        hold.end(time, true);
        let waits = self.waits.get(&hold.space.wrapping_add(distance));
        for wait in waits.into_iter().flatten() {
            hold.made_wait(wait, time);
        }
        (hold.waited > 0).then_some(hold)
    }

    /// Adds a wait that ended at `time` to each hold of its lock that is open then.
    fn blame(&mut self, space: u64, wait: &Wait, time: u64) {
        self.waited += time.saturating_sub(wait.since);
        let held = self.held.values_mut().flatten();
        for hold in held.filter(|hold| hold.space == space) {
            hold.made_wait(wait, time);
        }
    }
}

#[cfg(test)]
mod tests;
