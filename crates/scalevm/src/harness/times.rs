//! Times as time(1) prints them.

use std::time::Duration;

/// What a run with an end took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// From the beginning to the end.
    pub real: Duration,
    /// The tasks' time outside of the kernel, of all together.
    pub user: Duration,
    /// Their time in it, that in which they waited for its locks included.
    pub sys: Duration,
}
