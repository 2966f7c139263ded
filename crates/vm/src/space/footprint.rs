//! Counts of pages in a space and in each region, and the place of each page.

use super::{Region, Space};
use crate::error::Error;
use crate::heap::push;
use crate::pmap::{Seen, SeenPage};
use crate::system::{Op, System};
use crate::tree::{ALL, Kind, Mapped, Part, Size};
use crate::usage::Usage;
use alloc::vec::Vec;
use machine::{Frame, PAGE_SIZE, VaRange};

/// The pages of a space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Stats {
    /// The pages that limits count; `charged` are those that the space commits (an object that it
    /// maps commits for itself).
    pub usage: Usage,
    /// In memory: private pages, copies of a file's included.
    pub private: u64,
    /// In memory: pages of files.
    pub file: u64,
    /// In memory: pages of shared memory without a file.
    pub shared: u64,
    /// Private pages in the swap space.
    pub swapped: u64,
    /// Private pages in memory that superpages map.
    pub in_superpages: u64,
}

impl Stats {
    /// Pages in memory (`VmRSS`).
    pub fn resident(&self) -> u64 {
        self.private + self.file + self.shared
    }
}

impl<S: System> Space<S> {
    /// The counts of the space, at one instant. Locks the whole space: O(slots + regions), and the
    /// pages of a slot where both files and shared memory are mapped.
    pub fn stats(&self) -> Stats {
        let _op = self.begin(Op::Look);
        let mut locked = self.pmap.tree.all().lock_whole();
        let mut stats = Stats::default();
        for part in locked.parts() {
            stats.usage += part.usage();
            let count = |kind| part.slot().count(kind) as u64;
            stats.private += count(Kind::Private);
            stats.swapped += count(Kind::Swapped);
            if part.size() == Size::Superpage {
                stats.in_superpages += count(Kind::Private);
            }
            if count(Kind::Object) != 0 {
                let shared = self.shared_pages(&part);
                debug_assert!(
                    shared <= count(Kind::Object),
                    "more objects' pages are found than counted"
                );
                stats.shared += shared;
                stats.file += count(Kind::Object) - shared;
            }
        }
        stats
    }

    /// The number of pages of objects without a file that are mapped in a slot.
    fn shared_pages(&self, part: &Part<'_, S>) -> u64 {
        let (mut files, mut shared) = (false, false);
        part.for_each(|mapped| match backing(&mapped) {
            Backing::File => files = true,
            Backing::Shared => shared = true,
            Backing::None => {}
        });
        if !(files && shared) {
            let all = part.slot().count(Kind::Object) as u64;
            return if shared { all } else { 0 };
        }
        let mut pages = 0;
        part.for_each(|mapped| {
            if backing(&mapped) == Backing::Shared {
                let seen = self.pmap.inspect(part.again(mapped.range));
                let of_object =
                    |seen| matches!(seen, Seen::Page(page) if page.kind == Kind::Object);
                pages += seen.filter(|(_, seen)| of_object(*seen)).count() as u64;
            }
        });
        pages
    }
}

/// The object of a mapping.
#[derive(PartialEq, Eq)]
enum Backing {
    /// There is none.
    None,
    /// It has a file.
    File,
    /// It has no file.
    Shared,
}

fn backing<S: System>(mapped: &Mapped<'_, S>) -> Backing {
    match mapped.attachment {
        None => Backing::None,
        Some(to) if to.object().is_anonymous() => Backing::Shared,
        Some(_) => Backing::File,
    }
}

/// The pages of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// The region.
    pub region: Region,
    /// In memory.
    pub resident: u64,
    /// In memory, each page divided by its mappings: in bytes / [`Footprint::FRACTION`], rounded
    /// down page by page.
    pub proportional: u64,
    /// Mapped elsewhere, too, and not written since their dirtiness was last taken.
    pub shared_clean: u64,
    /// Mapped elsewhere, too, and written.
    pub shared_dirty: u64,
    /// Mapped here only, and not written.
    pub private_clean: u64,
    /// Mapped here only, and written.
    pub private_dirty: u64,
    /// Used since the last look.
    pub referenced: u64,
    /// Pages of no object.
    pub anonymous: u64,
    /// Pages of no object that are given up (`MADV_FREE`) and not written since.
    pub lazily_freed: u64,
    /// Pages of no object that are mapped by superpages.
    pub in_superpages: u64,
    /// In the swap space.
    pub swapped: u64,
}

/// A page's place, as seen from an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PagePlace {
    /// No entry: nothing is mapped, or nothing was used yet, or the content is an object's.
    Nowhere,
    /// In memory.
    Present {
        /// The page's frame.
        frame: Frame,
        /// True for an object's page, false for a private one.
        of_object: bool,
        /// True if it is mapped nowhere else.
        is_exclusive: bool,
    },
    /// In this slot of the swap space.
    Swapped(u32),
}

impl Footprint {
    /// The value of a byte in [`Footprint::proportional`].
    pub const FRACTION: u64 = 1 << 12;

