//! Readers that do not leave: a bound on the memory they hold, and a hook.

use super::{Domain, Protocol};
use alloc::boxed::Box;
use machine::Machine;

/// A domain's settings for memory and for readers that stay.
pub struct Options {
    /// The most callbacks pending on one CPU, at least 1; [`Domain::call`] says how exact it is.
    /// 16,384 by default.
    pub limit: usize,
    /// Called in each round of waiting for a reader, with no lock held and the task not pinned. A
    /// kernel can use it to raise the reader's priority, reschedule the reader's CPU or block the
    /// waiter. None by default; every round also relaxes the CPU ([`machine::Cpus::relax`]), which
    /// yields on machines that can be preempted.
    pub on_stall: Option<Box<dyn Fn(Stall) + Send + Sync>>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            limit: 16_384,
            on_stall: None,
        }
    }
}

/// A reader that delays a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// The index of the CPU with the oldest section.
    pub cpu: usize,
    /// Rounds that this wait has lasted so far, from 0.
    pub round: u32,
}

/// Why a step could not finish.
#[derive(Clone, Copy)]
pub(super) enum Blocked {
    /// The oldest section, on this CPU, is in the way.
    Reader(usize),
    /// Another CPU is running the callbacks.
    Busy,
}

impl<M: Machine, P: Protocol> Domain<M, P> {
    /// The most callbacks that may be pending on a CPU.
    pub(super) fn limit(&self) -> usize {
        self.options.limit.max(1)
    }

    /// One round of waiting.
    pub(super) fn stalled(&self, blocked: Blocked, round: u32) {
        M::relax(round);
        // A CPU that runs callbacks is pinned and soon done; only readers need help.
        if let (Blocked::Reader(cpu), Some(hook)) = (blocked, &self.options.on_stall) {
            hook(Stall { cpu, round });
        }
    }
}
