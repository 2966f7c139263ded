//! The threads that held locks while others waited for them.

use super::{Recording, seconds};
use crate::account::{Cause, Held, StackId, Woken};
use crate::locks::{Off, Wanted, caller, held_as, is_itself, own_function, runs_with, woke_by};
use crate::symbols::variable;
use crate::unwind::Word;
use profile::{Holder, Kind, Times};
use std::collections::{BTreeMap, HashMap};

/// The lock whose acquisitions and releases are recorded.
const RECORDED: &str = "mmap_lock";

/// The holder of a lock: a function that a thread ran.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Who<'a> {
    process: &'a str,
    thread: Option<&'a str>,
    is_watched: bool,
    function: &'a str,
    kind: Kind,
}

impl Recording {
    /// The holders of locks for which watched threads waited, of each lock the one that most waited
    /// for first.
    pub fn holders(&self) -> Vec<Holder> {
        let mut holders = self.recorded_holders();
        holders.extend(self.wakers());
        holders.sort_by(|a, b| b.waited.total_cmp(&a.waited));
        holders
    }

    /// The holders of `mmap_lock`, by its acquisitions and releases.
    fn recorded_holders(&self) -> Vec<Holder> {
        let mut rows: BTreeMap<Who<'_>, (Held, HashMap<&str, u64>)> = BTreeMap::new();
        for (&(stack, write, is_watched), held) in &self.seen.totals.holds {
            let acquired = &self.seen.stacks[stack as usize];
            let who = Who {
                process: &acquired.process,
                thread: acquired.thread.as_deref(),
                is_watched,
                function: caller(&acquired.kernel),
                kind: if write {
                    Kind::RwsemWrite
                } else {
                    Kind::RwsemRead
                },
            };
            let (sum, functions) = rows.entry(who).or_default();
            sum.add_all(held);
            for (&sampled, &count) in &held.samples {
                if let Some(function) = self.ran_with(stack, sampled) {
                    *functions.entry(function).or_default() += count;
                }
            }
        }
        let all = self.seen.totals.waited_for_holds;
        let rows = rows.into_iter().map(|(taker, (held, functions))| {
            let most = functions
                .into_iter()
                .max_by_key(|&(name, count)| (count, name));
            let function = most.map_or(taker.function, |(name, _)| name);
            let times = &held.times;
            let held_for = Times {
                total: seconds(times.total),
                mean: seconds(times.total) / times.count.max(1) as f64,
                p99: times.quantile(0.99),
                worst: seconds(times.worst),
            };
            Holder {
                times: Some(held_for),
                ..Who { function, ..taker }.holder(RECORDED, times.count, held.waited, all)
            }
        });
        rows.collect()
    }

    /// The holders of locks that tasks sleep for and whose holds were not recorded: the threads
    /// that woke them.
    fn wakers(&self) -> Vec<Holder> {
        let is_recorded = |lock: &str| lock == RECORDED && !self.seen.totals.holds.is_empty();
        let mut locks: BTreeMap<String, BTreeMap<Who<'_>, Woken>> = BTreeMap::new();
        for ((stack, cause, waker), woken) in &self.seen.totals.woken {
            let Off::Lock(wanted) = &self.off[stack] else {
                continue;
            };
            let word = match cause {
                Cause::Sleep(_, word) => *word,
                _ => None,
            };
            let lock = self.named(wanted, word);
            let woke = &self.seen.stacks[waker.stack as usize];
            let function = match wanted.kind {
                Kind::Futex => own_function(&woke.user),
                _ => Some(woke_by(&woke.kernel)),
            };
            let (Some(function), false) = (function, woke.interrupted() || is_recorded(&lock))
            else {
                continue;
            };
            let who = Who {
                process: &woke.process,
                thread: woke.thread.as_deref(),
                is_watched: waker.is_watched,
                function,
                kind: held_as(wanted.kind, &woke.kernel),
            };
            let sum = locks.entry(lock).or_default().entry(who).or_default();
            sum.add_all(woken);
        }
        let mut holders = Vec::new();
        for (lock, rows) in locks {
            let all = rows.values().map(|woken| woken.slept.total).sum();
            let holder = |(who, Woken { slept, queued }): (Who<'_>, Woken)| Holder {
                queued: queued.spread(),
                ..who.holder(&lock, slept.count, slept.total, all)
            };
            holders.extend(rows.into_iter().map(holder));
        }
        holders
    }

    /// A lock's name, with that of the variable that it is, or with its address if that tells it
    /// from others.
    pub(super) fn named(&self, wanted: &Wanted, word: Option<Word>) -> String {
        // Only those of programs have a word; what is read of others is chance.
        let word = word.filter(|_| wanted.kind == Kind::Futex);
        let place = word.map(|word| self.seen.words[&word].as_str());
        let place = match place {
            Some(place) if is_itself(wanted) => Some(place),
            // The word lies somewhere in the variable.
            Some(place) => variable(place),
            None => None,
        };
        match place {
            Some(place) => format!("{} {place}", wanted.name),
            None => wanted.name.clone(),
        }
    }

    /// Says for which part of the time holders are known.
    pub(super) fn note_of_holders(&self) -> Option<String> {
        const NEARLY_ALL: f64 = 0.95;
        let recorded = seconds(self.seen.totals.recorded_holds?) / self.seen.span.as_secs_f64();
        (recorded < NEARLY_ALL).then(|| {
            format!(
                "holders of locks were recorded for {:.0} % of the time: there is so much to \
                 record that more would slow the tasks down",
                100.0 * recorded
            )
        })
    }

    fn ran_with(&self, acquired: StackId, sampled: StackId) -> Option<&str> {
        let frames = |stack: StackId| self.seen.stacks[stack as usize].kernel.as_slice();
        runs_with(frames(acquired), frames(sampled))
    }
}

impl Who<'_> {
    /// Its row, of a lock for which tasks waited for `all` nanoseconds.
    fn holder(self, lock: &str, holds: u64, waited: u64, all: u64) -> Holder {
        Holder {
            lock: lock.to_owned(),
            process: self.process.to_owned(),
            thread: self.thread.map(str::to_owned),
            watched: self.is_watched,
            function: self.function.to_owned(),
            kind: self.kind,
            holds,
            times: None,
            queued: None,
            waited: seconds(waited),
            share: waited as f64 / all.max(1) as f64,
        }
    }
}
