//! The cost of each cache line.

use super::LineId;
use crate::engine::Time;

/// One line's account.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account {
    pub(crate) line: LineId,
    /// How often the line was transferred.
    pub(crate) transfers: u64,
    /// Picoseconds that requests waited for their turn.
    pub(crate) waited: Time,
    /// Picoseconds that transfers took, from the grant on.
    pub(crate) moved: Time,
    /// Picoseconds that CPUs spun or paused after they had read the line.
    pub(crate) spun: Time,
}

/// The accounts of all lines that were ever transferred.
#[derive(Default)]
pub(crate) struct Accounts {
    rows: Vec<Account>,
}

impl Accounts {
    /// Records a transfer of the line whose account is at `at`.
    #[inline]
    pub(super) fn transfer(&mut self, at: &mut u32, line: LineId, waited: Time, moved: Time) {
        let row = self.row(at, line);
        row.transfers += 1;
        row.waited += waited;
        row.moved += moved;
    }

    /// Records that a CPU spun on that line for `time`.
    pub(super) fn spin(&mut self, at: &mut u32, line: LineId, time: Time) {
        self.row(at, line).spun += time;
    }

    fn row(&mut self, at: &mut u32, line: LineId) -> &mut Account {
        if *at == 0 {
            self.rows.push(Account {
                line,
                transfers: 0,
                waited: 0,
                moved: 0,
                spun: 0,
            });
            *at = self.rows.len() as u32;
        }
        &mut self.rows[*at as usize - 1]
    }

    /// All rows.
    pub(crate) fn rows(&self) -> &[Account] {
        &self.rows
    }

    /// Resets all accounts to 0.
    pub(crate) fn clear(&mut self) {
        for row in &mut self.rows {
            (row.transfers, row.waited, row.moved, row.spun) = (0, 0, 0, 0);
        }
    }
}
