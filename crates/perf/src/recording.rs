//! The result of a recording.

mod fill;
mod holders;
mod moments;
mod parts;
mod threads;
mod timeline;
mod unsampled;

use crate::account::{Cause, Sleep, StackId, Tally, Totals};
use crate::locks::{
    Off, Wanted, contended, is_condition, is_for_work, off, spinning, user_spinning,
};
use crate::symbols::{Named, plain};
use crate::unwind::Word;
use profile::{Hidden, IDLE, Kind, Lock, PREEMPTED, Spent, Spread, Stacks};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// The clock of busy time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The CPU's cycles.
    Cycles,
    /// The system's clock, per CPU.
    CpuClock,
}

impl Clock {
    /// The word used in output.
    pub const fn name(self) -> &'static str {
        match self {
            Clock::Cycles => "cycles",
            Clock::CpuClock => "cpu-clock",
        }
    }
}

/// How a recording is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub clock: Clock,
    /// Seconds of CPU time that one sample stands for.
    pub sample_seconds: f64,
    pub cpus: usize,
    /// True if other processes' CPU time is seen too.
    pub sees_all: bool,
    /// True if the kernel's locks have tracepoints.
    pub sees_contention: bool,
    pub hidden: Hidden,
}

impl Setting {
    /// Returns true if processes that used this CPU time can have been sampled so: samples stand
    /// for a good part of it. They need not where the kernel is hidden, or where few samples are
    /// due.
    pub fn can_be_of(&self, sampled: Duration, used: Duration) -> bool {
        // A task that a timer wakes for a moment has gone again when the sampling timer looks.
        const PART: u32 = 8;
        const FEW: f64 = 100.0;
        let is_short = used.as_secs_f64() < FEW * self.sample_seconds;
        self.hidden.kernel || is_short || sampled >= used / PART
    }
}

/// A recording of the watched processes, with names.
#[derive(Debug)]
pub struct Recording {
    seen: Seen,
    /// What the stacks off CPU wait for.
    off: HashMap<StackId, Off>,
    /// The threads, by the names of their process and themselves, that wait at futexes for work
    /// more than for locks.
    pool: HashSet<(String, String)>,
}

/// The parts of a recording.
#[derive(Debug)]
pub(crate) struct Seen {
    pub setting: Setting,
    pub span: Duration,
    /// The CPU time of the processes that were there throughout, by the kernel's clocks.
    pub used: Duration,
    /// The time that the hypervisor took from all CPUs.
    pub stolen: Duration,
    /// The group whose quota was used up, and how long it then waited.
    pub throttled: Option<(String, Duration)>,
    pub missing: Vec<String>,
    /// The stacks, by number.
    pub stacks: Arc<Vec<Named>>,
    /// Names of words of memory.
    pub words: HashMap<Word, String>,
    pub totals: Totals,
}

impl Recording {
    pub(crate) fn new(mut seen: Seen) -> Recording {
        unsampled::deal(&mut seen.totals, &seen.stacks);
        let stacks = seen.totals.asleep.keys();
        let off = stacks.map(|&stack| (stack, off(&seen.stacks[stack as usize])));
        let off = off.collect();
        Recording {
            pool: pool(&seen, &off),
            off,
            seen,
        }
    }

    /// The clock of busy time.
    pub fn clock(&self) -> Clock {
        self.seen.setting.clock
    }

    /// The duration of the recording.
    pub fn span(&self) -> Duration {
        self.seen.span
    }

    /// Seconds of CPU time that one sample stands for.
    pub fn sample_seconds(&self) -> f64 {
        self.seen.setting.sample_seconds
    }

    /// The time that the watched threads lived during the recording, added up; shares refer to
    /// this.
    pub fn lived(&self) -> Duration {
        Duration::from_nanos(self.seen.totals.lived)
    }

    /// The parts that cannot be seen here.
    pub fn hidden(&self) -> Hidden {
        self.seen.setting.hidden
    }

    /// Samples of watched threads.
    pub fn samples(&self) -> u64 {
        self.seen.totals.samples.values().sum()
    }

    /// The CPU time that all samples of watched threads stand for.
    pub(crate) fn sampled(&self) -> Duration {
        Duration::from_secs_f64(self.samples() as f64 * self.sample_seconds())
    }

    /// Records for which the kernel had no room.
    pub fn lost(&self) -> u64 {
        self.seen.totals.lost
    }

    /// Begins of lock waits without an end, ends without a begin, and times off CPU whose end was
    /// not seen.
    pub fn unpaired(&self) -> u64 {
        self.seen.totals.unpaired
    }

