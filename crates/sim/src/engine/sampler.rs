//! A sampling profiler in virtual time: which code CPUs are in, and whether it works or waits.
//!
//! Each CPU has an account for each way to spend time. At each event that the engine notices, the
//! time since the last one is added to the account, and an account that has reached the period is
//! emptied into the CPU's stack at that moment. So long waits are charged where they happened, and
//! short ones in proportion; charging takes no simulated time, and the same random seed gives the
//! same samples.

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
    /// Its task was blocked.
    Blocked,
}

impl Spent {
    const WAYS: usize = 4;

    fn of(doing: Doing) -> Self {
        match doing {
            Doing::Fetching | Doing::Draining(_) => Spent::Fetching,
            Doing::Spinning => Spent::Spinning,
            Doing::Parked => Spent::Blocked,
            Doing::Nothing | Doing::Computing => Spent::Working,
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
    /// The time up to which the CPU's time is charged.
    until: Time,
    spent: [Time; Spent::WAYS],
}

impl Sampler {
    /// A sampler that begins at `begin`; a CPU whose clock is ahead of that is in a pause.
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

    /// Charges `cpu`, whose clock is `now`, for `spent` since the last charge.
    fn charge(&mut self, cpu: usize, now: Time, spent: Spent, line: Option<LineId>) {
        let account = &mut self.accounts[cpu];
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
    /// Begins to sample, a stack for each `period` that a CPU spends in one way.
    pub(crate) fn sample(&mut self, period: Time) {
        let clocks = self.cpus.iter().map(|cpu| cpu.clock);
        self.watch.sampler = Some(Sampler::new(period, self.time, clocks));
    }

    /// Ends the sampling: time by place. A CPU that still waits, or has paused since before it
    /// began, has no stack.
    pub(crate) fn sampled(&mut self) -> BTreeMap<Place, Time> {
        let Some(mut sampler) = self.watch.sampler.take() else {
            return BTreeMap::new();
        };
        let (end, period) = (self.time, sampler.period);
        let span = end.saturating_sub(sampler.begin);
        let working = self.cpus.iter().zip(&sampler.accounts);
        for (cpu, account) in working.filter(|(cpu, _)| cpu.doing != Doing::Nothing) {
            let waits = (Spent::of(cpu.doing), end.saturating_sub(account.until));
            let pause = account.spent[Spent::Spinning as usize].min(span);
            for (spent, time) in [waits, (Spent::Spinning, pause)] {
                if spent != Spent::Working && time >= period {
                    let place = (spent, None, Vec::new());
                    *sampler.samples.entry(place).or_default() += time;
                }
            }
        }
        sampler.samples
    }

    /// The running CPU is about to wait: how it will have spent that time, if sampling is on.
    #[inline]
    pub(super) fn before_wait(&mut self) -> Option<Spent> {
        self.charge(Spent::Working, None);
        let doing = self.cpu().doing;
        self.watch.sampler.is_some().then(|| Spent::of(doing))
    }

    /// Charges the running CPU's time since the last charge to `spent`.
    #[inline]
    pub(super) fn charge(&mut self, spent: Spent, line: Option<LineId>) {
        if self.watch.sampler.is_some() {
            self.charge_sampler(spent, line);
        }
    }

    #[cold]
    fn charge_sampler(&mut self, spent: Spent, line: Option<LineId>) {
        // A pausing CPU is ahead of the run's end.
        let (cpu, now) = (self.running, self.cpu().clock.min(self.until));
        if let Some(sampler) = &mut self.watch.sampler {
            sampler.charge(cpu, now, spent, line);
        }
    }
}
