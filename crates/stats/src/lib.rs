//! Samples, comparisons, scaling curves and result records.
//!
//! All processing of a finished measurement, as pure functions over numbers, text and files:
//!
//! - [`ministat`]: the table, plot and Student's t that readers know (case study 000 prints them);
//! - [`verdict`]: faster, slower, or no difference shown: from interleaved runs, by a rank test and
//!   an exact interval;
//! - [`curve`] and [`usl`]: the shape of a throughput curve as CPUs are added, in words and as a
//!   law;
//! - [`record`] and [`environment`]: results as JSON lines, with the machine they come from;
//! - [`store`], [`history`] and [`export`]: results kept over time, what changed in them and when
//!   ([`change`]), and will-it-scale's table.
//!
//! Nothing here measures a workload, prints, or exits: the command does. Files are not trusted: an
//! invalid one gives an [`InputError`] that names file, line and reason.

pub mod change;
pub mod curve;
pub mod environment;
mod exit;
pub mod export;
mod format;
pub mod history;
mod input;
pub mod interval;
pub mod ministat;
pub mod record;
pub mod store;
mod text;
mod time;
pub mod usl;
pub mod verdict;

pub use exit::Exit;
pub use format::{count, duration, figure, general, metric, ratio};
pub use input::{InputError, for_each_line, from_json};
pub use text::{printable, shortened};
pub use time::{Time, TimeError};
