//! Signals: how they are sent and delivered.
//!
//! A thread takes its signals when it is about to return to user mode. A signal that the process
//! ignores is dropped, unless the thread blocks it.

mod action;
mod deliver;
mod frame;
mod info;
mod pending;
mod send;
mod stack;

pub use action::{Action, Handlers};
pub use info::Info;
pub use pending::Pending;
pub use stack::SignalStack;

use crate::errno::Errno;

/// A signal's number, 1 to 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signal(u32);

/// A set of signals: bit *n* - 1 is signal *n*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Set(pub u64);

/// The highest number of a signal.
const MOST: usize = 64;
/// The first signal that may be pending several times.
const FIRST_QUEUED: u32 = 32;

#[allow(missing_docs)] // the system's own names
impl Signal {
    pub const HANGUP: Signal = Signal(1);
    pub const INTERRUPT: Signal = Signal(2);
    pub const QUIT: Signal = Signal(3);
    pub const ILL: Signal = Signal(4);
    pub const TRAP: Signal = Signal(5);
    pub const BUS: Signal = Signal(7);
    pub const FPE: Signal = Signal(8);
    pub const KILL: Signal = Signal(9);
    pub const SEGV: Signal = Signal(11);
    pub const PIPE: Signal = Signal(13);
    pub const ALARM: Signal = Signal(14);
    pub const CHILD: Signal = Signal(17);
    pub const CONTINUE: Signal = Signal(18);
    pub const STOP: Signal = Signal(19);
    pub const TERMINAL_STOP: Signal = Signal(20);
    pub const TERMINAL_INPUT: Signal = Signal(21);
    pub const TERMINAL_OUTPUT: Signal = Signal(22);
    pub const FILE_SIZE: Signal = Signal(25);
    pub const VIRTUAL_ALARM: Signal = Signal(26);
    pub const PROFILE: Signal = Signal(27);
    pub const WINDOW: Signal = Signal(28);
    pub const IO: Signal = Signal(29);
}

impl Signal {
    /// The signal with this number.
    pub fn new(number: usize) -> Result<Self, Errno> {
        match number {
            1..=MOST => Ok(Signal(number as u32)),
            _ => Err(Errno::INVAL),
        }
    }

    /// The signal's number.
    pub fn number(self) -> u32 {
        self.0
    }

    /// Returns true if the default action stops the process.
    fn stops(self) -> bool {
        Set::STOPS.has(self)
    }

    /// Returns true if the default action is to do nothing: `CHLD`, `CONT`, `URG`, `WINCH`.
    fn is_ignored_by_default(self) -> bool {
        matches!(self.0, 17 | 18 | 23 | 28)
    }

    /// Returns true if several may be pending.
    fn is_queued(self) -> bool {
        self.0 >= FIRST_QUEUED
    }

    /// The set with only this signal.
    pub const fn set(self) -> Set {
        Set(1 << (self.0 - 1))
    }
}

impl Set {
    /// The empty set.
    pub const EMPTY: Set = Set(0);
    /// The signals that stop a process: `STOP`, `TSTP`, `TTIN`, `TTOU`.
    const STOPS: Set = Set(0b1111 << (Signal::STOP.0 - 1));

    /// Returns true if the set contains `signal`.
    pub fn has(self, signal: Signal) -> bool {
        self.0 & signal.set().0 != 0
    }

    /// The set without signals that cannot be blocked.
    pub fn maskable(self) -> Self {
        Set(self.0 & !(Signal::KILL.set().0 | Signal::STOP.set().0))
    }
}
