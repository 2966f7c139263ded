//! Adds up events in order of time.

mod blocked;
mod cut;
mod held;
mod holds;
mod stacks;
mod still;
mod tally;
mod tasks;
mod timeline;
mod waits;
mod woken;

pub(crate) use blocked::Waker;
pub(crate) use cut::Cut;
pub(crate) use held::Held;
pub(crate) use stacks::{Frame, Interner, Stack};
pub(crate) use still::Sleep;
pub(crate) use tally::{Span, Tally};
pub(crate) use tasks::{Cause, Spent};
pub(crate) use timeline::{Doing, Timeline};
pub(crate) use woken::Woken;

use crate::event::{Chain, Event, Stamped, Thread};
use crate::tasks::{Family, Files, Names};
use crate::unwind::Word;
use blocked::{Blocked, Place, Slept, is_asleep};
use cut::Told;
use held::HoldId;
use holds::{Holds, Step};
use std::collections::HashMap;
use still::Still;
use waits::{Waited, Waits};

/// The number of a stack.
pub(crate) type StackId = u32;

/// Everything seen, by stack.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    /// Samples of watched threads.
    pub samples: HashMap<StackId, u64>,
    /// The same, by CPU.
    pub cpus: HashMap<u32, u64>,
    /// Samples of watched threads outside any traced wait of their thread.
    pub loose: HashMap<StackId, u64>,
    /// Traced waits for kernel locks, by their flags at the beginning.
    pub waits: HashMap<(StackId, u32), Tally>,
    /// The part of these waits spent on a CPU, in nanoseconds.
    pub spun: HashMap<StackId, u64>,
    /// Times off CPU.
    pub asleep: HashMap<StackId, Tally>,
    /// Times off CPU in a system call, by the word of memory that is its first argument: the futex,
    /// if it is one.
    pub words: HashMap<(StackId, Word), Tally>,
    /// The same times off CPU and their causes, as far as the thread that ended them was seen.
    pub woken: HashMap<(StackId, Cause, Waker), Woken>,
    /// Times off CPU of threads that wanted to run.
    pub preempted: HashMap<StackId, Tally>,
    /// Times off CPU whose place was not sampled, by a stack without frames, and true if the thread
    /// wanted to run.
    pub unsampled: HashMap<(StackId, bool), Tally>,
    /// Time off CPU that began before the recording, in nanoseconds.
    pub early: HashMap<Sleep, u64>,
    /// What watched threads waited for when.
    pub timeline: Timeline,
    /// Holds of `mmap_lock` by any thread that watched threads waited for.
    pub holds: HashMap<HoldId, Held>,
    /// The time that watched threads waited for `mmap_lock` while holds were recorded.
    pub waited_for_holds: u64,
    /// The time for which holds were recorded, in nanoseconds; none if they cannot be.
    pub recorded_holds: Option<u64>,
    /// Samples of threads that are not watched.
    pub foreign: u64,
    /// Samples of the recorder itself.
    pub own: u64,
    /// Records that were read.
    pub taken: u64,
    /// Records for which the kernel had no room.
    pub lost: u64,
    /// Begins of waits without an end, ends without a begin, and times off CPU whose end was not
    /// seen.
    pub unpaired: u64,
    /// How often the kernel throttled sampling.
    pub throttled: u64,
    /// Nanoseconds that the watched threads lived, added up.
    pub lived: u64,
    /// What each watched thread did, if threads are told apart.
    pub threads: HashMap<u32, Spent>,
}

/// Turns events into totals.
#[derive(Debug, Default)]
pub(crate) struct Account {
    pub family: Family,
    pub files: Files,
    pub stacks: Interner,
    pub totals: Totals,
    /// True if switches are seen: then so is how long a new thread waits for its first turn on a
    /// CPU.
    pub sees_switches: bool,
    /// True if threads are told apart.
    pub by_thread: bool,
    waits: Waits,
    /// Where threads are that are about to go off their CPUs.
    leaving: HashMap<u32, Place>,
    blocked: Blocked,
    still: Still,
    holds: Holds,
    /// Since when holds are recorded; none if they are not.
    holds_since: Option<u64>,
    names: Names,
    /// The watched threads that are alive, and since when.
    living: HashMap<u32, u64>,
    began: u64,
    told: Told,
}

