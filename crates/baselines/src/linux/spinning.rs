//! A substitute for the counts of a page (`_count` and `_mapcount`).

use machine::{Frame, Machine};
use sync::RawLock;
use vm::lock::PvLock;
use vm::system::{PvByteHeld, PvBytes, PvLocking};

/// A lock in a byte of each page, for which tasks spin and never sleep.
///
/// Linux changes two counts of the page when it maps or unmaps it, by atomic operations on one
/// line. Here an entry is added to a list under a lock in such a line, so a mapping writes the line
/// as often: once to lock, once to unlock.
pub struct Spinning;

impl Spinning {
    /// Locks the list of the page in `frame` by its byte, for which the caller spins.
    #[inline]
    #[track_caller]
    pub fn lock<'a, M: Machine>(&self, frame: Frame, own: &'a PvLock<M>) -> PvByteHeld<'a, M> {
        let mut rounds = 0;
        loop {
            if let Some(held) = PvBytes.try_lock(frame, own) {
                return held;
            }
            while own.is_locked() {
                M::relax(rounds);
                rounds += 1;
            }
        }
    }
}
