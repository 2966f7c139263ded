//! A translation look-aside buffer, modelled exactly.
//!
//! It keeps every entry until told to drop it or until it needs the place, so an access through an
//! entry that a kernel forgot to flush *happens*, and is seen. Set-associative; within a set the
//! oldest entry is replaced (first in, first out), so the same accesses always leave the same
//! contents.
//!
//! A page of 2 MiB takes one entry, in the same sets as those of 4 KiB, as in the second-level TLBs
//! that it models. An address may have an entry of each size, if its tables changed between two
//! walks; either may then be used, as on x86, and dropping the one drops the other.

use crate::{Access, Asid, Flush, Frame, PAGE_SHIFT, pte};
use alloc::boxed::Box;
use alloc::vec;
use core::ops::Range;

/// Entries in a set. 12 ways by [`SETS`] are the second-level TLB of recent Intel cores.
pub const WAYS: usize = 12;
/// Sets in a CPU's TLB; 1,536 entries in all.
pub const SETS: usize = 128;

/// The walker's finding for a 4 KiB page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The page's frame.
    pub frame: Frame,
    /// True if the page is part of a 2 MiB page and the entry translates all of that.
    pub large: bool,
    /// True if tasks may write.
    pub writable: bool,
    /// True if a write needs no walk: allowed, and the dirty bit is set.
    pub dirty: bool,
    /// True if tasks may execute.
    pub executable: bool,
    /// A note of the machine's own.
    pub note: u16,
}

/// The TLB of one CPU. Only its CPU uses it, so it needs no atomics.
pub struct Tlb {
    /// The tag in each place; 0 is an empty one. Apart from `entries`, so that a look-up compares
    /// consecutive words.
    tags: Box<[[u64; WAYS]]>,
    entries: Box<[[Entry; WAYS]]>,
    /// The place in each set that is filled next.
    next: Box<[u8]>,
    /// The place in each set that was found last, where the next look-up begins.
    recent: Box<[u8]>,
    /// True if there may be an entry of 2 MiB.
    has_large: bool,
}

/// Marks a tag as one of an entry.
const VALID: u64 = 1 << 63;
/// Marks a tag of 2 MiB; its page number counts those.
const LARGE: u64 = 1 << 62;
/// The position of the ASID in a tag, above the 36 bits of a page number.
const ASID_SHIFT: u32 = 36;

/// The tag of `page` in `asid`.
#[inline]
fn small(asid: Asid, page: usize) -> u64 {
    VALID | (asid.0 as u64) << ASID_SHIFT | page as u64
}

/// The tag of the 2 MiB around `page` in `asid`.
#[inline]
fn large(asid: Asid, page: usize) -> u64 {
    LARGE | small(asid, page / pte::ENTRIES)
}

/// The ASID and the page numbers of a tag.
#[inline]
fn untag(tag: u64) -> (Asid, Range<usize>) {
    let number = (tag & ((1 << ASID_SHIFT) - 1)) as usize;
    let pages = match tag & LARGE {
        0 => number..number + 1,
        _ => number * pte::ENTRIES..(number + 1) * pte::ENTRIES,
    };
    (Asid((tag >> ASID_SHIFT) as u16), pages)
}

impl Tlb {
    /// An empty TLB of `sets` sets, a power of two.
    pub fn new(sets: usize) -> Self {
        assert!(sets.is_power_of_two(), "{sets} sets are no power of two");
        let nothing = Entry {
            frame: Frame(0),
            large: false,
            writable: false,
            dirty: false,
            executable: false,
            note: 0,
        };
        Tlb {
            tags: vec![[0; WAYS]; sets].into(),
            entries: vec![[nothing; WAYS]; sets].into(),
            next: vec![0; sets].into(),
            recent: vec![0; sets].into(),
            has_large: false,
        }
    }

    /// The set of a tag.
    #[inline]
    fn set(&self, tag: u64) -> usize {
        tag as usize & (self.tags.len() - 1)
    }

    /// Where the entry of a tag is.
    #[inline]
    fn find(&self, tag: u64) -> Option<(usize, usize)> {
        let set = self.set(tag);
        let way = self.tags[set].iter().position(|&t| t == tag)?;
        Some((set, way))
    }

    /// The entry of a tag, if it was the last that was found in its set.
    #[inline]
    fn recent(&self, tag: u64) -> Option<Entry> {
        let set = self.set(tag);
        let way = self.recent[set] as usize;
        (self.tags[set].get(way) == Some(&tag)).then(|| self.entries[set][way])
    }

    /// The entry of a tag.
    #[inline]
    fn search(&mut self, tag: u64) -> Option<Entry> {
        let (set, way) = self.find(tag)?;
        self.recent[set] = way as u8;
        Some(self.entries[set][way])
    }

    /// The entry that translates `page` (a page number) in `asid`. O(ways).
    #[inline]
    pub fn lookup(&mut self, asid: Asid, page: usize) -> Option<Entry> {
        let (small, large) = (small(asid, page), large(asid, page));
        let recent = self.recent(small).or_else(|| self.recent(large));
        let found = recent.or_else(|| self.search(small).or_else(|| self.search(large)));
        found.map(|entry| entry.at(page))
    }

