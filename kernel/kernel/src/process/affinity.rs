//! Threads go where they may run.

use super::{Thread, ThreadRef};
use crate::affinity::Affinity;
use crate::system::system;

impl ThreadRef {
    /// The thread runs nowhere else from when it is next about to go to user mode; where it is on
    /// another CPU in user mode, that is at once.
    pub fn set_affinity(&self, affinity: Affinity) {
        *self.affinity.lock() = affinity;
        self.call();
        metal::kick_others();
    }
}

impl Thread {
    /// Goes to a CPU where the thread may run, if this is none.
    pub(super) fn keep_bounds(&mut self) {
        let affinity = *self.shared.affinity.lock();
        if self.bounds != Some(affinity) {
            self.bounds = Some(affinity);
            let bind = || system().scheduler.bind(affinity);
            self.shared.usage.away(bind);
        }
    }
}
