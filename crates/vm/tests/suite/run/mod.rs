//! Runs of pages, by index, of tests that have a model.

use machine::{PAGE_SIZE, VaRange};
use std::ops::Range;

/// Where page 0 is.
pub const BASE: usize = 1 << 42;

/// Some pages.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub first: usize,
    pub count: usize,
}

impl Run {
    pub fn range(self) -> VaRange {
        VaRange::sized(at(self.first), self.count * PAGE_SIZE)
    }

    pub fn pages(self) -> Range<usize> {
        self.first..self.first + self.count
    }
}

/// Where a page is.
pub fn at(page: usize) -> usize {
    BASE + page * PAGE_SIZE
}
