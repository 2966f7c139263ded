//! Hooks for tests, at moments in the machine's life.

use crate::Hosted;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A moment in the life of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Probe {
    /// A CPU is about to shoot down: the tables are changed, no TLB is flushed yet. A hook that
    /// holds the CPU here keeps the window open in which stale entries are used.
    BeforeShootdown {
        /// The initiator's index.
        cpu: usize,
    },
}

/// A function called at each [`Probe`].
pub type ProbeHook = Arc<dyn Fn(Probe) + Send + Sync>;

#[derive(Default)]
pub(crate) struct Hook {
    /// True if there is a hook, so that a probe without one takes no lock.
    armed: AtomicBool,
    hook: Mutex<Option<ProbeHook>>,
}

impl Hook {
    fn hook(&self) -> MutexGuard<'_, Option<ProbeHook>> {
        self.hook.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub(crate) fn reach(&self, probe: Probe) {
        // Acquire: pairs with the release in `set_probe`.
        if self.armed.load(Ordering::Acquire) {
            // The lock is not held during the call: other CPUs may pass meanwhile.
            let hook = self.hook().clone();
            if let Some(hook) = hook {
                hook(probe);
            }
        }
    }
}

impl Hosted {
    /// Calls `hook` at each [`Probe`] from now on, on the CPU that reaches it; `None` ends that. A
    /// call in progress continues. Without a hook a probe costs one load.
    pub fn set_probe(&self, hook: Option<ProbeHook>) {
        let mut current = self.inner.hook.hook();
        self.inner
            .hook
            .armed
            .store(hook.is_some(), Ordering::Release);
        *current = hook;
    }
}
