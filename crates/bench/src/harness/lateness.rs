//! The lateness of a film's frames.

use super::{Failure, Film, Plan, Target};
use std::time::Duration;
use workloads::Frame;

/// The lateness of a film's frames beyond a frame's time on an idle machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lateness {
    /// The median time of a frame on an idle machine.
    pub idle: Duration,
    /// The median lateness of the frames that were shown.
    pub median: Duration,
    /// The lateness that only one frame of a hundred exceeds, or the worst of fewer.
    pub most: Duration,
    pub worst: Duration,
    pub frames: usize,
    /// The number not ready when the next was due, the skipped among them.
    pub dropped: usize,
}

impl Lateness {
    /// Plays a film of `frames` frames, first alone, and then as the last task of `plan` while the
    /// others run their workload.
    pub fn watch(target: &dyn Target, plan: &Plan, frames: usize) -> Result<Self, Failure> {
        let background = plan.workload.known()?;
        let play = |tasks| {
            let film = Film::new(background, frames);
            let plan = Plan {
                workload: film.into(),
                tasks,
                ..*plan
            };
            target.play(&plan, film).map(|()| film.frames())
        };
        let alone = play(1)?;
        Ok(Self::of(&play(plan.tasks)?, &alone))
    }

    /// The lateness of `frames`, given those of the film played alone.
    pub fn of(frames: &[Frame], alone: &[Frame]) -> Self {
        let taken = sorted(frames);
        let idle = rank(&sorted(alone), 0.5);
        let late = |part| rank(&taken, part).saturating_sub(idle);
        Lateness {
            idle,
            median: late(0.5),
            most: late(0.99),
            worst: late(1.0),
            frames: frames.len(),
            dropped: frames.iter().filter(|frame| frame.is_dropped()).count(),
        }
    }
}

/// The times of the frames that were shown, ascending.
fn sorted(frames: &[Frame]) -> Vec<Duration> {
    let shown = frames.iter().filter_map(|frame| match frame {
        Frame::Shown(after) => Some(Duration::from_nanos(*after)),
        Frame::Skipped => None,
    });
    let mut shown: Vec<Duration> = shown.collect();
    shown.sort_unstable();
    shown
}

/// The least time that `part` of them do not exceed.
fn rank(sorted: &[Duration], part: f64) -> Duration {
    let place = (part * sorted.len() as f64).ceil() as usize;
    let found = sorted.get(place.saturating_sub(1));
    found.copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_late_after_what_they_take_alone() {
        let shown = |ms: u64| Frame::Shown(ms * 1_000_000);
        let alone = [shown(4), shown(5), shown(4)];
        let frames: Vec<Frame> = (1..=98)
            .map(|n| shown(if n <= 60 { 4 } else { 9 }))
            .chain([shown(20), shown(30), Frame::Skipped])
            .collect();
        let late = Lateness::of(&frames, &alone);
        let ms = Duration::from_millis;
        assert_eq!(late.idle, ms(4));
        assert_eq!(
            (late.median, late.most, late.worst),
            (ms(0), ms(16), ms(26))
        );
        assert_eq!((late.frames, late.dropped), (101, 3));
    }

    #[test]
    fn nothing_shown_is_no_lateness() {
        let late = Lateness::of(&[Frame::Skipped], &[]);
        assert_eq!((late.worst, late.dropped), (Duration::ZERO, 1));
    }
}
