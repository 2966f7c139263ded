//! What each line has cost.

use super::LineId;
use crate::engine::Time;

/// One line's account.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account {
    pub(crate) line: LineId,
    /// How often it was transferred.
    pub(crate) transfers: u64,
    /// Picoseconds that requests waited for their turn.
    pub(crate) waited: Time,
    /// Picoseconds that transfers took, from the grant on.
    pub(crate) moved: Time,
}

/// The accounts of all lines that were ever transferred.
#[derive(Default)]
pub(crate) struct Accounts {
    rows: Vec<Account>,
}

impl Accounts {
    #[inline]
    pub(super) fn transfer(&mut self, at: &mut u32, line: LineId, waited: Time, moved: Time) {
        if *at == 0 {
            self.rows.push(Account {
                line,
                transfers: 0,
                waited: 0,
                moved: 0,
            });
            *at = self.rows.len() as u32;
        }
        let row = &mut self.rows[*at as usize - 1];
        row.transfers += 1;
        row.waited += waited;
        row.moved += moved;
    }

    /// All rows.
    pub(crate) fn rows(&self) -> &[Account] {
        &self.rows
    }

    /// Begins anew, at 0.
    pub(crate) fn clear(&mut self) {
        for row in &mut self.rows {
            (row.transfers, row.waited, row.moved) = (0, 0, 0);
        }
    }
}
