//! The table of the lines' states.

use super::line::{LINE_SHIFT, Line};
use crate::arena::{Reservation, WINDOW};
use std::collections::HashMap;

/// Lines in a window.
const LINES: usize = WINDOW >> LINE_SHIFT;
/// The most lines outside the window that a run may touch.
const FOREIGN: usize = 1 << 20;

/// A state for each line of the machine's window, found by its offset, and for lines elsewhere
/// (statics, the host's allocations), numbered in the order of their first use.
pub(super) struct Table {
    base: usize,
    lines: Reservation,
    foreign: HashMap<usize, usize>,
}

impl Table {
    pub(super) fn new(base: usize) -> std::io::Result<Self> {
        Ok(Table {
            base,
            lines: Reservation::anywhere((LINES + FOREIGN) * size_of::<Line>())?,
            foreign: HashMap::new(),
        })
    }

    /// The number of the line at `address`.
    #[inline]
    pub(super) fn id(&mut self, address: usize) -> usize {
        let id = address.wrapping_sub(self.base) >> LINE_SHIFT;
        if id < LINES {
            id
        } else {
            self.foreign_id(address >> LINE_SHIFT)
        }
    }

    #[cold]
    fn foreign_id(&mut self, line: usize) -> usize {
        let next = LINES + self.foreign.len();
        let id = *self.foreign.entry(line).or_insert(next);
        assert!(
            id < LINES + FOREIGN,
            "a simulated run touches too much memory outside its machine"
        );
        id
    }

    /// The offset of a line in the window, if it is there.
    pub(super) fn offset_of(&self, id: usize) -> Option<usize> {
        (id < LINES).then_some(id << LINE_SHIFT)
    }

    #[inline]
    fn at(&self, id: usize) -> *mut Line {
        debug_assert!(id < LINES + FOREIGN);
        (self.lines.start() as *mut Line).wrapping_add(id)
    }

    #[inline]
    pub(super) fn get(&self, id: usize) -> &Line {
        // SAFETY: ids are within the reservation, which is zero at first: a valid line.
        unsafe { &*self.at(id) }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: usize) -> &mut Line {
        // SAFETY: ids are within the reservation, which is zero at first, a valid line; the table
        // is borrowed exclusively.
        unsafe { &mut *self.at(id) }
    }
}
