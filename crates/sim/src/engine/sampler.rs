//! A sampling profiler in virtual time: which code the CPUs execute, and how it spends time.
//!
//! Each context has an account for each way to spend time. At each event that the engine notices,
//! the time since the last one is added to the account, and an account that has reached the period
//! is charged to the stack of that moment. So long waits are charged where they happened, and short
//! ones in proportion; charging takes no simulated time, and the same random seed gives the same
//! samples.

use super::cpu::Doing;
use super::watch::call_site;
use super::{Engine, Time};
use crate::coherence::LineId;
use std::collections::BTreeMap;

/// How a CPU spent time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Spent {
    /// It computed.
    Working,
    /// It waited for a line.
    Fetching,
    /// It spun.
    Spinning,
    /// It flushed translations for another CPU, or waited for others to do so.
    Interrupted,
    /// It waited for its socket's memory, which other CPUs kept busy.
    Memory,
    /// Its task was blocked.
    Blocked,
    /// Its task waited for a CPU.
    Queued,
}

impl Spent {
    const WAYS: usize = 7;

    fn of(doing: Doing) -> Self {
        match doing {
            Doing::Fetching | Doing::Draining(_) => Spent::Fetching,
            Doing::Spinning => Spent::Spinning,
            Doing::Parked | Doing::Idle => Spent::Blocked,
            Doing::Nothing | Doing::Computing | Doing::Busy => Spent::Working,
        }
    }
}

/// The key of samples: the stack, nearest first, and the awaited line.
pub(crate) type Place = (Spent, Option<LineId>, Vec<usize>);

/// The profiler, while it is on.
pub(crate) struct Sampler {
    period: Time,
    begin: Time,
    accounts: Vec<Account>,
    pub(crate) samples: BTreeMap<Place, Time>,
}

#[derive(Clone, Copy, Default)]
struct Account {
    /// The time up to which the context's time is charged.
    until: Time,
    spent: [Time; Spent::WAYS],
}

impl Sampler {
    /// A sampler that begins at `begin`. A context whose clock is ahead of that is pausing.
    fn new(period: Time, begin: Time, clocks: impl Iterator<Item = Time>) -> Self {
        let account = |clock: Time| {
            let mut account = Account {
                until: clock.max(begin),
                ..Account::default()
            };
            account.spent[Spent::Spinning as usize] = clock.saturating_sub(begin);
            account
        };
        Sampler {
            period: period.max(1),
            begin,
            accounts: clocks.map(account).collect(),
            samples: BTreeMap::new(),
        }
    }

    /// Begins the account of a new context.
    fn open(&mut self, context: usize, now: Time) {
        let account = Account {
            until: now,
            ..Account::default()
        };
        let accounts = self.accounts.len().max(context + 1);
        self.accounts.resize(accounts, account);
        self.accounts[context] = account;
    }

    /// Charges `context`, whose clock is `now`, for `spent` since the last charge.
    fn charge(&mut self, context: usize, now: Time, spent: Spent, line: Option<LineId>) {
        let account = &mut self.accounts[context];
        let time = &mut account.spent[spent as usize];
        *time += now.saturating_sub(account.until);
        account.until = account.until.max(now);
        if *time >= self.period {
            let weight = std::mem::take(time);
            *self.samples.entry((spent, line, call_site())).or_default() += weight;
        }
    }
}

impl Engine {
    /// Begins to sample, a stack for each `period` that a context spends in one way.
    pub(crate) fn sample(&mut self, period: Time) {
        let mut clocks = vec![self.time; self.contexts.len()];
        self.cpus
            .iter()
            .for_each(|cpu| clocks[cpu.context] = cpu.clock);
        let sampler = Sampler::new(period, self.time, clocks.into_iter());
        self.watch.sample(Some(sampler));
    }

    /// Opens the account of a new context, which has no time to be charged yet.
    pub(super) fn open_account(&mut self, context: usize) {
        let now = self.cpu().clock;
        if let Some(sampler) = self.watch.sampler() {
            sampler.open(context, now);
        }
    }

    /// Ends the sampling; returns the time by place. A context that still waits, or has paused
    /// since before the sampling began, has no stack.
    pub(crate) fn sampled(&mut self) -> BTreeMap<Place, Time> {
        let Some(mut sampler) = self.watch.sample(None) else {
            return BTreeMap::new();
        };
        let (end, period) = (self.time, sampler.period);
        let span = end.saturating_sub(sampler.begin);
        let scheduled = self.scheduler.is_some();
        let own = if scheduled { self.cpus.len() } else { 0 };
        let mut spends: Vec<Option<Spent>> = self.contexts.iter().map(|one| one.off()).collect();
        for cpu in &self.cpus {
            spends[cpu.context] = Some(Spent::of(cpu.doing));
        }
        let exists = |context: usize| self.contexts[context].body.is_some();
        let accounts = sampler.accounts.iter().enumerate().skip(own);
        for (context, account) in accounts.filter(|(context, _)| exists(*context)) {
            let waits = spends[context].map(|spent| (spent, end.saturating_sub(account.until)));
            let pause = account.spent[Spent::Spinning as usize].min(span);
            for (spent, time) in waits.into_iter().chain([(Spent::Spinning, pause)]) {
                if spent != Spent::Working && time >= period {
                    let place = (spent, None, Vec::new());
                    *sampler.samples.entry(place).or_default() += time;
                }
            }
        }
        sampler.samples
    }

    /// How the running CPU will have spent the wait that it is about to begin, if sampling is on.
    #[inline]
    pub(super) fn before_wait(&mut self) -> Option<Spent> {
        self.charge(Spent::Working, None);
        let doing = self.cpu().doing;
        self.watch.sampler().is_some().then(|| Spent::of(doing))
    }

    /// Charges the running CPU's time since the last charge to `spent`.
    #[inline]
    pub(crate) fn charge(&mut self, spent: Spent, line: Option<LineId>) {
        if self.watch.sampler().is_some() {
            self.charge_sampler(spent, line);
        }
    }

    #[cold]
    fn charge_sampler(&mut self, spent: Spent, line: Option<LineId>) {
        // A pausing CPU is ahead of the run's end.
        let now = self.cpu().clock.min(self.until);
        self.charge_context(now, spent, line);
    }

    fn charge_context(&mut self, now: Time, spent: Spent, line: Option<LineId>) {
        // The time of a CPU with no task to run is in no account.
        let own = self.scheduler.is_some() && self.current < self.cpus.len();
        let context = self.current;
        if let Some(sampler) = self.watch.sampler().filter(|_| !own) {
            sampler.charge(context, now, spent, line);
        }
    }

    /// Skips the running context's time up to `now`, which is in another context's account.
    fn skip(&mut self, now: Time) {
        let context = self.current;
        if let Some(sampler) = self.watch.sampler() {
            let until = &mut sampler.accounts[context].until;
            *until = now.max(*until);
        }
    }

    /// Charges the running context, which was on no CPU: as blocked until `ready`, then as waiting
    /// for a CPU.
    pub(super) fn charge_off(&mut self, ready: Time) {
        let now = self.cpu().clock.min(self.until);
        if self.context().stands_by {
            self.skip(ready)
        } else {
            self.charge_context(ready, Spent::Blocked, None)
        }
        self.charge_context(now, Spent::Queued, None);
    }
}
