//! Chooses places, sizes and rights.

use super::Generator;
use crate::address::{Address, Origin, PAGE, Range, USER_END, WINDOW_PAGES};
use crate::flags::{Flag, Flags};
use crate::model::Known;
use crate::outcome::Region;
use crate::step::{ProcessId, Prot};

/// Pages per large page.
const LARGE: u64 = 512;
/// Pages around which many operations fall: multiples of 2 MiB.
const HOT: [u64; 3] = [LARGE, 2 * LARGE, 3 * LARGE];
/// The greatest distance from such a page.
const NEAR: u64 = 6;
/// The guard gap: the distance, in pages, that memory that grows down keeps from a mapping below.
const GUARD: u64 = 256;

impl Generator<'_> {
    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.random.rand_range(0..bound.max(1))
    }

    /// Returns true in `per_cent` of a hundred cases.
    pub fn chance(&mut self, per_cent: u64) -> bool {
        self.below(100) < per_cent
    }

    pub fn one_of<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        choices.get(self.below(choices.len() as u64) as usize)
    }

    /// One of `choices`, with probabilities proportional to the weights.
    pub fn weighted<T: Copy>(&mut self, choices: &[(u64, T)]) -> T {
        let mut rest = self.below(choices.iter().map(|(weight, _)| weight).sum());
        for &(weight, choice) in choices {
            if rest < weight {
                return choice;
            }
            rest -= weight;
        }
        choices[0].1
    }

    /// Each flag with its chance in a hundred.
    pub fn flags<F: Flag>(&mut self, chances: &[(u64, F)]) -> Flags<F> {
        let mut flags = Flags::NONE;
        for &(per_cent, flag) in chances {
            if self.chance(per_cent) {
                flags = flags.with(flag);
            }
        }
        flags
    }

    pub fn prot(&mut self) -> Prot {
        self.weighted(&[
            (56, Prot::READ_WRITE),
            (16, Prot::READ),
            (9, Prot::NONE),
            (6, Prot::new(true, false, true)),
            (6, Prot::new(true, true, true)),
            (4, Prot::new(false, true, false)),
            (1, Prot::new(false, true, true)),
            (2, Prot::new(false, false, true)),
        ])
    }

    /// A number of pages, rarely more than a few.
    pub fn pages(&mut self) -> u64 {
        match self.below(100) {
            0..60 => 1 + self.below(4),
            60..94 => 1 + self.below(12),
            _ => 1 + self.below(600),
        }
    }

    /// A page of the window where many operations fall.
    pub fn hot(&mut self) -> u64 {
        let border = self.weighted(&HOT.map(|border| (1, border)));
        let near = border - NEAR + self.below(2 * NEAR);
        match self.below(100) {
            0..84 => near,
            84..90 => near - GUARD,
            90..97 => self.below(WINDOW_PAGES),
            _ => WINDOW_PAGES - 1 - self.below(3),
        }
    }

    /// A part of the window, mapped or not.
    pub fn anywhere(&mut self) -> Range {
        if self.chance(3) {
            // Room for one large page, or for two.
            let block = self.below(3);
            let blocks = 1 + self.below(2);
            return Range::pages(Address::window(block * LARGE), blocks * LARGE);
        }
        let page = self.hot();
        let pages = self.pages().min(WINDOW_PAGES - page);
        Range::pages(Address::window(page), pages)
    }

    /// Returns true if the process has so little mapped that most operations would find nothing.
    pub fn has_little(&self, known: &Known, process: ProcessId) -> bool {
        let mut regions = known.processes.iter();
        let regions = regions.find(|(id, _)| *id == process);
        regions.is_none_or(|(_, regions)| regions.len() < 3)
    }

    /// A mapped region of the process that is `wanted`, if there is one.
    fn region(
        &mut self,
        known: &Known,
        process: ProcessId,
        wanted: impl Fn(Origin) -> bool,
    ) -> Option<Region> {
        let of = |(id, _): &&(ProcessId, Vec<Region>)| *id == process;
        let (_, regions) = known.processes.iter().find(of)?;
        let regions: Vec<_> = regions
            .iter()
            .filter(|one| wanted(one.start.place))
            .collect();
        self.one_of(&regions).map(|region| **region)
    }

    /// Some whole pages, mostly of mapped regions that are `wanted`.
    pub fn whole_range(
        &mut self,
        known: &Known,
        process: ProcessId,
        wanted: impl Fn(Origin) -> bool,
    ) -> Range {
        let region = if self.chance(88) {
            self.region(known, process, wanted)
        } else {
            None
        };
        let Some(region) = region else {
            return self.anywhere();
        };
        let first = if self.chance(30) {
            0
        } else {
            self.below(region.pages)
        };
        let rest = region.pages - first;
        let pages = match self.below(10) {
            0..6 => self.pages().min(rest),
            6..9 => rest,
            // Slightly beyond its end; a handle's range stays within its mapping.
            _ => rest + 1 + self.below(2),
        };
        Range::pages(region.start.plus(first * PAGE), pages)
    }

    /// A range, sometimes a strange one.
    pub fn range(&mut self, known: &Known, process: ProcessId) -> Range {
        let mut range = self.whole_range(known, process, |_| true);
        match self.below(100) {
            0..3 => range.start = range.start.plus(1 + self.below(PAGE - 1)),
            3..6 => range.bytes -= 1 + self.below(PAGE - 1),
            6 => range.bytes = 0,
            7 => range.bytes = self.absurd_length(),
            8 => range.start = self.absurd_address(),
            _ => {}
        }
        range
    }

    pub fn absurd_length(&mut self) -> u64 {
        self.weighted(&[
            (1, u64::MAX),
            (1, u64::MAX - PAGE + 1),
            (1, 1 << 47),
            (1, 1 << 63),
        ])
    }

    pub fn absurd_address(&mut self) -> Address {
        let offset = self.weighted(&[
            (1, USER_END),
            (1, 1 << 47),
            (1, 1 << 63),
            (1, u64::MAX - PAGE + 1),
        ]);
        let place = Origin::Absolute;
        Address { place, offset }
    }

    /// An address for `bytes` bytes about as close below `range` as is allowed if that grows down.
    pub fn just_below(&mut self, range: &Range, bytes: u64) -> Address {
        let away = self.guard().saturating_add(bytes);
        let offset = range.start.offset.saturating_sub(away);
        Address {
            offset,
            ..range.start
        }
    }

    /// About the gap that stays free below memory that grows down.
    fn guard(&mut self) -> u64 {
        (GUARD - 1 + self.below(3)) * PAGE
    }

    /// An address to read or write.
    pub fn access(&mut self, known: &Known, process: ProcessId, width: u64) -> Address {
        if self.chance(1) {
            return self.absurd_address();
        }
        let mut range = self.whole_range(known, process, |_| true);
        if self.chance(6) && range.start.place == Origin::Window {
            // Memory that a stack may grow down to.
            let below = self.pages() * PAGE;
            range.start.offset = range.start.offset.saturating_sub(below);
        } else if self.chance(3) {
            // About as close above other memory as a stack may come.
            range.start = range.start.plus(range.bytes + self.guard());
        }
        let byte = match self.below(4) {
            0 => 0,
            1 => PAGE - width,
            2 => 8,
            _ => self.below(PAGE / width) * width,
        };
        range.start.plus(byte)
    }
}