impl Account {
    /// An account of `family`, whose files are numbered by `files`, starting at `began`.
    pub fn new(family: Family, files: Files, began: u64) -> Account {
        Account {
            living: family.all_threads().map(|tid| (tid, began)).collect(),
            family,
            files,
            began,
            totals: Totals {
                timeline: Timeline::new(began),
                ..Totals::default()
            },
            ..Account::default()
        }
    }

    /// Counts the sleep of threads that slept when they were found, which needs switches.
    pub fn count_sleepers(&mut self) {
        self.still = Still::of(self.family.take_asleep());
    }

    /// Returns true if no watched thread is alive.
    pub fn is_over(&self) -> bool {
        self.living.is_empty()
    }

    /// Watches one more process; `time` is that of the last events. Returns its threads.
    pub fn join(&mut self, pid: u32, time: u64) -> Vec<u32> {
        self.family.meet(pid, &mut self.files);
        // Sleep counts from the beginning of the recording, when these were not watched.
        drop(self.family.take_asleep());
        let threads = self.family.threads(pid);
        self.living.extend(threads.iter().map(|&tid| (tid, time)));
        threads
    }

    /// Watches a process no longer.
    pub fn leave(&mut self, pid: u32) {
        for tid in self.family.threads(pid) {
            self.living.remove(&tid);
        }
        self.family.forget(pid);
    }

    /// Excludes the recorder's own thread `tid`.
    pub fn ignore(&mut self, tid: u32) {
        self.family.ignore(tid);
        self.living.remove(&tid);
    }

    /// Takes the next event; none is older than its predecessor.
    pub fn take(&mut self, Stamped { time, event }: Stamped) {
        self.totals.taken += 1;
        if let Some((tid, sleep)) = self.still.ended_by(&event) {
            self.slept_on(tid, sleep, time);
        }
        match event {
            Event::Sample { thread, cpu, chain } => {
                self.totals.unpaired += u64::from(self.blocked.runs(thread.tid));
                self.seen(thread.tid, &chain, time);
                match self.stack(thread, chain) {
                    Some(stack) => {
                        *self.totals.cpus.entry(cpu).or_default() += 1;
                        self.sampled(thread, stack, time);
                    }
                    None if self.family.ignores(thread.tid) => self.totals.own += 1,
                    None => self.totals.foreign += 1,
                }
            }
            Event::Begin {
                thread,
                lock,
                flags,
                chain,
            } => {
                if let Some(stack) = self.stack(thread, chain) {
                    if waits::is_rwsem(flags) {
                        let tid = thread.tid;
                        self.step(time, Step::Wait { tid, lock });
                    }
                    let ended = self.waits.begin(thread.tid, lock, flags, stack, time);
                    self.abandoned(ended);
                }
            }
            Event::End { thread, lock } => {
                if self.family.watched(thread).is_some() {
                    let tid = thread.tid;
                    self.step(time, Step::Waited { tid, lock });
                    self.ended(tid, lock, time);
                }
            }
            Event::Leave {
                thread,
                state,
                chain,
            } => {
                if self.holds.has_holder(thread.tid) {
                    self.seen(thread.tid, &chain, time);
                }
                self.leaves(thread, state, chain);
            }
            Event::Off { thread, preempted } => self.off(thread, preempted, time),
            Event::Resume { thread } => {
                if let Some(slept) = self.blocked.back(thread.tid, time) {
                    self.slept(slept);
                }
            }
            Event::Acquire {
                thread,
                space,
                write,
                chain,
            } => {
                let acquire = Step::Acquire {
                    thread,
                    space,
                    write,
                    is_watched: self.family.watched(thread).is_some(),
                    addresses: chain.addresses,
                };
                self.step(time, acquire);
            }
            Event::Wake {
                thread,
                woken,
                chain,
            } => self.woken(thread, woken, chain, time),
            Event::Release { thread, space } => {
                let tid = thread.tid;
                self.step(time, Step::Release { tid, space });
            }
            Event::Holds(on) => self.record_holds(on, time),
            Event::LostHolds => self.holds.forget(),
            Event::Lost(count) => {
                self.totals.lost += count;
                self.still.forget();
                self.blocked.doubt();
                self.leaving.clear();
                self.holds.forget();
                let open = self.waits.forget();
                self.abandoned(open);
            }
            Event::Throttled => self.totals.throttled += 1,
            Event::Fork { child, .. } => {
                self.names.follow(&event);
                self.family.follow(&event, &mut self.files);
                self.born(child, time.max(self.began));
            }
            Event::Exit { thread } => {
                self.names.follow(&event);
                let left = self.waits.exit(thread.tid);
                self.abandoned(left);
                self.holds.exit(thread.tid);
                self.totals.unpaired += u64::from(self.blocked.exit(thread.tid));
                self.leaving.remove(&thread.tid);
                self.family.follow(&event, &mut self.files);
                let since = self.living.remove(&thread.tid).unwrap_or(time);
                self.totals.lived += time.max(self.began) - since;
            }
            change => {
                self.names.follow(&change);
                self.family.follow(&change, &mut self.files);
            }
        }
    }

