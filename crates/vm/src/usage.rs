//! The limits of a space, and the pages that they count.

use crate::flags::Flags;
use core::iter::Sum;
use core::ops::{Add, AddAssign};

/// Pages of a space, or of a part of it, as limits and the account of swap space count them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Usage {
    /// All mapped pages.
    pub mapped: u64,
    /// Private and writable pages, without stacks.
    pub data: u64,
    /// Locked in memory.
    pub locked: u64,
    /// Charged to the account of swap space.
    pub charged: u64,
}

impl Usage {
    /// No usage.
    pub const NONE: Usage = Usage {
        mapped: 0,
        data: 0,
        locked: 0,
        charged: 0,
    };

    /// The usage of `pages` mapped with `flags`.
    pub(crate) fn of(flags: Flags, pages: usize) -> Self {
        let pages_if = |counts| if counts { pages as u64 } else { 0 };
        let writes = flags.prot().writes();
        let other = flags.has(Flags::SHARED) || flags.has(Flags::GROWS_DOWN);
        Usage {
            mapped: pages as u64,
            data: pages_if(writes && !other),
            locked: pages_if(flags.has(Flags::LOCKED)),
            charged: pages_if(flags.has(Flags::CHARGED)),
        }
    }
}

impl Add for Usage {
    type Output = Usage;

    fn add(self, other: Usage) -> Usage {
        Usage {
            mapped: self.mapped + other.mapped,
            data: self.data + other.data,
            locked: self.locked + other.locked,
            charged: self.charged + other.charged,
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        *self = *self + other;
    }
}

impl Sum for Usage {
    fn sum<I: Iterator<Item = Usage>>(all: I) -> Usage {
        all.fold(Usage::NONE, Add::add)
    }
}

/// A resource of a space that may be limited, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Memory mapped (`RLIMIT_AS`).
    AddressSpace,
    /// Private writable memory, stacks apart (`RLIMIT_DATA`).
    Data,
    /// Memory locked (`RLIMIT_MEMLOCK`).
    Locked,
    /// The size to which a stack grows by itself (`RLIMIT_STACK`).
    Stack,
}

impl Limit {
    /// Limits that count pages; a stack's size is known.
    pub(crate) const COUNTED: [Limit; 3] = [Limit::AddressSpace, Limit::Data, Limit::Locked];

    /// The pages of `usage` that count towards the limit.
    pub(crate) fn count(self, usage: Usage) -> u64 {
        match self {
            Limit::AddressSpace => usage.mapped,
            Limit::Data => usage.data,
            Limit::Locked => usage.locked,
            Limit::Stack => 0,
        }
    }
}
