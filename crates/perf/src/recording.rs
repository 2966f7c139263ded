//! The result of a recording.

mod holders;

use crate::account::{StackId, Tally, Totals};
use crate::locks::{Wanted, futex, is_itself, kind, spinning, user_spinning, wanted};
use crate::symbols::{Named, plain};
use crate::unwind::Word;
use profile::{ASLEEP, Hidden, Lock, PREEMPTED, Stacks};
use std::collections::{BTreeMap, BTreeSet, HashMap};
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

/// A recording of the watched processes, with names.
#[derive(Debug)]
pub struct Recording(Seen);

/// The parts of a recording.
#[derive(Debug)]
pub(crate) struct Seen {
    pub clock: Clock,
    pub span: Duration,
    pub sample_seconds: f64,
    pub cpus: usize,
    /// True if other processes' CPU time was seen too.
    pub sees_all: bool,
    pub hidden: Hidden,
    pub missing: Vec<String>,
    /// The stacks, by number.
    pub stacks: Vec<Named>,
    /// Names of words of memory.
    pub words: HashMap<Word, String>,
    pub totals: Totals,
}

impl Recording {
    pub(crate) fn new(seen: Seen) -> Recording {
        Recording(seen)
    }

    /// The clock of busy time.
    pub fn clock(&self) -> Clock {
        self.0.clock
    }

    /// The duration of the recording.
    pub fn span(&self) -> Duration {
        self.0.span
    }

    /// Seconds of CPU time that one sample stands for.
    pub fn sample_seconds(&self) -> f64 {
        self.0.sample_seconds
    }

    /// The time that the watched threads lived during the recording, added up; shares refer to
    /// this.
    pub fn lived(&self) -> Duration {
        Duration::from_nanos(self.0.totals.lived)
    }

    /// The parts that cannot be seen here.
    pub fn hidden(&self) -> Hidden {
        self.0.hidden
    }

    /// Samples of watched threads.
    pub fn samples(&self) -> u64 {
        self.0.totals.samples.values().sum()
    }

    /// The CPU time that all samples of watched threads stand for.
    pub(crate) fn sampled(&self) -> Duration {
        Duration::from_secs_f64(self.samples() as f64 * self.0.sample_seconds)
    }

    /// Returns true if this can be a recording of processes that used this CPU time: samples stand
    /// for a good part of it. They need not where the kernel is hidden, or where few samples are
    /// due.
    pub(crate) fn is_of(&self, used: Duration) -> bool {
        // A task that a timer wakes for a moment has gone again when the sampling timer looks.
        const PART: u32 = 8;
        const FEW: f64 = 100.0;
        let is_short = used.as_secs_f64() < FEW * self.0.sample_seconds;
        self.0.hidden.kernel || is_short || self.sampled() >= used / PART
    }

    /// Records for which the kernel had no room.
    pub fn lost(&self) -> u64 {
        self.0.totals.lost
    }

    /// Begins of lock waits without an end, ends without a begin, and times off CPU whose end was
    /// not seen.
    pub fn unpaired(&self) -> u64 {
        self.0.totals.unpaired
    }

    /// The share of the machine's CPU time that other processes took, the recorder excluded; none
    /// where they cannot be seen.
    pub fn foreign(&self) -> Option<f64> {
        self.part_of_machine(self.0.totals.foreign)
    }

    /// The share of the machine's CPU time that the recorder took.
    pub fn own(&self) -> Option<f64> {
        self.part_of_machine(self.0.totals.own)
    }

    /// The parts that were not recorded, and how to allow them.
    pub fn missing(&self) -> &[String] {
        &self.0.missing
    }

    /// Busy stacks, in seconds of CPU time: the command, then user frames, then kernel
    /// frames, which end in `_[k]`.
    pub fn busy(&self) -> Stacks {
        let mut stacks = Stacks::default();
        for (&stack, &count) in &self.0.totals.samples {
            self.add(&mut stacks, None, stack, count as f64 * self.weight());
        }
        stacks
    }

    /// Stacks that waited, in seconds of task time: off CPU, or on a CPU within a traced wait for a
    /// lock. Time in which a task was ready but did not run is below a frame `preempted`, that of
    /// threads that never ran below `asleep throughout`.
    pub fn waiting(&self) -> Stacks {
        let totals = &self.0.totals;
        let mut stacks = Stacks::default();
        for (&stack, tally) in &totals.asleep {
            self.add(&mut stacks, None, stack, seconds(tally.total));
        }
        for (&stack, &spun) in &totals.spun {
            self.add(&mut stacks, None, stack, seconds(spun));
        }
        for (&stack, tally) in &totals.preempted {
            self.add(&mut stacks, Some(PREEMPTED), stack, seconds(tally.total));
        }
        for (sleep, &time) in &totals.early {
            let root = sleep.throughout.then_some(ASLEEP);
            let place = match plain(&sleep.function) {
                "" => "[asleep]".to_owned(),
                name => format!("{name}_[k]"),
            };
            let frames = root.into_iter().chain([&*sleep.process, &place]);
            stacks.add(frames, seconds(time));
        }
        stacks
    }

