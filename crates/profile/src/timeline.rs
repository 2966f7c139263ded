//! What the tasks waited for when.

use serde::{Deserialize, Serialize};

/// The tasks' waits in slices of the time for which they were watched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// Seconds of a slice.
    pub slice: f64,
    pub rows: Vec<Row>,
}

/// A lock, or another thing that tasks waited for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub name: String,
    /// Seconds of task time in each slice; slices at the end in which there is nothing may be left
    /// out.
    pub seconds: Vec<f64>,
}

impl Row {
    /// Seconds in all slices.
    pub fn total(&self) -> f64 {
        self.seconds.iter().sum()
    }
}
