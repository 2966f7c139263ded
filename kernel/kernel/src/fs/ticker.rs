//! Timers that are files (`timerfd`): a read tells how often the timer has expired.
//!
//! A timer that has expired is not set again before that is read, so one with a short interval
//! costs nothing meanwhile.

use super::Event;
use super::event::BYTES;
use crate::errno::Errno;
use crate::system::Lock;
use crate::timers::{Ring, TIMERS, Timer};
use alloc::sync::Arc;
use ipc::Pipe;
use machine::Clock;
use metal::Metal;

/// A timer. It is cancelled when its file is dropped.
pub struct Ticker {
    /// True if its times are the wall clock's.
    pub is_of_wall: bool,
    state: Arc<State>,
}

struct State {
    plan: Lock<Plan>,
    /// Not 0 once the timer has expired. Changed under the lock of the plan, except that a reader
    /// takes it before that.
    expired: Event,
}

/// When a timer expires, in nanoseconds.
#[derive(Default)]
struct Plan {
    /// The first time that nobody has read; 0 for never.
    next: u64,
    /// The time between it and the others; 0 if there are none.
    interval: u64,
    /// The timer that is set for it.
    timer: Option<Timer>,
}

impl Plan {
    /// The time until it expires again, and the interval.
    fn rest(&self, now: u64) -> (u64, u64) {
        let rest = match (self.next.checked_sub(now), self.interval) {
            (Some(rest), _) => rest,
            (None, 0) => 0,
            (None, _) if self.next == 0 => 0,
            (None, interval) => interval - (now - self.next) % interval,
        };
        (rest, self.interval)
    }

    /// Returns how often it has expired, and plans the next time.
    fn take(&mut self, now: u64) -> u64 {
        if self.next == 0 || now < self.next {
            return 0;
        }
        if self.interval == 0 {
            self.next = 0;
            return 1;
        }
        let times = (now - self.next) / self.interval + 1;
        self.next += times * self.interval;
        times
    }
}

impl State {
    /// Sets the timer for the next time, instead of the one that is set.
    fn wind(self: &Arc<Self>, plan: &mut Plan) {
        let timers = &*TIMERS;
        if let Some(timer) = plan.timer.take() {
            timers.cancel(timer);
        }
        if plan.next == 0 {
            return;
        }
        if plan.next <= Metal::now() {
            self.expired.add(1);
        } else {
            plan.timer = Some(timers.set(plan.next, self.clone()));
        }
    }
}

impl Ring for State {
    fn ring(self: Arc<Self>) {
        let plan = self.plan.lock();
        if plan.next != 0 && plan.next <= Metal::now() {
            self.expired.add(1);
        }
    }
}

impl Ticker {
    /// A timer that is not set.
    pub fn new(is_of_wall: bool) -> Result<Self, Errno> {
        let state = Arc::new(State {
            plan: Lock::new(Plan::default()),
            expired: Event::new(0, false)?,
        });
        Ok(Ticker { is_of_wall, state })
    }

    /// Sets it to expire at the time `next`, unless that is 0, and then after each `interval`,
    /// unless that is 0. Returns the time that was left before, and the interval.
    pub fn set(&self, next: u64, interval: u64) -> (u64, u64) {
        let mut plan = self.state.plan.lock();
        let before = plan.rest(Metal::now());
        self.state.expired.take();
        (plan.next, plan.interval) = (next, interval);
        self.state.wind(&mut plan);
        before
    }

    /// The time until it expires again, and the interval.
    pub fn rest(&self) -> (u64, u64) {
        self.state.plan.lock().rest(Metal::now())
    }

    /// Reads how often it has expired, and waits for one time while `waits` returns true; `None`
    /// once it does not.
    pub fn read(&self, to: &mut [u8], waits: impl Fn() -> bool) -> Result<Option<usize>, Errno> {
        let to = to.get_mut(..BYTES).ok_or(Errno::INVAL)?;
        while self.state.expired.read(to, &waits)?.is_some() {
            let mut plan = self.state.plan.lock();
            let times = plan.take(Metal::now());
            // It may have been set anew meanwhile.
            if times > 0 {
                self.state.wind(&mut plan);
                to.copy_from_slice(&times.to_le_bytes());
                return Ok(Some(BYTES));
            }
        }
        Ok(None)
    }

    /// Returns true if it has expired, and nobody has read that.
    pub fn is_ready(&self) -> bool {
        self.state.expired.is_ready()[0]
    }

    /// The pipe at which pollers wait for that.
    pub fn signal(&self) -> &Arc<Pipe<Metal>> {
        self.state.expired.signal()
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.set(0, 0);
    }
}