    /// The share of the machine's CPU time that other processes took, the recorder excluded; none
    /// where they cannot be seen.
    pub fn foreign(&self) -> Option<f64> {
        self.part_of_machine(self.seen.totals.foreign)
    }

    /// The share of the machine's CPU time that the recorder took.
    pub fn own(&self) -> Option<f64> {
        self.part_of_machine(self.seen.totals.own)
    }

    /// The parts that were not recorded, and how to allow them.
    pub fn missing(&self) -> &[String] {
        &self.seen.missing
    }

    /// Busy stacks, in seconds of CPU time: the command, then user frames, then kernel
    /// frames, which end in `_[k]`.
    pub fn busy(&self) -> Stacks {
        let (mut stacks, weight) = (Stacks::default(), self.weight());
        for (&stack, &count) in &self.seen.totals.samples {
            self.add(&mut stacks, None, stack, count as f64 * weight);
        }
        stacks
    }

    /// Stacks that waited, in seconds of task time: off CPU, or on a CPU within a traced wait for a
    /// lock. Time in which a task was ready but did not run is below a frame `preempted`, time in
    /// which it had nothing to do below `idle`.
    pub fn waiting(&self) -> Stacks {
        let totals = &self.seen.totals;
        let mut stacks = Stacks::default();
        for (&stack, tally) in &totals.asleep {
            let root = self.off[&stack].is_idle().then_some(IDLE);
            self.add(&mut stacks, root, stack, seconds(tally.total));
        }
        for (&stack, &spun) in &totals.spun {
            self.add(&mut stacks, None, stack, seconds(spun));
        }
        for (&stack, tally) in &totals.preempted {
            self.add(&mut stacks, Some(PREEMPTED), stack, seconds(tally.total));
        }
        for (sleep, &time) in &totals.early {
            let root = self.is_idle(sleep).then_some(IDLE);
            let place = match plain(&sleep.function) {
                "" => "[asleep]".to_owned(),
                name => format!("{name}_[k]"),
            };
            let frames = root.into_iter().chain([&*sleep.process, &place]);
            stacks.add(frames, seconds(time));
        }
        stacks
    }

    /// The locks waited for, the costliest first; shares are of `active_seconds`.
    pub fn locks(&self, active_seconds: f64) -> Vec<Lock> {
        let mut rows = Rows::default();
        self.add_waits(&mut rows);
        self.add_spinning(&mut rows);
        self.add_sleeps(&mut rows);
        self.add_queued(&mut rows);
        let rows = rows.0.into_iter();
        let mut locks = Vec::from_iter(rows.map(|(wanted, row)| row.lock(&wanted, active_seconds)));
        let cost = |lock: &Lock| lock.wait + lock.spin;
        locks.sort_by(|a, b| cost(b).total_cmp(&cost(a)));
        locks
    }

    /// How the tasks spent their time; none if waits cannot be seen.
    pub fn spent(&self) -> Option<Spent> {
        if self.hidden().waits {
            return None;
        }
        let totals = &self.seen.totals;
        let asleep = |is: fn(&Off) -> bool| -> u64 {
            let all = totals.asleep.iter();
            let such = all.filter(|(stack, _)| is(&self.off[stack]));
            such.map(|(_, tally)| tally.total).sum()
        };
        let early = |idle: bool| -> u64 {
            let all = totals.early.iter();
            let such = all.filter(|(sleep, _)| self.is_idle(sleep) == idle);
            such.map(|(_, time)| time).sum()
        };
        let mut rows = Rows::default();
        self.add_spinning(&mut rows);
        let spun: f64 = rows.0.values().map(|row| row.spin).sum();
        let spun = spun + seconds(totals.spun.values().sum());
        let busy = self.samples() as f64 * self.weight();
        let off = seconds(self.off_cpu());
        let unsampled = (seconds(totals.lived) - off - busy).max(0.0);
        let stolen = self.seen.stolen.as_secs_f64().min(unsampled);
        Some(Spent {
            work: (busy - spun).max(0.0),
            locks: spun.min(busy) + seconds(asleep(|off| matches!(off, Off::Lock(_)))),
            blocked: seconds(asleep(|off| *off == Off::Other) + early(false)),
            queued: seconds(totals.preempted.values().map(|tally| tally.total).sum()),
            idle: seconds(asleep(Off::is_idle) + early(true)),
            stolen,
            unseen: unsampled - stolen,
        })
    }

    /// How long tasks that were ready waited for a CPU; none if that cannot be seen, or none did.
    pub fn queued(&self) -> Option<Spread> {
        let mut all = Tally::default();
        let queued = self.seen.totals.preempted.values();
        queued.for_each(|tally| all.add_all(tally));
        all.spread()
    }

