//! What the directory knows of one cache line.

use crate::engine::Time;

/// log2 of the bytes in a line.
pub(crate) const LINE_SHIFT: u32 = 6;

/// No CPU.
pub(super) const NOBODY: u16 = u16::MAX;

/// Who has the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    /// Nobody yet.
    #[expect(dead_code, reason = "what fresh memory says")]
    Untouched = 0,
    /// `holder` alone, to read and write.
    Exclusive = 1,
    /// All sharers, to read.
    Shared = 2,
}

/// One line: a cache line of the host, too. All zero is a line nobody has touched.
///
/// A transfer that is granted changes the state at once, though its data arrive later
/// (at `busy`, or for readers at `readable`). In between the old rights go on until the
/// snoop reaches who has them, at `until`: of `previous` to write and read, or, if that is
/// [`NOBODY`] and the line is exclusive now, of the old sharers to read.
#[repr(C, align(64))]
pub(super) struct Line {
    /// Who has it, or has supplied it to the sharers.
    pub(super) holder: u16,
    pub(super) previous: u16,
    pub(super) state: State,
    /// Granted transfers whose data have not arrived.
    pub(super) in_flight: u16,
    /// Counts grants to writers: what a spinner has read is still so if this is.
    pub(super) version: u32,
    /// The first and last request that waits, as actor + 1; 0 if there is none.
    pub(super) first: u16,
    pub(super) last: u16,
    pub(super) until: Time,
    pub(super) busy: Time,
    pub(super) readable: Time,
    /// When the next reader can be served.
    pub(super) reader_turn: Time,
    /// Where the set of sharers, the list of spinners and the account are; 0 is nowhere.
    pub(super) sharers: u32,
    pub(super) spinners: u32,
    pub(super) account: u32,
}

const _: () = assert!(size_of::<Line>() == 64);

impl Line {
    /// Whether `cpu` may read at `time`, as far as that needs no look at the sharers.
    #[inline]
    pub(super) fn is_own(&self, cpu: u16, time: Time) -> bool {
        match self.state {
            State::Exclusive => self.holder == cpu || (self.previous == cpu && time < self.until),
            State::Shared => self.previous == cpu && time < self.until,
            State::Untouched => false,
        }
    }

    /// When what `cpu` has read at `version` goes or went, if it does: by the next grant to
    /// another writer. Of a grant that others have followed only that it is past is known.
    pub(super) fn lost(&self, cpu: u16, version: u32) -> Option<Time> {
        if self.version == version {
            return None;
        }
        let last = self.version == version.wrapping_add(1) && self.state == State::Exclusive;
        match last {
            true => (self.holder != cpu).then_some(self.until),
            false => Some(0),
        }
    }
}
