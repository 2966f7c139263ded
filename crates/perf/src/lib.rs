//! The kernel's view of tasks: busy stacks, lock waits and time off CPU, of given processes and all
//! their descendants, of a control group, or of all processes.
//!
//! Events are opened per CPU and sorted out here: events that tasks inherit slow `fork` down by a
//! quarter and add a lock of their own, which the profile would then show.
//!
//! ```no_run
//! let mut recorder = perf::Recorder::open(&perf::Options::default(), &[4711])?;
//! recorder.start()?;
//! std::thread::sleep(std::time::Duration::from_secs(1));
//! let recording = recorder.finish()?;
//! println!("{}", recording.busy().folded());
//! # Ok::<(), perf::Error>(())
//! ```

mod account;
mod error;
mod event;
mod locks;
pub mod operations;
mod recorder;
mod recording;
pub mod script;
mod session;
pub mod support;
mod symbols;
mod tasks;
mod unwind;
mod whom;

pub use error::Error;
pub use recorder::{Options, Recorder};
pub use recording::{Clock, Recording};
pub use tasks::Cgroup;
pub use whom::Whom;
