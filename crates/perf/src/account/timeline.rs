//! What threads did when, in slices of time.

use super::StackId;
use std::collections::HashMap;

/// Slices at most; an even number.
const MOST: u64 = 240;
/// Nanoseconds of a slice at first.
const WIDTH: u64 = 1_000_000;

/// What a thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Doing {
    /// On a CPU, as samples saw.
    Sampled(StackId),
    /// Off CPU, without wanting to run.
    Asleep(StackId),
    /// Ready to run, without a CPU.
    Queued(StackId),
    /// Within a traced wait for a lock, by the stack and flags at its beginning.
    Waiting(StackId, u32),
}

/// Nanoseconds by slice, or the number of samples. When the recording gets longer than the slices
/// reach, each two become one, so their number is bounded.
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
            *at(slices, slice) += end - from;
            from = end;
        }
    }

    /// Deals the time of what was done at `from` out to other places, by their shares.
    pub fn deal(&mut self, doing: fn(StackId) -> Doing, from: StackId, to: &HashMap<StackId, f64>) {
        let all = self.slices.remove(&doing(from)).unwrap_or_default();
        for (&stack, share) in to {
            let slices = self.slices.entry(doing(stack)).or_default();
            slices.resize(slices.len().max(all.len()), 0);
            for (slice, &time) in slices.iter_mut().zip(&all) {
                *slice += (time as f64 * share).round() as u64;
            }
        }
    }

    /// Counts a sample at `time`.
    pub fn count(&mut self, doing: Doing, time: u64) {
        let time = time.saturating_sub(self.began);
        while time >= MOST * self.width {
            self.widen();
        }
        *at(self.slices.entry(doing).or_default(), time / self.width) += 1;
    }

    /// Makes one slice of each two.
    fn widen(&mut self) {
        self.width *= 2;
        for slices in self.slices.values_mut() {
            *slices = slices.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
    }
}

/// The slice with this number, which is 0 if it is new.
fn at(slices: &mut Vec<u64>, number: u64) -> &mut u64 {
    let number = number as usize;
    slices.resize(slices.len().max(number + 1), 0);
    &mut slices[number]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_dealt_over_its_slices() {
        let mut line = Timeline::new(1_000);
        line.add(Doing::Queued(1), 0, 1_000 + 2 * WIDTH + 5);
        assert_eq!(line.slices[&Doing::Queued(1)], [WIDTH, WIDTH, 5]);
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

    #[test]
    fn samples_are_counted_in_their_slices() {
        let mut line = Timeline::new(5);
        for time in [0, 5, 5 + WIDTH, 5 + MOST * WIDTH] {
            line.count(Doing::Sampled(1), time);
        }
        let counts = &line.slices[&Doing::Sampled(1)];
        assert_eq!((line.width, counts[0]), (2 * WIDTH, 3));
        assert_eq!(
            (counts.len() as u64, counts.last()),
            (MOST / 2 + 1, Some(&1))
        );
    }
}
