//! Threads migrate to the CPUs where they may run.

use super::{Thread, ThreadRef};
use crate::affinity::Affinity;
use crate::system::system;

impl ThreadRef {
    /// Restricts the thread to these CPUs from its next return to user mode. If it is in user mode
    /// on another CPU, it is interrupted there, so it migrates at once.
    pub fn set_affinity(&self, affinity: Affinity) {
        *self.affinity.lock() = affinity;
        self.call();
        metal::kick_others();
    }
}

impl Thread {
    /// Migrates to a CPU where the thread may run, if this one is not.
    pub(super) fn keep_bounds(&mut self) {
        let affinity = *self.shared.affinity.lock();
        if self.bounds != Some(affinity) {
            self.bounds = Some(affinity);
            let bind = || system().scheduler.bind(affinity);
            self.shared.usage.away(bind);
        }
    }
}
