//! OpenBSD around 7.0 (autumn 2021), the system of seed 003.

mod mplock;
mod rwlock;
mod sleep;

pub use mplock::MpLock;
pub use rwlock::SleepRw;
pub use sleep::{KernelLock, SchedLock, Scheduler};
