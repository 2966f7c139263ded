//! Tasks that wait for a time.
//!
//! A sleeper's node lies on its stack and is in the queue of the CPU on which it went to sleep,
//! until that CPU wakes it. The task enters the queue and leaves the CPU under one pin, so the CPU
//! finds it there only when it has left. It is not parked: an unpark meanwhile leaves a permit for
//! later.

use crate::heap::Node;
use crate::{Leaving, Policy, Sched, Why};
use machine::Contexts;

impl<M: Contexts, P: Policy<M>> Sched<M, P> {
    /// Puts the calling task to sleep until `time`.
    pub(crate) fn sleep(&self, time: u64) {
        if M::now() >= time {
            return;
        }
        let node = Node::new();
        let pin = M::pin();
        let cpu = self.cpus.get(&pin);
        let task = cpu.current(&pin).expect("a task sleeps, not a CPU");
        // SAFETY: the node is new. The task goes on, and the node is dropped, only after
        // `wake_sleepers` has popped it.
        cpu.sleepers(&pin, |sleepers| unsafe {
            sleepers.push(&node, time, task);
        });
        self.leave(pin, Leaving::Sleeps);
    }

    /// Wakes the calling CPU's sleepers whose time has come.
    pub(crate) fn wake_sleepers(&self, pin: &M::Pin, now: u64) {
        let cpu = self.cpus.get(pin);
        while cpu.first_sleeper(pin) <= now {
            let Some((_, task)) = cpu.sleepers(pin, |sleepers| sleepers.pop()) else {
                return;
            };
            self.hand_over(pin, task, Why::Woken, now);
        }
    }
}
