//! The time that one sample stands for.

use super::line::Header;
use crate::recording::Clock;
use std::collections::HashMap;

/// Distances between samples that are kept at most.
const MOST: usize = 1 << 20;

/// The periods of samples and the distances between them.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// The number of samples with a period, and the sum of these.
    periods: (u64, u128),
    /// When each CPU, or each thread if the CPU is not known, was last sampled.
    last: HashMap<(bool, u32), u64>,
    distances: Vec<u64>,
}

impl Pace {
    pub fn sample(&mut self, header: &Header<'_>) {
        if let Some(period) = header.period {
            self.periods.0 += 1;
            self.periods.1 += u128::from(period);
        }
        let place = header
            .cpu
            .map_or((false, header.tid), |number| (true, number));
        if let Some(before) = self.last.insert(place, header.time)
            && self.distances.len() < MOST
        {
            self.distances.push(header.time.saturating_sub(before));
        }
    }

    /// Seconds of CPU time that one sample stands for. The period of a clock is its nanoseconds.
    /// Cycles have none, so the distances between samples tell: those of a CPU that is busy are the
    /// short ones.
    pub fn seconds(mut self, clock: Option<Clock>) -> f64 {
        let (count, sum) = self.periods;
        if clock == Some(Clock::CpuClock) && count > 0 {
            return sum as f64 / count as f64 / 1e9;
        }
        self.distances.sort_unstable();
        let quarter = self.distances.get(self.distances.len() / 4);
        quarter.map_or(0.0, |&distance| distance as f64 / 1e9)
    }
}
