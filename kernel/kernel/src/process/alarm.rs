//! The alarm of a process: a signal at some time, perhaps again and again.

use super::timers::{Ring, Timer};
use super::{Process, Signal};
use crate::system::system;
use alloc::sync::Arc;
use machine::Clock;
use metal::Metal;

/// An alarm, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alarm {
    /// When the signal comes, by the machine's clock; 0 for never.
    next: u64,
    /// After how long it comes again; 0 for not at all.
    interval: u64,
    /// The timer that is set for it.
    timer: Option<Timer>,
}

impl Process {
    /// Sends a signal in `first` nanoseconds, unless that is 0, and then after each `interval`, unless
    /// that is. Returns how long it was to the next one, and the interval.
    pub fn set_alarm(self: &Arc<Self>, first: u64, interval: u64) -> (u64, u64) {
        let now = Metal::now();
        let mut alarm = self.alarm.lock();
        let before = alarm.rest(now);
        let next = match first {
            0 => 0,
            first => now.saturating_add(first),
        };
        alarm.interval = interval;
        self.wind(&mut alarm, next);
        before
    }

    /// How long it is to the next signal, and the interval.
    pub fn alarm(&self) -> (u64, u64) {
        self.alarm.lock().rest(Metal::now())
    }

    /// Sends the signal, unless the alarm has been set anew meanwhile.
    pub(super) fn ring(self: &Arc<Self>) {
        let now = Metal::now();
        let mut alarm = self.alarm.lock();
        if alarm.next == 0 || alarm.next > now {
            return;
        }
        let next = match alarm.interval {
            0 => 0,
            // Missed signals come once.
            interval => alarm.next + (now - alarm.next) / interval * interval + interval,
        };
        self.wind(&mut alarm, next);
        drop(alarm);
        self.notify(Signal::ALARM);
    }

    /// Sets the timer for the next signal in place of the one that is set.
    fn wind(self: &Arc<Self>, alarm: &mut Alarm, next: u64) {
        let timers = &system().timers;
        if let Some(timer) = alarm.timer.take() {
            timers.cancel(timer);
        }
        alarm.next = next;
        alarm.timer = (next != 0).then(|| timers.set(next, Ring::Alarm(Arc::downgrade(self))));
    }
}

impl Alarm {
    fn rest(&self, now: u64) -> (u64, u64) {
        match self.next {
            0 => (0, self.interval),
            // An alarm that is due, but not sent, is not over.
            next => (next.saturating_sub(now).max(1), self.interval),
        }
    }
}
