//! How times are distributed.

use serde::{Deserialize, Serialize};

/// Quantiles and a histogram of times, in seconds, each to about a tenth of its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The number of times.
    pub count: u64,
    /// All together; of times that lie in several intervals, the parts in this one.
    #[serde(default)]
    pub total: f64,
    /// Half of the times do not exceed this.
    pub p50: f64,
    /// 99 % do not exceed this.
    pub p99: f64,
    /// 99.9 % do not exceed this.
    pub p999: f64,
    /// The longest.
    pub worst: f64,
    /// How many there are, by powers of two.
    pub buckets: Vec<Bucket>,
}

/// Times between two powers of two of microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bucket {
    /// The upper bound, in seconds; the lower one is half of it, or 0 for the first bucket.
    pub below: f64,
    pub count: u64,
}
