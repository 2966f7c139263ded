//! Mapping memory.

use super::region::Region;
use super::{HIGHEST, MAP_START, Map, Space, whole_pages};
use crate::error::Error;
use crate::policy::{Policies, Reservation};
use crate::prot::Prot;
use machine::{Platform, VaRange};

impl<M: Platform, P: Policies<M>> Space<M, P> {
    /// Maps `bytes` (rounded up to pages) of zeroes somewhere, and returns where.
    ///
    /// O(log regions) to find room if none was unmapped below the last mapping, else
    /// O(regions). Writable memory reserves swap space.
    pub fn map(&self, bytes: usize, prot: Prot) -> Result<usize, Error> {
        let no_room = Error::NoAddresses { bytes };
        let bytes = match whole_pages(bytes) {
            None => return Err(no_room),
            Some(0) => {
                let reason = "the length is zero";
                return Err(Error::Invalid { reason });
            }
            Some(bytes) => bytes,
        };
        let mut map = self.map.write();
        let gap = map.regions.gap(map.lowest_gap, HIGHEST, bytes);
        let range = VaRange::sized(gap.ok_or(no_room)?, bytes);
        self.insert(&mut map, range, prot)?;
        Ok(range.start)
    }

    /// Maps zeroes at `range` in the place of whatever is there.
    pub fn map_fixed(&self, range: VaRange, prot: Prot) -> Result<(), Error> {
        Self::check(range)?;
        let mut map = self.map.write();
        self.insert(&mut map, range, prot)
    }

    /// Puts a region of zeroes at `range`; whatever was there goes.
    pub(super) fn insert(&self, map: &mut Map, range: VaRange, prot: Prot) -> Result<(), Error> {
        let charged = prot.writes();
        let charge = if charged { range.pages() as u64 } else { 0 };
        map.regions.make_room()?;
        self.reserve(charge)?;
        self.remove(map, range);
        let region = Region {
            range,
            prot,
            charged,
        };
        map.regions.replace(range, Some(region));
        if range.start <= map.lowest_gap && range.end > MAP_START {
            map.lowest_gap = map.lowest_gap.max(range.end);
        }
        Ok(())
    }

    /// Reserves swap space for `pages`.
    pub(super) fn reserve(&self, pages: u64) -> Result<(), Error> {
        if pages == 0 || self.vm.swap().reserve(pages) {
            Ok(())
        } else {
            Err(Error::OverCommit { pages })
        }
    }
}
