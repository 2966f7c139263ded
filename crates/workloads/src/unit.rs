//! Pieces of work that are similar, but not equal.

/// The number of a compiled unit or a message, unique in a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit(u64);

/// Units per task; no run gets that far.
const PER_TASK: u64 = 1 << 32;
/// The parts in which [`Unit::vary`] divides a size.
const PARTS: u64 = 64;

impl Unit {
    /// The first unit of task `task`.
    pub(crate) fn first_of(task: usize) -> Self {
        Unit(task as u64 * PER_TASK)
    }

    /// The unit with this number.
    pub(crate) fn of(number: u64) -> Self {
        Unit(number)
    }

    /// The unit `count` units later.
    pub(crate) fn plus(self, count: u64) -> Self {
        Unit(self.0 + count)
    }

    /// The unit `count` units earlier, which exists.
    pub(crate) fn minus(self, count: u64) -> Self {
        Unit(self.0 - count)
    }

    pub(crate) fn number(self) -> u64 {
        self.0
    }

    /// The byte with which a page of its output begins; never 0, the content of a lost page.
    pub(crate) fn output(self, page: usize) -> u8 {
        self.mixed(page as u64) as u8 | 1
    }

    /// `size` varied by up to a half, the same for the same unit and `what`: jobs of equal length
    /// would run in step.
    pub(crate) fn vary(self, size: u64, what: u64) -> u64 {
        size / 2 + size * (self.mixed(what) % (PARTS + 1)) / PARTS
    }

    /// A number that looks random (splitmix64).
    fn mixed(self, what: u64) -> u64 {
        let z = self
            .0
            .wrapping_add(what.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
