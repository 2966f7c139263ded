//! Committed memory: the number of pages that may come to be needed, and its limit.

use super::Vm;
use crate::error::Error;
use crate::system::{Reservation, System};

/// The policy by which requests for memory are refused because the memory might be missing when it
/// is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Overcommit {
    /// When all that is committed would be more than the account has
    /// ([`crate::Options::swap_pages`]); [`crate::Flags::NO_RESERVE`] changes nothing. Linux's
    /// mode 2.
    #[default]
    Never,
    /// When one request is for more than memory and swap space have. Mode 0.
    Heuristic,
    /// At no time. Mode 1.
    Always,
}

impl Overcommit {
    /// The limit of an account for `pages`.
    pub(crate) const fn account(self, pages: u64) -> u64 {
        match self {
            Overcommit::Never => pages,
            // No sum reaches this: spaces have 2^35 pages each, objects 2^51.
            Overcommit::Heuristic | Overcommit::Always => u64::MAX >> 2,
        }
    }

    /// The most pages of one request, where memory and swap space have `all`.
    pub(super) const fn most(self, all: u64) -> u64 {
        match self {
            Overcommit::Heuristic => all,
            Overcommit::Never | Overcommit::Always => u64::MAX,
        }
    }
}

impl<S: System> Vm<S> {
    /// Reserves swap space for `pages`.
    #[inline]
    pub(crate) fn commit(&self, pages: u64) -> Result<(), Error> {
        if pages == 0 || pages <= self.most_pages && self.swap().reserve(pages) {
            Ok(())
        } else {
            Err(Error::OverCommit { pages })
        }
    }

    /// Gives back the reservation of `pages`.
    #[inline]
    pub(crate) fn uncommit(&self, pages: u64) {
        if pages > 0 {
            self.swap().release(pages);
        }
    }
}
