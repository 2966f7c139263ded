//! One simulated CPU.

use super::Time;
use super::access::Room;
use super::buffer::StoreBuffer;
use super::interrupt::Inbox;
use crate::translation::Translation;

/// The activity of a CPU that is not running, which determines what its next turn means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    /// It has no job.
    Nothing,
    /// It computes, up to its time in the agenda.
    Computing,
    /// It waits for a line.
    Fetching,
    /// It waits for room in its store buffer.
    Draining(Room),
    /// It spins on lines that it has read. Its time in the agenda is when it looks again even if
    /// none has changed.
    Spinning,
    /// Its task is blocked.
    Parked,
    /// It waits for an interrupt, with nothing to run.
    Idle,
    /// Its task computes, up to its time in the agenda, unless an interrupt comes.
    Busy,
}

/// A simulated CPU.
pub(crate) struct Cpu {
    /// Picoseconds since the machine was made.
    pub(crate) clock: Time,
    pub(crate) doing: Doing,
    /// The context that it runs.
    pub(crate) context: usize,
    /// Interrupts that have not been delivered.
    pub(super) inbox: Inbox,
    /// True if the task has been unparked and has not parked since.
    pub(super) permit: bool,
    /// The number of tasks so far, so that the name of an old one is recognized.
    pub(super) task: u64,
    pub(super) stores: StoreBuffer,
    /// The CPU's cost of computing, in 1,024ths: higher if the core's other thread works too.
    pub(super) slowness: u64,
    /// Relaxations in a row that ended by themselves.
    pub(super) vain: u32,
    /// Picoseconds of the running task's work that will take no time. Unlimited in a refunded
    /// section.
    pub(super) credit: Time,
    /// True if the running task is in a refunded section.
    pub(super) is_refunded: bool,
    /// True if others notice at once what the running task writes.
    pub(super) is_prompt: bool,
    /// True if nobody waits for the running task's stores.
    pub(super) has_free_stores: bool,
    /// The state of the CPU's random numbers.
    pub(super) dice: oorandom::Rand64,
    pub(crate) translation: Translation,
    /// How the CPU spent its time.
    pub(crate) times: Times,
}

/// How a CPU spent its time, in picoseconds; the rest it computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Waiting for lines: its own transfers and those queued before them.
    pub fetching: u64,
    /// Asleep on a line, or pausing, in a spin loop.
    pub spinning: u64,
    /// Flushing translations for other CPUs, and waiting for others to do so.
    pub interrupted: u64,
    /// Waiting for the socket's memory, which others kept busy.
    pub memory: u64,
    /// The task was blocked, or there was nothing to run.
    pub parked: u64,
}

impl Times {
    /// Adds time that was spent `doing` this.
    pub(crate) fn add(&mut self, doing: Doing, passed: Time) {
        match doing {
            Doing::Fetching | Doing::Draining(_) => self.fetching += passed,
            Doing::Spinning => self.spinning += passed,
            Doing::Parked | Doing::Idle => self.parked += passed,
            Doing::Nothing | Doing::Computing | Doing::Busy => {}
        }
    }
}

impl Cpu {
    /// CPU `index`, in its own context.
    pub(crate) fn new(index: usize, dice: oorandom::Rand64, buffer: usize) -> Self {
        Cpu {
            clock: 0,
            doing: Doing::Nothing,
            context: index,
            inbox: Inbox::default(),
            permit: false,
            task: 0,
            stores: StoreBuffer::new(buffer),
            slowness: 1024,
            vain: 0,
            credit: 0,
            is_refunded: false,
            is_prompt: false,
            has_free_stores: false,
            dice,
            translation: Translation::new(),
            times: Times::default(),
        }
    }

    /// The time that a waiting CPU has waited between `cleared` and `now`.
    pub(crate) fn waits_since(&self, cleared: Time, now: Time) -> Time {
        now.saturating_sub(self.clock.max(cleared))
    }

    /// Sets the CPU's share of its full speed.
    pub(crate) fn set_speed(&mut self, speed: f64) {
        self.slowness = (1024.0 / speed).round() as u64;
    }

    /// A random number below `bound`; 0 if that is 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            0
        } else {
            self.dice.rand_range(0..bound)
        }
    }

    /// The number of its current job.
    pub(crate) fn task(&self) -> u64 {
        self.task
    }
}
