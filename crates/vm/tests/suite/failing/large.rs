//! A space with a superpage, and one in the making.

use super::{Disk, World, check_empty};
use crate::world::{MIB, P, System, TestSpace, active, page, pages, world};
use machine::VaRange;
use vm::Prot;

/// Pages of a superpage.
pub const PAGES: usize = 512;
const AT: usize = 1 << 42;
/// Pages that were touched of the superpage in the making.
const BEGUN: usize = 5;

/// Dropped in this order.
pub struct Large {
    pub space: TestSpace,
    pub vm: System,
    swap: Disk,
}

impl Large {
    /// The superpage.
    pub const WHOLE: VaRange = VaRange {
        start: AT,
        end: AT + PAGES * P,
    };
    /// A superpage in the making, behind it.
    pub const BEGUN: VaRange = VaRange {
        start: Self::WHOLE.end,
        end: Self::WHOLE.end + PAGES * P,
    };
    /// Untouched memory, behind that.
    pub const FRESH: VaRange = VaRange {
        start: Self::BEGUN.end,
        end: Self::BEGUN.end + PAGES * P,
    };

    /// Pages of the superpage, from `first` on.
    pub fn part(first: usize, count: usize) -> VaRange {
        pages(AT + first * P, count)
    }
}

impl World for Large {
    fn new() -> Self {
        let swap = Disk::default();
        let vm = world(12)
            .cpus(1)
            .superpages()
            .swap_in(swap.clone(), 2048)
            .vm();
        let space = active(&vm);
        let all = VaRange {
            start: AT,
            end: Self::FRESH.end,
        };
        space.map_fixed(all, Prot::READ_WRITE).expect("map");
        // The tables on the way to where tests move it.
        let near = page(elsewhere(8).end);
        space.map_fixed(near, Prot::READ_WRITE).expect("map");
        space.store(near.start, 1).expect("store");
        space.unmap(near).expect("unmap");
        for page in 0..PAGES + BEGUN {
            let stored = space.store(AT + page * P, 1 + page as u64);
            stored.expect("store");
        }
        assert_eq!(space.pmap().superpages(), 1);
        Large { space, vm, swap }
    }

    fn vm(&self) -> &System {
        &self.vm
    }

    fn space(&self) -> &TestSpace {
        &self.space
    }

    fn disk(&self) -> Option<&Disk> {
        None
    }

    fn swap(&self) -> &Disk {
        &self.swap
    }

    fn check_content(&self, what: &str) {
        for page in 0..3 * PAGES {
            let expected = if page < PAGES + BEGUN { 1 + page } else { 0 };
            let mut bytes = [0; 8];
            let read = self.space.copy_in(AT + page * P, &mut bytes);
            let word = u64::from_le_bytes(bytes);
            assert_eq!(
                (read, word),
                (Ok(()), expected as u64),
                "{what}: page {page}"
            );
        }
    }

    fn tear_down(self, what: &str) {
        drop(self.space);
        check_empty(&self.vm, what);
    }
}

/// Where a mapping of `mib` MiB may be moved.
pub fn elsewhere(mib: usize) -> VaRange {
    VaRange::sized(AT + 256 * MIB, mib * MIB)
}
