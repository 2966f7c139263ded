//! A CPU of a crew, and its interrupts: timers, kicks, and jobs that arrive from outside.
//!
//! They are delivered at safe points: where a task says so, and where the CPU waits for them. A CPU
//! that waits is woken; any other one looks at its flag and its timer, by the clock, at its next
//! safe point.

use crate::crew::Crew;
use crate::permit::Permit;
use crate::{Hosted, Off};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use machine::{Clock, Cpus, Job};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// A CPU that runs tasks. Fields that it alone writes are relaxed throughout.
#[repr(align(128))]
pub(crate) struct Member {
    /// The context that it runs. Only the CPU accesses it.
    pub(crate) context: AtomicUsize,
    /// When its timer interrupts it. Only the CPU accesses it.
    timer: AtomicU64,
    /// Given for an interrupt by another CPU, or by the thread that brings a job.
    wake: Permit,
    /// Jobs that it has not given to the scheduler yet.
    jobs: Mutex<VecDeque<Job>>,
    /// The time that the tasks that came back here had been off CPUs. Written by the CPU, read by
    /// any.
    blocked: AtomicU64,
    queued: AtomicU64,
}

impl Member {
    /// A CPU that runs its own context.
    pub(crate) fn new(context: usize) -> Self {
        Member {
            context: AtomicUsize::new(context),
            timer: AtomicU64::new(u64::MAX),
            wake: Permit::new(),
            jobs: Mutex::default(),
            blocked: AtomicU64::new(0),
            queued: AtomicU64::new(0),
        }
    }

    /// Interrupts the CPU.
    pub(crate) fn interrupt(&self) {
        self.wake.give();
    }

    /// Adds a job for the scheduler to the CPU's queue.
    pub(crate) fn bring(&self, job: Job) {
        let jobs = self.jobs.lock();
        jobs.unwrap_or_else(PoisonError::into_inner).push_back(job);
        self.interrupt();
    }

    fn take_job(&self) -> Option<Job> {
        let jobs = self.jobs.lock();
        jobs.unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// Sets the CPU's timer to `time`.
    pub(crate) fn set_timer(&self, time: u64) {
        self.timer.store(time, Ordering::Relaxed);
    }

    /// When its timer interrupts the CPU, if it is set.
    fn timer(&self) -> Option<u64> {
        Some(self.timer.load(Ordering::Relaxed)).filter(|&time| time < u64::MAX)
    }

    fn is_due(&self) -> bool {
        self.timer().is_some_and(|time| time <= Hosted::now())
    }

    /// Charges the time that a task, now back on this CPU, was off CPUs.
    pub(crate) fn charge(&self, off: Off) {
        let add = |sum: &AtomicU64, time| {
            sum.store(sum.load(Ordering::Relaxed) + time, Ordering::Relaxed);
        };
        add(&self.blocked, off.blocked);
        add(&self.queued, off.queued);
    }

    /// The time charged so far.
    pub(crate) fn off(&self) -> Off {
        Off {
            blocked: self.blocked.load(Ordering::Relaxed),
            queued: self.queued.load(Ordering::Relaxed),
        }
    }
}

impl Crew {
    /// Delivers the calling CPU's interrupts, unless the task is known to hold a pin.
    pub(crate) fn safe_point(&'static self) {
        if self.is_interrupted() && Hosted::pins() == 0 {
            self.deliver();
        }
    }

    /// Returns true if the calling CPU has an interrupt.
    pub(crate) fn is_interrupted(&self) -> bool {
        let me = self.here();
        me.wake.is_given() || me.is_due()
    }

    #[cold]
    fn deliver(&'static self) {
        let me = self.here();
        if me.is_due() {
            me.set_timer(u64::MAX);
        }
        if me.wake.take() {
            while let Some(job) = me.take_job() {
                self.scheduler().start(job);
                self.has_ended();
            }
        }
        self.scheduler().interrupt();
    }

    /// Waits until the calling CPU has an interrupt.
    pub(crate) fn wait_for_interrupt(&self) {
        loop {
            if self.is_done() {
                self.rest();
            } else if self.is_interrupted() {
                return;
            } else {
                let me = self.here();
                let left = |time: u64| time.saturating_sub(Hosted::now());
                me.wake.wait(me.timer().map(left));
            }
        }
    }
}
