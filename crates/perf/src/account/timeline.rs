//! What threads waited for when, in slices of time.

use super::StackId;
use std::collections::HashMap;

/// Slices at most; an even number.
const MOST: u64 = 240;
/// Nanoseconds of a slice at first.
const WIDTH: u64 = 1_000_000;

/// What a thread did when it did not work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Doing {
    /// Off CPU, without wanting to run.
    Asleep(StackId),
    /// Ready to run, without a CPU.
    Queued,
    /// Within a traced wait for a lock, by the stack and flags at its beginning.
    Waiting(StackId, u32),
}

/// Nanoseconds by slice. When the recording gets longer than the slices reach, each two become one,
/// so their number is bounded.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    began: u64,
    /// Nanoseconds of a slice.
    pub width: u64,
    pub slices: HashMap<Doing, Vec<u64>>,
}

impl Default for Timeline {
    fn default() -> Timeline {
        Timeline::new(0)
    }
}

impl Timeline {
    /// Nothing yet, from `began` on.
    pub fn new(began: u64) -> Timeline {
        Timeline {
            began,
            width: WIDTH,
            slices: HashMap::new(),
        }
    }

    /// Adds the time from `from` to `to`; what lies before the beginning does not count.
    pub fn add(&mut self, doing: Doing, from: u64, to: u64) {
        let (mut from, to) = (
            from.saturating_sub(self.began),
            to.saturating_sub(self.began),
        );
        while to > MOST * self.width {
            self.widen();
        }
        let slices = self.slices.entry(doing).or_default();
        while from < to {
            let slice = from / self.width;
            let end = to.min((slice + 1) * self.width);
            if slices.len() as u64 <= slice {
                slices.resize(slice as usize + 1, 0);
            }
            slices[slice as usize] += end - from;
            from = end;
        }
    }

    /// Deals the sleep at `from` out to other places, by their shares.
    pub fn deal(&mut self, from: StackId, shares: &HashMap<StackId, f64>) {
        let slept = self.slices.remove(&Doing::Asleep(from)).unwrap_or_default();
        for (&stack, share) in shares {
            let slices = self.slices.entry(Doing::Asleep(stack)).or_default();
            slices.resize(slices.len().max(slept.len()), 0);
            for (slice, &time) in slices.iter_mut().zip(&slept) {
                *slice += (time as f64 * share).round() as u64;
            }
        }
    }

    /// Makes one slice of each two.
    fn widen(&mut self) {
        self.width *= 2;
        for slices in self.slices.values_mut() {
            *slices = slices.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_dealt_over_its_slices() {
        let mut line = Timeline::new(1_000);
        line.add(Doing::Queued, 0, 1_000 + 2 * WIDTH + 5);
        assert_eq!(line.slices[&Doing::Queued], [WIDTH, WIDTH, 5]);
    }

    #[test]
    fn a_long_recording_has_wider_slices_and_all_of_the_time() {
        let mut line = Timeline::new(0);
        line.add(Doing::Waiting(1, 2), 0, WIDTH);
        line.add(Doing::Waiting(1, 2), 10 * WIDTH, 11 * WIDTH);
        let end = 4 * MOST * WIDTH;
        line.add(Doing::Asleep(7), end - 3, end);
        assert_eq!(line.width, 4 * WIDTH);
        let waiting = &line.slices[&Doing::Waiting(1, 2)];
        assert_eq!(waiting[..], [WIDTH, 0, WIDTH]);
        let asleep = &line.slices[&Doing::Asleep(7)];
        assert_eq!((asleep.len() as u64, asleep.iter().sum()), (MOST, 3));
    }
}
