//! The directory's record of one cache line.

use crate::engine::Time;

/// log2 of the bytes in a line.
pub(crate) const LINE_SHIFT: u32 = 6;

/// The number that stands for no CPU.
pub(super) const NOBODY: u16 = u16::MAX;

/// The rights to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    /// No CPU has rights yet.
    #[expect(dead_code, reason = "the state in fresh memory")]
    Untouched = 0,
    /// Only `holder` may read and write.
    Exclusive = 1,
    /// All sharers may read.
    Shared = 2,
}

/// One line's record, which fills a cache line of the host. All zero means a line that was never
/// touched.
///
/// A granted transfer changes the state at once, though its data arrive later (at `busy`, or for
/// readers at `readable`). In between the old rights continue until the snoop reaches their owner,
/// at `until`: `previous` may write and read or, if that is [`NOBODY`] and the line is now
/// exclusive, the old sharers may read.
#[repr(C, align(64))]
pub(super) struct Line {
    /// The CPU that has the line, or has supplied it to the sharers.
    pub(super) holder: u16,
    pub(super) previous: u16,
    pub(super) state: State,
    /// Granted transfers whose data have not arrived.
    pub(super) in_flight: u16,
    /// Counts grants to writers: a spinner's last read is current as long as this is the same.
    pub(super) version: u32,
    /// The first and last waiting request, as actor + 1; 0 if there is none.
    pub(super) first: u16,
    pub(super) last: u16,
    pub(super) until: Time,
    pub(super) busy: Time,
    pub(super) readable: Time,
    /// When the next reader can be served.
    pub(super) reader_turn: Time,
    /// The indices of the set of sharers, the list of spinners and the account; 0 means none.
    pub(super) sharers: u32,
    pub(super) spinners: u32,
    pub(super) account: u32,
}

const _: () = assert!(size_of::<Line>() == 64);

impl Line {
    /// Returns true if `cpu` may read at `time`, as far as that is known without the set of
    /// sharers.
    #[inline]
    pub(super) fn is_own(&self, cpu: u16, time: Time) -> bool {
        match self.state {
            State::Exclusive => self.holder == cpu || (self.previous == cpu && time < self.until),
            State::Shared => self.previous == cpu && time < self.until,
            State::Untouched => false,
        }
    }

    /// When `cpu` loses the value that it read at `version` by the next grant to another writer, if
    /// there was one. If further grants have followed, the time is only known to be past.
    pub(super) fn lost(&self, cpu: u16, version: u32) -> Option<Time> {
        if self.version == version {
            return None;
        }
        let last = self.version == version.wrapping_add(1) && self.state == State::Exclusive;
        if last {
            (self.holder != cpu).then_some(self.until)
        } else {
            Some(0)
        }
    }
}
