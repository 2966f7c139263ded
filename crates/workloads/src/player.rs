//! A player: a task with a deadline 60 times a second (S21 of case study 003).

use crate::steps::{expect, send, with_ends, with_mapping};
use crate::{Backing, Descriptor, Error, Feature, System};

/// Nanoseconds from frame to frame: 60 Hz.
pub const PERIOD: u64 = 1_000_000_000 / 60;
/// Nanoseconds that a core of 3 GHz takes to decode a frame.
const DECODING: u64 = 4_000_000;
/// Bytes of a frame, 1280 × 720 points of 12 bits, in whole pages of 4 KiB.
const FRAME: usize = (1280 * 720 * 3 / 2_usize).next_multiple_of(4096);

/// The features that a player needs.
pub const PLAYER: &[Feature] = &[Feature::Pipes, Feature::Poll, Feature::Futexes];

/// The outcome of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// It was ready this many nanoseconds after its due start.
    Shown(u64),
    /// The next frame was due before this one could be started.
    Skipped,
}

impl Frame {
    /// Returns true if the frame was not ready when the next was due.
    pub fn is_dropped(self) -> bool {
        match self {
            Frame::Shown(after) => after > PERIOD,
            Frame::Skipped => true,
        }
    }
}

/// Plays: for each frame sleeps until it is due, decodes it into a new buffer, passes it on through
/// a pipe that it polls, and wakes the tasks that wait for it. Calls `ready` with each frame; it
/// returns true to go on.
///
/// # Errors
/// The first call that fails.
pub fn play<S: System>(system: &mut S, mut ready: impl FnMut(Frame) -> bool) -> Result<(), Error> {
    let (ends, page) = (system.pipe()?, system.page_size());
    with_ends(system, ends, |system, ends| {
        with_mapping(system, page, Backing::Anonymous, |system, word| {
            let mut due = system.now()? + PERIOD;
            loop {
                let frame = match system.now()?.checked_sub(due + PERIOD) {
                    Some(_) => Frame::Skipped,
                    None => {
                        system.sleep_until(due)?;
                        show(system, ends, word)?;
                        Frame::Shown(system.now()?.saturating_sub(due))
                    }
                };
                if !ready(frame) {
                    return Ok(());
                }
                due += PERIOD;
            }
        })
    })
}

fn show<S: System>(system: &mut S, [from, to]: [Descriptor; 2], word: usize) -> Result<(), Error> {
    const READY: u8 = 1;
    let page = system.page_size();
    let (pages, len) = (FRAME / page, FRAME);
    with_mapping(system, len, Backing::Anonymous, |system, start| {
        for place in (start..start + len).step_by(page) {
            system.compute(DECODING / pages as u64);
            system.write(place, READY)?;
        }
        send(system, to, READY)?;
        system.poll_readable(&[from])?;
        expect(system, from, READY)?;
        system.write(word, READY)?;
        system.futex_wake(word, 1).map(drop)
    })
}