    /// Why the recording contradicts itself; none if it does not.
    pub fn doubt(&self) -> Option<String> {
        /// What two clocks may differ by.
        const NEARLY: f64 = 1.25;
        const LITTLE: f64 = 0.1;
        /// What it costs to record that a thread goes off CPU: the next thread pays for it before
        /// it is said to be on CPU.
        const SWITCH: f64 = 50e-6;
        if self.hidden().waits || self.lost() > 0 {
            return None;
        }
        let used = self.seen.used.as_secs_f64();
        let on = seconds(self.seen.totals.lived.saturating_sub(self.off_cpu()));
        let off = self.seen.totals.asleep.values();
        let off = off.chain(self.seen.totals.preempted.values());
        let switches: u64 = off.map(|tally| tally.count).sum();
        let paid = SWITCH * switches as f64;
        (used > NEARLY * on + LITTLE + paid).then(|| {
            format!(
                "the tasks used {used:.1} s of CPU time by the kernel's clocks, but switches show \
                 them on CPUs for {on:.1} s"
            )
        })
    }

    /// Doubts and gaps, one sentence each.
    pub fn notes(&self) -> Vec<String> {
        let totals = &self.seen.totals;
        let mut notes = self.seen.missing.clone();
        if totals.lost > 0 {
            notes.push(format!(
                "lost records: {}, {:.1} % of all, so there are too few waits and samples, and \
                 shares are least values; a larger ring keeps them (--ring, or -m of perf record)",
                totals.lost,
                100.0 * totals.lost as f64 / (totals.lost + totals.taken) as f64
            ));
        }
        if totals.unpaired > 0 {
            notes.push(format!(
                "waits seen only in part, and not counted: {}",
                totals.unpaired
            ));
        }
        if let Some((group, time)) = &self.seen.throttled {
            notes.push(format!(
                "the CPU quota of cgroup {group} was used up: its tasks waited for {:.2} s",
                time.as_secs_f64()
            ));
        }
        notes.extend(self.note_of_holders());
        if totals.throttled > 0 {
            notes.push(format!(
                "times that the kernel throttled sampling: {}",
                totals.throttled
            ));
        }
        if let (Some(foreign), Some(own)) = (self.foreign(), self.own()) {
            notes.push(format!(
                "other processes took {:.1} % of the CPU time while recording, the recorder {:.1} \
                 %",
                100.0 * foreign,
                100.0 * own
            ));
        }
        notes
    }

    fn add_waits(&self, rows: &mut Rows) {
        for (&(stack, flags), tally) in &self.seen.totals.waits {
            let frames = &self.seen.stacks[stack as usize].kernel;
            rows.add(contended(flags, frames), tally);
        }
    }

    /// Samples that spin outside any traced wait: kernels trace some locks only once a task stops
    /// spinning for them.
    fn add_spinning(&self, rows: &mut Rows) {
        let weight = self.weight();
        for (&stack, &count) in &self.seen.totals.loose {
            let stack = &self.seen.stacks[stack as usize];
            if let Some(wanted) = spinning(&stack.kernel).or_else(|| user_spinning(stack)) {
                rows.0.entry(wanted).or_default().spin += count as f64 * weight;
            }
        }
    }

    /// Waits off CPU for the locks of programs, and for the kernel's where these have no
    /// tracepoints.
    fn add_sleeps(&self, rows: &mut Rows) {
        let totals = &self.seen.totals;
        let mut told = BTreeSet::new();
        for (&(stack, word), tally) in &totals.words {
            if let Some(wanted) = self.slept_for(stack, Some(word)) {
                told.insert(stack);
                rows.add(wanted, tally);
            }
        }
        let asleep = totals.asleep.iter();
        for (&stack, tally) in asleep.filter(|(stack, _)| !told.contains(stack)) {
            if let Some(wanted) = self.slept_for(stack, None) {
                rows.add(wanted, tally);
            }
        }
    }

    /// For how long those that were woken for these locks then waited for a CPU.
    fn add_queued(&self, rows: &mut Rows) {
        for ((_, cause, _), woken) in &self.seen.totals.woken {
            let wanted = match *cause {
                Cause::Lock(stack, flags) => {
                    let frames = &self.seen.stacks[stack as usize].kernel;
                    Some(contended(flags, frames))
                }
                Cause::Sleep(stack, word) => self.slept_for(stack, word),
                Cause::Unsampled | Cause::Early(_) | Cause::Cpu => None,
            };
            if let Some(row) = wanted.and_then(|wanted| rows.0.get_mut(&wanted)) {
                row.queued.add_all(&woken.queued);
            }
        }
    }