    /// Keeps `entry`, which was found for `page` in `asid`; it replaces the page's entry of that
    /// size or, if there is none, the oldest entry of the set.
    pub fn insert(&mut self, asid: Asid, page: usize, entry: Entry) {
        let tag = if entry.large {
            large(asid, page)
        } else {
            small(asid, page)
        };
        self.has_large |= entry.large;
        let (set, way) = self.find(tag).unwrap_or_else(|| {
            let set = self.set(tag);
            let way = self.next[set] as usize;
            self.next[set] = ((way + 1) % WAYS) as u8;
            (set, way)
        });
        self.tags[set][way] = tag;
        self.entries[set][way] = entry.kept(page);
    }

    /// Drops the entries that translate `page` of `asid`.
    pub fn remove(&mut self, asid: Asid, page: usize) {
        self.drop_tag(small(asid, page));
        self.drop_tag(large(asid, page));
    }

    #[inline]
    fn drop_tag(&mut self, tag: u64) {
        let set = self.set(tag);
        if let Some(place) = self.tags[set].iter_mut().find(|place| **place == tag) {
            *place = 0;
        }
    }

    /// Drops entries of `asid`, including those that are named only in part. O(pages) for a range
    /// of no more pages than there are sets, otherwise O(entries).
    pub fn flush(&mut self, asid: Asid, what: Flush) {
        match what {
            Flush::All => self.forget_all(asid),
            Flush::Range(range) => {
                let pages = range.start >> PAGE_SHIFT..range.end.div_ceil(1 << PAGE_SHIFT);
                if pages.len() <= self.tags.len() {
                    self.flush_each(asid, pages)
                } else {
                    self.forget_range(asid, pages)
                }
            }
        }
    }

    #[inline]
    fn flush_each(&mut self, asid: Asid, pages: Range<usize>) {
        if self.has_large {
            let whole = pages.start / pte::ENTRIES..pages.end.div_ceil(pte::ENTRIES);
            whole.for_each(|number| self.drop_tag(large(asid, number * pte::ENTRIES)));
        }
        pages.for_each(|page| self.drop_tag(small(asid, page)));
    }

    #[inline(never)]
    fn forget_range(&mut self, asid: Asid, pages: Range<usize>) {
        self.forget(|tag| {
            let (its, of) = untag(tag);
            its == asid && of.start < pages.end && pages.start < of.end
        });
    }

    /// Drops all entries of `asid`, without a branch for each place.
    #[inline(never)]
    fn forget_all(&mut self, asid: Asid) {
        for tag in self.tags.as_flattened_mut() {
            let stays = untag(*tag).0 != asid;
            *tag = if stays { *tag } else { 0 };
        }
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.forget(|_| true);
        self.has_large = false;
    }

    fn forget(&mut self, doomed: impl Fn(u64) -> bool) {
        for tag in self.tags.as_flattened_mut() {
            if *tag != 0 && doomed(*tag) {
                *tag = 0;
            }
        }
    }
}

impl Entry {
    /// Returns true if the entry allows the access without a walk.
    #[inline]
    pub fn allows(&self, access: Access) -> bool {
        match access {
            Access::Read => true,
            Access::Write => self.writable && self.dirty,
            Access::Execute => self.executable,
        }
    }

    /// Returns true if the entry forbids the access, without a walk.
    #[inline]
    pub fn forbids(&self, access: Access) -> bool {
        match access {
            Access::Read => false,
            Access::Write => !self.writable,
            Access::Execute => !self.executable,
        }
    }

    /// From the entry of `page` to the one that is kept: that of the first page it translates.
    #[inline]
    fn kept(self, page: usize) -> Entry {
        let frame = Frame(self.frame.0 - self.inside(page));
        Entry { frame, ..self }
    }

    /// Converts the entry that is kept to that of `page`.
    #[inline]
    fn at(self, page: usize) -> Entry {
        let frame = Frame(self.frame.0 + self.inside(page));
        Entry { frame, ..self }
    }

