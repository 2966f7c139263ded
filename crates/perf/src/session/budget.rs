//! What recording may cost.
//!
//! To record an acquisition or a release of a lock takes its thread about as long as a small system
//! call. A program that maps and unmaps in a loop would run at a third of its speed, so they are
//! recorded all the time only where they are rare, and in windows of time where they are not.

/// Nanoseconds that a record costs its thread, on a slow computer.
const RECORD: u64 = 2_000;
/// Of this number of nanoseconds one may go to recording.
const PART: u64 = 50;
/// Nanoseconds that may be spent at once, which makes windows long enough for a fork of a large
/// process.
const BURST: u64 = 40_000_000;

/// The time that the busiest CPU has spent on recording beyond what it may, and since when.
#[derive(Debug)]
pub(super) struct Budget {
    on: bool,
    owed: u64,
    time: u64,
}

impl Budget {
    pub fn new(time: u64) -> Budget {
        Budget {
            on: false,
            owed: 0,
            time,
        }
    }

    /// Returns true if it should be recorded now.
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Charges for `records` up to `time`.
    pub fn charge(&mut self, records: usize, time: u64) {
        let earned = time.saturating_sub(self.time) / PART;
        self.owed = (self.owed + RECORD * records as u64).saturating_sub(earned);
        self.time = time;
        self.on = match self.on {
            true => self.owed < BURST,
            false => self.owed == 0,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of 20 seconds in which it is on, and the records taken then, at a rate per second.
    fn recorded(rate: u64) -> (f64, u64) {
        const ROUND: u64 = 10_000_000;
        let mut budget = Budget::new(0);
        budget.charge(0, 0);
        let (mut on, mut taken) = (0, 0);
        for round in 1..=2_000 {
            let records = match budget.is_on() {
                true => rate / 100,
                false => 0,
            };
            on += u64::from(budget.is_on());
            taken += records;
            budget.charge(records as usize, round * ROUND);
        }
        (on as f64 / 2_000.0, taken)
    }

    #[test]
    fn what_is_rare_is_recorded_all_the_time() {
        assert_eq!(recorded(9_000).0, 1.0);
    }

    #[test]
    fn what_is_frequent_costs_a_bounded_part() {
        for rate in [50_000, 200_000, 1_000_000] {
            let (on, taken) = recorded(rate);
            let cost = (taken * RECORD) as f64 / 20e9;
            assert!(cost > 0.01 && cost < 0.03, "{rate}: {cost}");
            assert!(on < 1.0, "{rate}: {on}");
        }
    }
}