    /// The locks waited for, the costliest first; shares are of `task_seconds`.
    pub fn locks(&self, task_seconds: f64) -> Vec<Lock> {
        let mut rows = Rows::default();
        self.add_waits(&mut rows);
        self.add_spinning(&mut rows);
        self.add_futexes(&mut rows);
        let mut locks: Vec<Lock> = rows
            .0
            .into_values()
            .map(|lock| lock.share_of(task_seconds))
            .collect();
        let cost = |lock: &Lock| lock.wait + lock.spin;
        locks.sort_by(|a, b| cost(b).total_cmp(&cost(a)));
        locks
    }

    /// Doubts and gaps, one sentence each.
    pub fn notes(&self) -> Vec<String> {
        let totals = &self.0.totals;
        let mut notes = self.0.missing.clone();
        if totals.lost > 0 {
            notes.push(format!(
                "lost records: {}, so there are too few waits and samples; a larger ring (--ring) \
                 keeps them",
                totals.lost
            ));
        }
        if totals.unpaired > 0 {
            notes.push(format!(
                "waits seen only in part, and not counted: {}",
                totals.unpaired
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
        for (&(stack, flags), tally) in &self.0.totals.waits {
            let frames = &self.0.stacks[stack as usize].kernel;
            rows.add(wanted(kind(flags), frames), tally);
        }
    }

    /// Samples that spin outside any traced wait: kernels trace some locks only once a task stops
    /// spinning for them.
    fn add_spinning(&self, rows: &mut Rows) {
        for (&stack, &count) in &self.0.totals.loose {
            let stack = &self.0.stacks[stack as usize];
            if let Some(wanted) = spinning(&stack.kernel).or_else(|| user_spinning(stack)) {
                rows.of(wanted).spin += count as f64 * self.weight();
            }
        }
    }

    fn add_futexes(&self, rows: &mut Rows) {
        let totals = &self.0.totals;
        let wanted = |stack: StackId| futex(&self.0.stacks[stack as usize]);
        let mut told = BTreeSet::new();
        for (&(stack, word), tally) in &totals.words {
            let Some(wanted) = wanted(stack).filter(is_itself) else {
                continue;
            };
            told.insert(stack);
            let name = format!("{} {}", wanted.name, self.0.words[&word]);
            rows.add(Wanted { name, ..wanted }, tally);
        }
        for (&stack, tally) in &totals.asleep {
            if let Some(wanted) = wanted(stack).filter(|_| !told.contains(&stack)) {
                rows.add(wanted, tally);
            }
        }
    }

    fn add(&self, to: &mut Stacks, root: Option<&str>, stack: StackId, seconds: f64) {
        let stack = &self.0.stacks[stack as usize];
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
        let Seen {
            totals,
            sample_seconds,
            hidden,
            ..
        } = &self.0;
        if hidden.waits || totals.lost > 0 {
            return *sample_seconds;
        }
        let off = totals.asleep.values().chain(totals.preempted.values());
        let off: u64 = off.map(|tally| tally.total).sum();
        let off = off + totals.early.values().sum::<u64>();
        let on = seconds(totals.lived.saturating_sub(off));
        sample_seconds.min(on / self.samples().max(1) as f64)
    }

    fn part_of_machine(&self, samples: u64) -> Option<f64> {
        let machine = self.0.span.as_secs_f64() * self.0.cpus as f64;
        let part = samples as f64 * self.0.sample_seconds / machine;
        (self.0.sees_all && machine > 0.0).then_some(part)
    }
}

/// Rows of the table of locks.
#[derive(Default)]
struct Rows(BTreeMap<Wanted, Lock>);

impl Rows {
    fn of(&mut self, wanted: Wanted) -> &mut Lock {
        let lock = Lock::new(&wanted.name, wanted.kind, &wanted.caller);
        self.0.entry(wanted).or_insert(lock)
    }

    fn add(&mut self, wanted: Wanted, tally: &Tally) {
        self.of(wanted)
            .add_waits(tally.count, seconds(tally.total), seconds(tally.worst));
    }
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

#[cfg(test)]
mod tests;
