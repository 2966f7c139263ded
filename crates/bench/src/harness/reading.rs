//! The counters at one moment.

use super::Running;
use std::time::Duration;

/// The most attempts to read all counters within the required time.
const TRIES: usize = 50;

/// Each task's count at one moment.
///
/// The clock is read before and after the counters: the reading thread may lose its CPU in between,
/// and the tasks count on. Such a reading is repeated.
#[derive(Clone, Debug)]
pub struct Reading {
    /// By task.
    pub counts: Vec<u64>,
    /// The middle of the time that reading took, by the target's clock.
    pub at: Duration,
    /// The time that reading took: each counter was read in it.
    pub within: Duration,
}

impl Reading {
    /// Reads the counters of `tasks` tasks within `wanted`; if a few tries do not succeed, returns
    /// the reading that took the shortest time.
    pub fn of(running: &dyn Running, tasks: usize, wanted: Duration) -> Self {
        let mut best = Self::once(running, tasks);
        for _ in 1..TRIES {
            if best.within <= wanted {
                break;
            }
            let next = Self::once(running, tasks);
            if next.within < best.within {
                best = next;
            }
        }
        best
    }

    fn once(running: &dyn Running, tasks: usize) -> Self {
        let mut counts = vec![0; tasks];
        let before = running.now();
        running.counts(&mut counts);
        let within = running.now() - before;
        Reading {
            counts,
            at: before + within / 2,
            within,
        }
    }

    /// The first task whose count is less than it was in `earlier`. One that counts down from 0
    /// ends up near 2⁶⁴: no task counts 2⁶³ between two readings.
    pub fn backwards(&self, earlier: &Reading) -> Option<usize> {
        const MOST: u64 = i64::MAX as u64;
        let mut pairs = self.counts.iter().zip(&earlier.counts);
        pairs.position(|(now, then)| now.checked_sub(*then).is_none_or(|more| more > MOST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_below_zero_has_gone_back() {
        let reading = |counts: [u64; 2]| Reading {
            counts: counts.into(),
            at: Duration::ZERO,
            within: Duration::ZERO,
        };
        let earlier = reading([5, 0]);
        assert_eq!(reading([5, 1 << 60]).backwards(&earlier), None);
        assert_eq!(reading([4, 0]).backwards(&earlier), Some(0));
        assert_eq!(reading([5, u64::MAX]).backwards(&earlier), Some(1));
    }
}