    /// Ends everything still open at `time`: such waits last until then.
    pub fn close(&mut self, time: u64) {
        self.count(time, true);
        self.record_holds(false, time);
        self.living.clear();
    }

    /// Counts what is open with its part up to `time`; all of it ends there if `ended`.
    fn count(&mut self, time: u64, ended: bool) {
        for slept in self.blocked.cut(time, ended) {
            self.slept(slept);
        }
        for waited in self.waits.cut(time, ended) {
            self.waited(waited);
        }
        for (tid, sleep) in self.still.throughout() {
            self.slept_on(tid, sleep, time);
        }
        for hold in self.holds.cut(time, ended) {
            self.held(hold);
        }
        self.count_holds(time);
        for since in self.living.values_mut() {
            self.totals.lived += time.saturating_sub(*since);
            *since = time;
        }
    }

    /// Counts a new thread, which is ready to run.
    fn born(&mut self, child: Thread, time: u64) {
        let Some(process) = self.family.watched(child) else {
            return;
        };
        self.living.insert(child.tid, time);
        // A thread that was found asleep was born before it was found, and has had its first turn.
        if self.sees_switches && !self.still.has(child.tid) {
            let name = self.family.name(child.tid);
            let stack = self
                .stacks
                .intern(process, name, &self.files, Chain::default());
            let place = Place {
                stack,
                is_sampled: true,
                word: None,
            };
            self.blocked.off(child.tid, true, place, time);
        }
    }

    /// Notes where a thread is that is about to go off its CPU.
    fn leaves(&mut self, thread: Thread, state: i64, chain: Chain) {
        let word = is_asleep(state)
            .then(|| self.word(thread, &chain))
            .flatten();
        if let Some(stack) = self.stack(thread, chain) {
            let place = Place {
                stack,
                is_sampled: true,
                word,
            };
            self.leaving.insert(thread.tid, place);
        }
    }

    /// Counts a thread that goes off its CPU.
    fn off(&mut self, thread: Thread, preempted: bool, time: u64) {
        let place = match self.leaving.remove(&thread.tid) {
            Some(known) => known,
            None => match self.stack(thread, Chain::default()) {
                Some(stack) => Place {
                    stack,
                    is_sampled: false,
                    word: None,
                },
                None => return,
            },
        };
        let unseen = self.blocked.off(thread.tid, preempted, place, time);
        self.totals.unpaired += u64::from(unseen);
    }

    /// Notes who wakes a watched thread.
    fn woken(&mut self, by: Thread, woken: u32, chain: Chain, time: u64) {
        if !self.blocked.sleeps(woken) {
            return;
        }
        let is_watched = self.family.watched(by).is_some();
        let stack = match is_watched {
            true => self.stack(by, chain),
            false => Some(self.foreign_stack(by, chain)),
        };
        if let Some(stack) = stack {
            let waker = Waker { stack, is_watched };
            self.blocked.woken(woken, waker, time);
        }
    }

    /// The stack of a thread that is not watched.
    fn foreign_stack(&mut self, thread: Thread, chain: Chain) -> StackId {
        let own = match thread.tid == thread.pid {
            true => None,
            false => Some(self.names.of(thread.tid).name.clone()),
        };
        let process = self.names.of(thread.pid);
        let own = own.filter(|name| *name != process.name);
        self.stacks
            .intern(process, own.as_deref(), &self.files, chain)
    }

