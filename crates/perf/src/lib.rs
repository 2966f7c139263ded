//! What the kernel saw tasks do: busy stacks, lock waits and time off CPU, of some
//! processes and all that descends from them.
//!
//! Events are per CPU and sorted out here: events that tasks inherit slow `fork` down by
//! a quarter and add a lock of their own, which is what one would then find.
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
mod options;
mod recorder;
mod recording;
mod session;
pub mod support;
mod symbols;
mod tasks;

pub use error::Error;
pub use options::Options;
pub use recorder::Recorder;
pub use recording::{Clock, Recording};