    /// The lock for which a thread slept here, unless it is one of the kernel's and has
    /// tracepoints.
    fn slept_for(&self, stack: StackId, word: Option<Word>) -> Option<Wanted> {
        let Off::Lock(wanted) = &self.off[&stack] else {
            return None;
        };
        let is_untold = wanted.kind == Kind::Futex || !self.seen.setting.sees_contention;
        is_untold.then(|| Wanted {
            name: self.named(wanted, word),
            ..wanted.clone()
        })
    }

    fn add(&self, to: &mut Stacks, root: Option<&str>, stack: StackId, seconds: f64) {
        let stack = &self.seen.stacks[stack as usize];
        let kernel: Vec<String> = stack
            .kernel
            .iter()
            .rev()
            .map(|frame| format!("{frame}_[k]"))
            .collect();
        let user = stack
            .user
            .iter()
            .rev()
            .map(|function| function.name.as_str());
        let frames = root.into_iter().chain([stack.process.as_str()]).chain(user);
        to.add(frames.chain(kernel.iter().map(String::as_str)), seconds);
    }

    /// Seconds of CPU time that a sample stands for. Ticks come a little too often or too seldom by
    /// chance; all samples together stand for no more than the time in which threads were not off
    /// CPU.
    fn weight(&self) -> f64 {
        let (totals, sample_seconds) = (&self.seen.totals, self.sample_seconds());
        if self.hidden().waits || totals.lost > 0 {
            return sample_seconds;
        }
        let on = seconds(totals.lived.saturating_sub(self.off_cpu()));
        sample_seconds.min(on / self.samples().max(1) as f64)
    }

    /// Returns true if a thread had nothing to do: it slept throughout, or in a function that waits
    /// for work, or at a futex as its kind waits for work.
    fn is_idle(&self, sleep: &Sleep) -> bool {
        let function = plain(&sleep.function);
        let names = || (sleep.process.clone(), sleep.thread.clone());
        sleep.throughout
            || is_for_work(function)
            || function.contains("futex") && self.pool.contains(&names())
    }

    /// Nanoseconds off CPU.
    fn off_cpu(&self) -> u64 {
        let totals = &self.seen.totals;
        let off = totals.asleep.values().chain(totals.preempted.values());
        let off: u64 = off.map(|tally| tally.total).sum();
        off + totals.early.values().sum::<u64>()
    }

    fn part_of_machine(&self, samples: u64) -> Option<f64> {
        let Setting { cpus, sees_all, .. } = self.seen.setting;
        let machine = self.seen.span.as_secs_f64() * cpus as f64;
        let part = samples as f64 * self.sample_seconds() / machine;
        (sees_all && machine > 0.0).then_some(part)
    }
}

/// The threads that wait at futexes for work more than for locks.
fn pool(seen: &Seen, off: &HashMap<StackId, Off>) -> HashSet<(String, String)> {
    let mut waited: HashMap<(&str, &str), [u64; 2]> = HashMap::new();
    for (id, tally) in &seen.totals.asleep {
        let Some(wanted) = off[id].wanted().filter(|one| one.kind == Kind::Futex) else {
            continue;
        };
        let stack = &seen.stacks[*id as usize];
        let thread = stack.thread.as_deref().unwrap_or(&stack.process);
        let [work, locks] = waited.entry((&stack.process, thread)).or_default();
        match is_condition(wanted) {
            true => *work += tally.total,
            false => *locks += tally.total,
        }
    }
    let pool = waited.into_iter().filter(|(_, [work, locks])| work > locks);
    pool.map(|((process, thread), _)| (process.to_owned(), thread.to_owned()))
        .collect()
}

/// Rows of the table of locks.
#[derive(Default)]
struct Rows(BTreeMap<Wanted, Row>);

#[derive(Default)]
struct Row {
    waits: Tally,
    /// The parts of them in which a task had been woken and waited for a CPU.
    queued: Tally,
    /// Seconds of spinning outside of these.
    spin: f64,
}

impl Rows {
    fn add(&mut self, wanted: Wanted, tally: &Tally) {
        self.0.entry(wanted).or_default().waits.add_all(tally);
    }
}

impl Row {
    fn lock(&self, wanted: &Wanted, task_seconds: f64) -> Lock {
        let waits = &self.waits;
        Lock {
            contentions: waits.count,
            open: waits.open,
            wait: seconds(waits.total),
            mean: seconds(waits.mean()),
            spread: waits.spread(),
            queued: self.queued.spread(),
            worst: seconds(waits.worst),
            spin: self.spin,
            ..Lock::new(&wanted.name, wanted.kind, &wanted.caller)
        }
        .share_of(task_seconds)
    }
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

#[cfg(test)]
mod tests;