    /// The pages before `page` in the entry's range.
    #[inline]
    fn inside(self, page: usize) -> u32 {
        if self.large {
            (page % pte::ENTRIES) as u32
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PAGE_SIZE, VaRange};

    const A: Asid = Asid(1);
    const B: Asid = Asid(u16::MAX);

    fn entry(frame: u32) -> Entry {
        Entry {
            frame: Frame(frame),
            large: false,
            writable: true,
            dirty: false,
            executable: true,
            note: 0,
        }
    }

    /// The entry of a page of 4 KiB in one of 2 MiB.
    fn part(frame: u32) -> Entry {
        Entry {
            large: true,
            ..entry(frame)
        }
    }

    #[test]
    fn asids_never_meet() {
        let mut tlb = Tlb::new(4);
        tlb.insert(A, 7, entry(1));
        assert_eq!(tlb.lookup(B, 7), None);
        tlb.insert(B, 7, entry(2));
        assert_eq!(tlb.lookup(A, 7), Some(entry(1)));
        tlb.flush(A, Flush::All);
        assert_eq!(tlb.lookup(A, 7), None);
        assert_eq!(tlb.lookup(B, 7), Some(entry(2)));
    }

    #[test]
    fn the_highest_page_and_asid_fit_a_tag() {
        let top = pte::USER_END / PAGE_SIZE - 1;
        assert_eq!(untag(small(B, top)), (B, top..top + 1));
        assert_eq!(untag(large(B, top)), (B, top - 511..top + 1));
    }

    #[test]
    fn the_oldest_of_a_set_gives_way() {
        let mut tlb = Tlb::new(4);
        let page = |n: usize| 4 * n + 1;
        (0..=WAYS).for_each(|n| tlb.insert(A, page(n), entry(n as u32)));
        assert_eq!(tlb.lookup(A, page(0)), None);
        for n in 1..=WAYS {
            assert_eq!(tlb.lookup(A, page(n)), Some(entry(n as u32)));
        }
    }

    #[test]
    fn an_entry_is_replaced_in_its_place() {
        let mut tlb = Tlb::new(1);
        (0..WAYS).for_each(|n| tlb.insert(A, n, entry(0)));
        tlb.insert(A, 3, entry(9));
        assert_eq!(tlb.lookup(A, 3), Some(entry(9)));
        assert!((0..WAYS).all(|n| tlb.lookup(A, n).is_some()));
    }

    #[test]
    fn short_and_long_ranges_are_flushed_exactly() {
        for pages in [1, 4, 5, 40] {
            let mut tlb = Tlb::new(4);
            (0..48).for_each(|page| tlb.insert(A, page, entry(0)));
            let range = VaRange::sized(3 * PAGE_SIZE, pages * PAGE_SIZE);
            tlb.flush(A, Flush::Range(range));
            for page in 0..48 {
                let kept = tlb.lookup(A, page).is_some();
                assert_eq!(kept, !range.contains(page * PAGE_SIZE), "page {page}");
            }
        }
    }

    #[test]
    fn one_large_entry_translates_all_of_its_pages() {
        let mut tlb = Tlb::new(4);
        tlb.insert(A, 3 * 512 + 7, part(1024 + 7));
        for page in [0, 1, 7, 511] {
            let found = tlb.lookup(A, 3 * 512 + page);
            assert_eq!(found, Some(part(1024 + page as u32)), "page {page}");
        }
        for (asid, page) in [(A, 3 * 512 - 1), (A, 4 * 512), (B, 3 * 512)] {
            assert_eq!(tlb.lookup(asid, page), None, "{asid:?} page {page}");
        }
        // A page's entry replaces the large one in its place, whichever page filled that.
        (0..WAYS).for_each(|n| tlb.insert(A, 3 * 512 + n, part(2048 + n as u32)));
        assert_eq!(tlb.lookup(A, 3 * 512 + 9), Some(part(2048 + 9)));
    }

    #[test]
    fn what_forgets_a_page_forgets_the_large_one_around_it() {
        let page_of = |page: usize| VaRange::sized(page * PAGE_SIZE, PAGE_SIZE);
        let range = |pages: Range<usize>| VaRange {
            start: pages.start * PAGE_SIZE,
            end: pages.end * PAGE_SIZE,
        };
        for (what, hit) in [
            (page_of(512), true),
            (page_of(512 + 300), true),
            (page_of(1023), true),
            (page_of(511), false),
            (page_of(1024), false),
            (range(500..513), true),
            (range(1020..1030), true),
            (range(100..512), false),
            (range(100..513), true),
            (range(1023..4096), true),
            (range(1024..4096), false),
        ] {
            let mut tlb = Tlb::new(16);
            tlb.insert(A, 512 + 4, part(4));
            tlb.insert(B, 512 + 4, part(4));
            tlb.flush(A, Flush::Range(what));
            let kept = tlb.lookup(A, 512 + 9).is_some();
            assert_eq!(kept, !hit, "{what:?}");
            assert!(tlb.lookup(B, 512).is_some(), "{what:?}, another ASID");
        }
        let mut tlb = Tlb::new(16);
        tlb.insert(A, 512, part(0));
        tlb.remove(A, 512 + 100);
        assert_eq!(tlb.lookup(A, 512), None);
    }

    #[test]
    fn both_sizes_may_be_there_and_go_together() {
        let mut tlb = Tlb::new(16);
        tlb.insert(A, 512 + 4, part(1024 + 4));
        tlb.insert(A, 512 + 4, entry(9));
        let found = tlb.lookup(A, 512 + 4);
        assert!(found == Some(entry(9)) || found == Some(part(1024 + 4)));
        assert_eq!(tlb.lookup(A, 512 + 5), Some(part(1024 + 5)));
        tlb.remove(A, 512 + 4);
        assert_eq!(tlb.lookup(A, 512 + 4), None);
        assert_eq!(tlb.lookup(A, 512 + 5), None);
    }
}
