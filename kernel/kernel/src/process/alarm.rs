//! The alarms of a process: signals at a time, perhaps repeated. The time is the clock's, or time
//! that the process has used.

use super::{Process, Signal};
use crate::timers::{Ring, TIMERS, Timer};
use alloc::sync::{Arc, Weak};
use machine::{Clock, Topology};
use metal::Metal;

/// The time that an alarm measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The machine's clock.
    Clock,
    /// Time on CPUs in user mode.
    User,
    /// Time on CPUs.
    Cpu,
}

/// The alarms of a process: one for each measure.
pub type Alarms = [Alarm; 3];

/// An alarm, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alarm {
    /// When the signal comes; 0 for never.
    next: u64,
    /// The interval at which the signal is repeated; 0 for not at all.
    interval: u64,
    /// The timer that is set for it.
    timer: Option<Timer>,
}

/// The longest time until the used time of a process that waits is checked again.
const LOOK: u64 = 4_000_000;

/// The shortest time that is reported: `itimerval` counts microseconds, and 0 would mean that there
/// is no alarm.
const SHORTEST: u64 = 1_000;

impl Process {
    /// Sets a signal in `first` nanoseconds, unless that is 0, and then after each `interval`,
    /// unless that is 0. Returns the time that was left of the old alarm, and its interval.
    pub fn set_alarm(self: &Arc<Self>, by: Measure, first: u64, interval: u64) -> (u64, u64) {
        let mut alarms = self.alarms.lock();
        let now = self.time(by);
        let alarm = &mut alarms[by as usize];
        let before = alarm.rest(now);
        let next = match first {
            0 => 0,
            first => now.saturating_add(first),
        };
        alarm.interval = interval;
        alarm.next = next;
        self.wind(alarm, by, now);
        before
    }

    /// The time to the next signal, and the interval.
    pub fn alarm(&self, by: Measure) -> (u64, u64) {
        let alarms = self.alarms.lock();
        alarms[by as usize].rest(self.time(by))
    }

    /// Cancels all alarms.
    pub(super) fn end_alarms(&self) {
        let alarms = core::mem::take(&mut *self.alarms.lock());
        let timers = alarms.into_iter().filter_map(|alarm| alarm.timer);
        timers.for_each(|timer| TIMERS.cancel(timer));
    }

    /// Sends the signal if its time has come; the alarm may have been changed meanwhile.
    pub(super) fn ring(self: &Arc<Self>, by: Measure) {
        let mut alarms = self.alarms.lock();
        let now = self.time(by);
        let alarm = &mut alarms[by as usize];
        let is_due = alarm.next != 0 && alarm.next <= now;
        if is_due {
            alarm.next = match alarm.interval {
                0 => 0,
                // Several missed signals are sent as one.
                interval => alarm.next + (now - alarm.next) / interval * interval + interval,
            };
        }
        self.wind(alarm, by, now);
        let goes_on = alarm.next != 0;
        drop(alarms);
        if by != Measure::Clock && goes_on {
            // The interrupts sample what the process does: without any, its time may count as the
            // kernel's.
            metal::kick_others();
        }
        if is_due {
            self.notify(by.signal());
        }
    }

    /// The current time by this measure.
    fn time(&self, by: Measure) -> u64 {
        match by {
            Measure::Clock => Metal::now(),
            Measure::User => self.used().user,
            Measure::Cpu => self.used().time(),
        }
    }

    /// Sets the timer for the next signal, instead of the one that is set.
    fn wind(self: &Arc<Self>, alarm: &mut Alarm, by: Measure, now: u64) {
        let timers = &*TIMERS;
        if let Some(timer) = alarm.timer.take() {
            timers.cancel(timer);
        }
        let at = match by {
            Measure::Clock => alarm.next,
            // Not before all CPUs together can have used that much time.
            _ => {
                let least = alarm.next.saturating_sub(now) / Metal.cpus().len() as u64;
                Metal::now() + least.max(LOOK)
            }
        };
        alarm.timer = (alarm.next != 0).then(|| {
            let of = Arc::downgrade(self);
            timers.set(at, Arc::new(Look { of, by }))
        });
    }
}

/// A look at an alarm of a process: it may be due.
struct Look {
    of: Weak<Process>,
    by: Measure,
}

impl Ring for Look {
    fn ring(self: Arc<Self>) {
        if let Some(process) = self.of.upgrade() {
            process.ring(self.by);
        }
    }
}

impl Measure {
    fn signal(self) -> Signal {
        match self {
            Measure::Clock => Signal::ALARM,
            Measure::User => Signal::VIRTUAL_ALARM,
            Measure::Cpu => Signal::PROFILE,
        }
    }
}

impl Alarm {
    fn rest(&self, now: u64) -> (u64, u64) {
        match self.next {
            0 => (0, self.interval),
            // An alarm that is due but not sent is still set.
            next => (next.saturating_sub(now).max(SHORTEST), self.interval),
        }
    }
}
