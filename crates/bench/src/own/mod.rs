//! Workloads of the user's own: a C file in will-it-scale's shape, a shared object made
//! from one, a command.
//!
//! Such code may do anything: never return, abort, leave threads, processes and signal
//! handlers behind. So it never runs in scalevm's own process, but in a *host*: this
//! program started once more (`scalevm host`, see [`host`]), not a fork of it. A fork
//! would inherit scalevm's state: locks that other threads held, handlers, a heap; and
//! libc would treat the locks of a test case as ones that threads may share, which
//! changes the measurement. The host starts like any program.
//!
//! Scalevm and the host share the tasks' counters (an [`Area`](crate::tasks::Area)) and a
//! `channel`. The host and all it starts form one process group, which is killed as a
//! whole at the end, and by the host's death signal should scalevm be killed.

mod channel;
mod command;
mod compile;
mod guest;
pub mod host;
mod open;
mod process;

#[cfg(feature = "ours")]
pub(crate) use compile::{Directory, compile_static};
pub use guest::start;
pub use open::{Opened, open, repeat};
pub use process::Setting;
