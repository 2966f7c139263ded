//! A thread while it is recorded.

use super::calls::Kind;
use super::raw::Mapped;
use super::regions::Piece;
use super::switches::Switches;
use recording::{FaultKind, Place, WaitFor};

/// The most nanoseconds that a thread computes between two pages of one run of faults.
const BETWEEN: u64 = 2_000;

/// A thread.
#[derive(Debug)]
pub(super) struct Task {
    /// Its number in the recording.
    pub number: u32,
    pub pid: u32,
    pub clock: Clock,
    /// The call that it is in.
    pub call: Option<Pending>,
    /// True while the kernel resolves a fault of its.
    pub fault: bool,
    /// Faults that may go on.
    pub run: Option<Run>,
    /// What it is about to wait for.
    pub falls_asleep: Option<WaitFor>,
    pub sleep: Option<Sleep>,
    /// Its wake-ups of others so far.
    pub wakes: u32,
    /// True if it has ended, but for its last moments in the kernel.
    pub ends: bool,
    pub switches: Switches,
}

/// A call that has not returned.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub number: i64,
    pub kind: Kind,
    pub arguments: [u64; 6],
    /// What was mapped in its range when it was called.
    pub pieces: Vec<Piece>,
    /// What the kernel says that it mapped.
    pub mapped: Option<Mapped>,
}

impl Pending {
    /// The call of a task with this number: other events tell what it does.
    pub fn of(number: i64) -> Pending {
        Pending {
            number,
            kind: Kind::Task,
            arguments: [0; 6],
            pieces: Vec::new(),
            mapped: None,
        }
    }
}

/// Consecutive faults.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub fault: Fault,
    pub pages: u32,
    pub computed: u64,
    /// When the last one began.
    pub last: u64,
}

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub at: Place,
    pub write: bool,
    pub kind: FaultKind,
    pub in_kernel: bool,
}

/// A sleep outside of memory calls and faults.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sleep {
    pub on: WaitFor,
    pub since: u64,
    /// When it was woken.
    pub woken: Option<u64>,
    /// By which thread, with how many wake-ups of that thread's before.
    pub by: Option<(u32, u32)>,
}

/// The time that a thread computes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    /// True if it is on a CPU.
    pub running: bool,
    /// Up to when it has been accounted for.
    mark: u64,
    /// Nanoseconds that recording takes of what comes next.
    owed: u64,
    /// Nanoseconds since the last event.
    pub computed: u64,
}

impl Clock {
    pub fn new(time: u64, running: bool) -> Clock {
        Clock {
            running,
            mark: time,
            ..Clock::default()
        }
    }

    /// Leaves out all up to `time`, and `owed` nanoseconds of what comes, which recording takes.
    pub fn hold(&mut self, time: u64, owed: u64) {
        (self.mark, self.owed) = (time, owed);
    }
}

impl Task {
    pub fn new(number: u32, pid: u32, clock: Clock) -> Task {
        Task {
            number,
            pid,
            clock,
            call: None,
            fault: false,
            run: None,
            falls_asleep: None,
            sleep: None,
            wakes: 0,
            ends: false,
            switches: Switches::default(),
        }
    }

    /// Returns true if the kernel works for it in a way that a replay makes anew.
    pub fn is_inside(&self) -> bool {
        self.call.is_some() || self.fault
    }

    /// Accounts for the time up to `time`.
    pub fn advance(&mut self, time: u64) {
        if self.clock.running && !self.is_inside() {
            let span = time.saturating_sub(self.clock.mark);
            self.clock.computed += span.saturating_sub(self.clock.owed);
        }
        self.clock.hold(time, 0);
    }

    /// Adds a fault to the run, if it goes on with this one.
    pub fn goes_on(&mut self, fault: Fault, time: u64, page: u64) -> bool {
        let Some(run) = &mut self.run else {
            return false;
        };
        let next = Place {
            offset: run
                .fault
                .at
                .offset
                .wrapping_add(u64::from(run.pages) * page),
            ..run.fault.at
        };
        let expected = Fault {
            at: next,
            ..run.fault
        };
        let goes_on = fault == expected && self.clock.computed <= BETWEEN;
        if goes_on {
            run.pages += 1;
            run.last = time;
            run.computed += std::mem::take(&mut self.clock.computed);
        }
        goes_on
    }
}
