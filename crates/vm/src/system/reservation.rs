//! The account of swap space.

use super::Part;
use machine::Machine;

/// Accounting of the swap space that private writable mappings may come to need.
///
/// The limit is exact: the sum of successful reservations minus releases is never
/// above it, and a reservation that fits together with all others is not refused.
pub trait Reservation<M: Machine>: Part<M> {
    /// Takes `pages` from the account. Returns false, and takes nothing, if there are too few.
    fn reserve(&self, pages: u64) -> bool;

    /// Gives `pages` back, perhaps on another CPU, perhaps in parts.
    fn release(&self, pages: u64);

    /// Pages reserved now; exact while no task reserves or releases.
    fn reserved(&self) -> u64;
}
