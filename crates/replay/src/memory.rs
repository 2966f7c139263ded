//! The memory of a recorded process, as far as its events have gone.

use crate::ranges::Ranges;
use recording::Prot;
use std::collections::BTreeMap;
use std::ops::Range;

/// A process's mappings, by number, and how much of them it has touched.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    mappings: BTreeMap<u32, Mapping>,
}

#[derive(Clone, Debug, Default)]
struct Mapping {
    rights: Ranges<Prot>,
    touched: Ranges<()>,
}

impl Memory {
    /// Maps `range` of `mapping`.
    pub fn map(&mut self, mapping: u32, range: Range<u64>, prot: Prot) {
        let mapping = self.mappings.entry(mapping).or_default();
        mapping.rights.set(range, prot);
    }

    /// Unmaps `range`; returns the number of bytes that had been touched.
    pub fn unmap(&mut self, mapping: u32, range: Range<u64>) -> u64 {
        let Some(mapping) = self.mappings.get_mut(&mapping) else {
            return 0;
        };
        mapping.rights.clear(range.clone());
        mapping.forget(range)
    }

    /// The content of `range` is gone; returns the number of bytes that had been touched.
    pub fn discard(&mut self, mapping: u32, range: Range<u64>) -> u64 {
        let mapping = self.mappings.get_mut(&mapping);
        mapping.map_or(0, |mapping| mapping.forget(range))
    }

    pub fn protect(&mut self, mapping: u32, range: Range<u64>, prot: Prot) {
        for part in self.mapped(mapping, range) {
            self.map(mapping, part, prot);
        }
    }

    /// The mapped parts of `range`.
    pub fn mapped(&self, mapping: u32, range: Range<u64>) -> Vec<Range<u64>> {
        let mapping = self.mappings.get(&mapping);
        mapping.map_or(Vec::new(), |mapping| mapping.rights.whole(range))
    }

    /// Returns true if all of `range` is mapped.
    pub fn is_mapped(&self, mapping: u32, range: Range<u64>) -> bool {
        self.mapped(mapping, range.clone()) == [range]
    }

    /// The rights at `offset`, if that is mapped.
    pub fn prot(&self, mapping: u32, offset: u64) -> Option<Prot> {
        let rights = &self.mappings.get(&mapping)?.rights;
        let (_, prot) = rights.of(offset..offset + 1).next()?;
        Some(*prot)
    }

    /// Touches `range`; returns the parts that may be touched so, and how many bytes have been
    /// touched for the first time.
    pub fn touch(
        &mut self,
        mapping: u32,
        range: Range<u64>,
        write: bool,
    ) -> (Vec<Range<u64>>, u64) {
        let Some(mapping) = self.mappings.get_mut(&mapping) else {
            return (Vec::new(), 0);
        };
        let may = |prot: &Prot| match write {
            true => prot.write,
            false => prot.read || prot.write || prot.execute,
        };
        let parts = mapping.rights.of(range).filter(|(_, prot)| may(prot));
        let parts: Vec<Range<u64>> = parts.map(|(part, _)| part).collect();
        let mut new = 0;
        for part in &parts {
            new += part.end - part.start - length(mapping.touched.whole(part.clone()));
            mapping.touched.set(part.clone(), ());
        }
        (parts, new)
    }

    /// All that is mapped.
    pub fn all(&self) -> impl Iterator<Item = (u32, Range<u64>)> {
        let each = self.mappings.iter();
        each.flat_map(|(&number, mapping)| {
            let parts = mapping.rights.whole(0..u64::MAX);
            parts.into_iter().map(move |part| (number, part))
        })
    }

    /// The number of bytes that have been touched and are mapped.
    pub fn touched(&self) -> u64 {
        let each = self.mappings.values();
        each.map(|mapping| length(mapping.touched.whole(0..u64::MAX)))
            .sum()
    }

    /// A copy's memory: none of it is its own yet.
    pub fn copy(&self) -> Self {
        let mut copy = self.clone();
        for mapping in copy.mappings.values_mut() {
            mapping.touched = Ranges::default();
        }
        copy
    }
}

impl Mapping {
    fn forget(&mut self, range: Range<u64>) -> u64 {
        let touched = length(self.touched.whole(range.clone()));
        self.touched.clear(range);
        touched
    }
}

fn length(ranges: Vec<Range<u64>>) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}