    fn new(region: Region) -> Self {
        Footprint {
            region,
            resident: 0,
            proportional: 0,
            shared_clean: 0,
            shared_dirty: 0,
            private_clean: 0,
            private_dirty: 0,
            referenced: 0,
            anonymous: 0,
            lazily_freed: 0,
            in_superpages: 0,
            swapped: 0,
        }
    }

    fn add(&mut self, seen: Seen, size: Size) {
        match seen {
            Seen::Page(page) => self.add_page(page, size),
            Seen::Swapped(_) => self.swapped += 1,
        }
    }

    fn add_page(&mut self, page: SeenPage, size: Size) {
        let anonymous = page.kind == Kind::Private;
        self.resident += 1;
        self.proportional += PAGE_SIZE as u64 * Self::FRACTION / page.mappings as u64;
        *match (page.mappings > 1, page.dirty) {
            (true, false) => &mut self.shared_clean,
            (true, true) => &mut self.shared_dirty,
            (false, false) => &mut self.private_clean,
            (false, true) => &mut self.private_dirty,
        } += 1;
        self.referenced += u64::from(page.referenced);
        self.anonymous += u64::from(anonymous);
        self.lazily_freed += u64::from(page.lazy);
        self.in_superpages += u64::from(size == Size::Superpage);
    }
}

/// Footprints, as a scan collects them.
struct Scan {
    footprints: Vec<Footprint>,
    limit: usize,
}

impl<S: System> Space<S> {
    /// The footprints of the first `limit` regions from the address `from` on, in order; a region
    /// that begins before is cut there. So a long list is read in pieces, each from where the last
    /// one ended.
    ///
    /// Locks one slot at a time, so that operations elsewhere go on; the gate is told of one look.
    /// Each slot's part is as of an instant: a region over several slots that changes meanwhile may
    /// be seen in parts. O(slots + regions + pages in memory), and the other mappings of these.
    pub fn scan(&self, from: usize, limit: usize) -> Result<Vec<Footprint>, Error> {
        let start = from & !(PAGE_SIZE - 1);
        let range = VaRange { start, ..ALL };
        let mut scan = Scan {
            footprints: Vec::new(),
            limit,
        };
        let _op = self.begin(Op::Look);
        for place in self.pmap.tree.occupied(range) {
            let mut locked = self.pmap.tree.at(place, place.range).lock_whole();
            for part in locked.parts() {
                let rest = part.range().common(range);
                if rest.start < rest.end && !self.scan_part(&mut scan, &part.again(rest))? {
                    return Ok(scan.footprints);
                }
            }
        }
        Ok(scan.footprints)
    }

    /// Adds what is mapped in `part`. Returns false if the next region is beyond the limit.
    fn scan_part(&self, scan: &mut Scan, part: &Part<'_, S>) -> Result<bool, Error> {
        let mut is_within = true;
        part.try_for_each(|mapped| {
            is_within = is_within && scan.begin(Region::of(&mapped))?;
            if let (true, Some(last)) = (is_within, scan.footprints.last_mut()) {
                for (_, seen) in self.pmap.inspect(part.again(mapped.range)) {
                    last.add(seen, part.size());
                }
            }
            Ok(())
        })?;
        Ok(is_within)
    }

    /// The place of each page of `range` (its end rounded up to pages), at one instant; holes are
    /// nowhere. O(slots + pages).
    pub fn page_places(&self, range: VaRange) -> Result<Vec<PagePlace>, Error> {
        let range = Self::in_pages(range)?;
        let mut places = Vec::new();
        places.try_reserve_exact(range.pages())?;
        places.resize(range.pages(), PagePlace::Nowhere);
        let _op = self.begin(Op::Look);
        if self.pmap.tree.is_hole(range) {
            return Ok(places);
        }
        let mut locked = self.pmap.tree.over(range).lock()?;
        for part in locked.parts() {
            for (address, seen) in self.pmap.inspect(part) {
                places[(address - range.start) / PAGE_SIZE] = seen.into();
            }
        }
        Ok(places)
    }
}

impl Scan {
    /// Begins a region, or goes on with the last. Returns false if that is beyond the limit.
    fn begin(&mut self, region: Region) -> Result<bool, Error> {
        let last = self.footprints.last_mut();
        if last.is_some_and(|last| last.region.absorb(&region)) {
            return Ok(true);
        }
        if self.footprints.len() == self.limit {
            return Ok(false);
        }
        push(&mut self.footprints, Footprint::new(region))?;
        Ok(true)
    }
}

impl From<Seen> for PagePlace {
    fn from(seen: Seen) -> Self {
        match seen {
            Seen::Swapped(slot) => PagePlace::Swapped(slot),
            Seen::Page(page) => PagePlace::Present {
                frame: page.frame,
                of_object: page.kind == Kind::Object,
                is_exclusive: page.mappings == 1,
            },
        }
    }
}
