//! The alarm of a process: a signal at some time, perhaps again and again.

use super::{Process, Signal};
use crate::system::system;
use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use machine::{Clock, Scheduler};
use metal::Metal;

/// An alarm, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alarm {
    /// When the signal comes, by the machine's clock; 0 for never.
    next: u64,
    /// After how long it comes again; 0 for not at all.
    interval: u64,
    /// Whether a task serves it.
    is_served: bool,
}

/// How long the task sleeps before it checks whether another time was set.
const NAP: u64 = 10_000_000;

impl Process {
    /// Sends a signal in `first` nanoseconds, unless that is 0, and then after each `interval`, unless
    /// that is. Returns how long it was to the next one, and the interval.
    pub fn set_alarm(self: &Arc<Self>, first: u64, interval: u64) -> (u64, u64) {
        let now = Metal::now();
        let mut alarm = self.alarm.lock();
        let before = alarm.rest(now);
        alarm.next = if first == 0 {
            0
        } else {
            now.saturating_add(first)
        };
        alarm.interval = interval;
        if alarm.next != 0 && !alarm.is_served {
            alarm.is_served = true;
            let process = Arc::downgrade(self);
            system().scheduler.start(Box::new(move || serve(&process)));
        }
        before
    }

    /// How long it is to the next signal, and the interval.
    pub fn alarm(&self) -> (u64, u64) {
        self.alarm.lock().rest(Metal::now())
    }

    /// Sends the signal if it is due; returns when to look again.
    fn ring(&self) -> Option<u64> {
        let now = Metal::now();
        let mut alarm = self.alarm.lock();
        let is_due = alarm.next != 0 && alarm.next <= now;
        if is_due {
            alarm.next = match alarm.interval {
                0 => 0,
                // Missed signals come once.
                interval => alarm.next + (now - alarm.next) / interval * interval + interval,
            };
        }
        alarm.is_served = alarm.next != 0 && self.ending().is_none();
        let next = alarm.is_served.then_some(alarm.next.min(now + NAP));
        drop(alarm);
        if is_due {
            self.notify(Signal::ALARM);
        }
        next
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

fn serve(process: &Weak<Process>) {
    while let Some(next) = process.upgrade().and_then(|process| process.ring()) {
        Metal::sleep_until(next);
    }
}