    fn stack(&mut self, thread: Thread, chain: Chain) -> Option<StackId> {
        let process = self.family.watched(thread)?;
        let name = self.family.name(thread.tid);
        Some(self.stacks.intern(process, name, &self.files, chain))
    }

    /// The word of memory that the first argument points to, if it can be a lock.
    fn word(&mut self, thread: Thread, chain: &Chain) -> Option<Word> {
        let process = self.family.watched(thread)?;
        let address = chain.registers?.argument;
        // A futex is aligned, and descriptors and sizes are rarely beyond the first page.
        let is_futex = address > 4096 && address.is_multiple_of(4);
        is_futex.then(|| self.stacks.word(process, &self.files, address))
    }

    fn sampled(&mut self, thread: Thread, stack: StackId, time: u64) {
        *self.totals.samples.entry(stack).or_default() += 1;
        self.ran(thread.tid);
        self.totals.timeline.count(Doing::Sampled(stack), time);
        // Samples within a wait are kept apart until its end shows that it was seen whole.
        if !self.waits.sampled(thread.tid, stack) {
            *self.totals.loose.entry(stack).or_default() += 1;
        }
    }

    fn ended(&mut self, tid: u32, lock: u64, time: u64) {
        match self.waits.end(tid, lock, time) {
            Some((waited, abandoned)) => {
                self.waited(waited);
                self.abandoned(abandoned);
            }
            None => self.totals.unpaired += 1,
        }
    }

    fn waited(&mut self, waited: Waited) {
        let (key, since) = ((waited.stack, waited.flags), waited.until - waited.own.part);
        let doing = Doing::Waiting(waited.stack, waited.flags);
        self.totals.timeline.add(doing, since, waited.until);
        self.totals.waits.entry(key).or_default().add(waited.own);
        *self.totals.spun.entry(waited.stack).or_default() += waited.awake;
    }

    /// Counts the samples of waits whose end is unknown as if outside of waits.
    fn abandoned(&mut self, waits: impl IntoIterator<Item = Vec<StackId>>) {
        for samples in waits {
            self.totals.unpaired += 1;
            for stack in samples {
                *self.totals.loose.entry(stack).or_default() += 1;
            }
        }
    }

    /// Counts sleep of the thread `tid` from the beginning to `time`.
    fn slept_on(&mut self, tid: u32, sleep: Sleep, time: u64) {
        let nanoseconds = time.saturating_sub(self.began);
        self.was_off(tid, Cause::Early(sleep.clone()), nanoseconds);
        *self.totals.early.entry(sleep).or_default() += nanoseconds;
    }

    fn slept(&mut self, slept: Slept) {
        let Slept { tid, span, .. } = slept;
        let place = slept.place;
        let cause = match self.waits.slept(tid, span.part) {
            Some((stack, flags)) => Cause::Lock(stack, flags),
            None if slept.preempted => Cause::Cpu,
            None if place.is_sampled => Cause::Sleep(place.stack, place.word),
            None => Cause::Unsampled,
        };
        self.was_off(tid, cause.clone(), span.part);
        let doing = match slept.preempted {
            true => Doing::Queued(place.stack),
            false => Doing::Asleep(place.stack),
        };
        let until = slept.since + span.part;
        self.totals.timeline.add(doing, slept.since, until);
        if !place.is_sampled {
            let key = (place.stack, slept.preempted);
            self.totals.unsampled.entry(key).or_default().add(span);
            return;
        }
        let by_stack = if slept.preempted {
            &mut self.totals.preempted
        } else {
            &mut self.totals.asleep
        };
        by_stack.entry(place.stack).or_default().add(span);
        if let Some((waker, queued)) = slept.woken {
            let key = (place.stack, cause, waker);
            let woken = self.totals.woken.entry(key).or_default();
            woken.slept.add(span);
            woken.queued.add(queued);
        }
        if let Some(word) = place.word {
            let tally = self.totals.words.entry((place.stack, word)).or_default();
            tally.add(span);
        }
    }
}

#[cfg(test)]
mod tests;
