//! A process's actions at signals.

use super::{MOST, Set, Signal};
use alloc::sync::Arc;
use linux_raw_sys::general::{SA_NOCLDSTOP, SA_NOCLDWAIT};

/// The action at a signal, as `rt_sigaction` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// [`Action::DEFAULT`], [`Action::IGNORE`], or where the handler begins.
    pub handler: usize,
    /// The flags `SA_…`.
    pub flags: u32,
    /// Where the handler returns to.
    pub restorer: usize,
    /// Signals that are blocked while the handler runs.
    pub mask: Set,
}

/// A process's action at each signal. A child shares them with its parent until either changes one.
#[derive(Clone)]
pub struct Handlers(Arc<[Action; MOST + 1]>);

impl Action {
    /// The system's default for the signal.
    pub const DEFAULT: usize = 0;
    /// The signal is ignored.
    pub const IGNORE: usize = 1;
}

impl Handlers {
    /// The default action for all signals.
    pub fn new() -> Self {
        Handlers(Arc::new(
            [Action {
                handler: Action::DEFAULT,
                flags: 0,
                restorer: 0,
                mask: Set::EMPTY,
            }; _],
        ))
    }

    /// The action at a signal.
    pub fn get(&self, signal: Signal) -> Action {
        self.0[signal.number() as usize]
    }

    /// Sets the action at a signal.
    pub fn set(&mut self, signal: Signal, action: Action) {
        Arc::make_mut(&mut self.0)[signal.number() as usize] = action;
    }

    /// Resets to a new program's actions: no handlers, and ignored signals stay ignored.
    pub fn forget(&mut self) {
        for action in Arc::make_mut(&mut self.0) {
            if action.handler != Action::IGNORE {
                action.handler = Action::DEFAULT;
            }
            action.flags = 0;
        }
    }

    /// The signals that are explicitly ignored, and those that have handlers.
    pub fn sets(&self) -> [Set; 2] {
        let of = |such: fn(usize) -> bool| {
            let numbers = (1..=MOST).filter(|&number| such(self.0[number].handler));
            Set(numbers.map(|number| 1 << (number - 1)).sum())
        };
        [
            of(|handler| handler == Action::IGNORE),
            of(|handler| !matches!(handler, Action::DEFAULT | Action::IGNORE)),
        ]
    }

    /// Returns true if a signal has no effect.
    pub fn ignores(&self, signal: Signal) -> bool {
        match self.0[signal.number() as usize].handler {
            Action::DEFAULT => signal.is_ignored_by_default(),
            Action::IGNORE => true,
            _ => false,
        }
    }

    /// Returns true if children that end leave nothing to wait for.
    pub fn ignores_ends(&self) -> bool {
        let action = &self.0[Signal::CHILD.number() as usize];
        action.handler == Action::IGNORE || action.flags & SA_NOCLDWAIT != 0
    }

    /// Returns true if the process is to be told that children stop.
    pub fn hears_stops(&self) -> bool {
        self.0[Signal::CHILD.number() as usize].flags & SA_NOCLDSTOP == 0
    }
}
