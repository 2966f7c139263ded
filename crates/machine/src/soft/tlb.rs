//! A translation look-aside buffer, modelled exactly.
//!
//! It keeps what it was given until it is told to forget it or needs the place, so
//! an access through an entry that a kernel forgot to flush *happens*, and is seen.
//! Set-associative; within a set the oldest entry gives way (first in, first out),
//! so the same accesses always leave the same contents.

use crate::{Asid, Flush, Frame, PAGE_SHIFT};
use alloc::boxed::Box;
use alloc::vec;

/// Entries in a set. 12 ways by [`SETS`] are the second-level TLB of recent Intel cores.
pub const WAYS: usize = 12;
/// Sets in a CPU's TLB; 1,536 entries in all.
pub const SETS: usize = 128;

/// What the walker found for a 4 KiB page.
///
/// Larger pages are cached in 4 KiB pieces, so the size is no part of the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The page's frame.
    pub frame: Frame,
    /// Whether tasks may write.
    pub writable: bool,
    /// Whether a write needs no walk: allowed, and the dirty bit is set.
    pub dirty: bool,
    /// Whatever the machine wants to remember with it.
    pub note: u16,
}

/// The TLB of one CPU. The owner's alone: it has no atomics and needs none.
pub struct Tlb {
    /// What each place holds; 0 is nothing. Apart from `entries`, so that a look-up
    /// compares consecutive words.
    tags: Box<[[u64; WAYS]]>,
    entries: Box<[[Entry; WAYS]]>,
    /// The place in each set that is filled next.
    next: Box<[u8]>,
    /// The place in each set that was found last, where the next look-up begins.
    recent: Box<[u8]>,
}

/// Marks a tag as one of an entry.
const VALID: u64 = 1 << 63;
/// Where the ASID stands in a tag, above the 36 bits of a page number.
const ASID_SHIFT: u32 = 36;

/// The tag of `page` in `asid`.
#[inline]
fn tag(asid: Asid, page: usize) -> u64 {
    VALID | (asid.0 as u64) << ASID_SHIFT | page as u64
}

/// The ASID and the page number of a tag.
#[inline]
fn untag(tag: u64) -> (Asid, usize) {
    let page = tag & ((1 << ASID_SHIFT) - 1);
    (Asid((tag >> ASID_SHIFT) as u16), page as usize)
}

impl Tlb {
    /// An empty TLB of `sets` sets, a power of two.
    pub fn new(sets: usize) -> Self {
        assert!(sets.is_power_of_two(), "{sets} sets are no power of two");
        let nothing = Entry {
            frame: Frame(0),
            writable: false,
            dirty: false,
            note: 0,
        };
        Tlb {
            tags: vec![[0; WAYS]; sets].into(),
            entries: vec![[nothing; WAYS]; sets].into(),
            next: vec![0; sets].into(),
            recent: vec![0; sets].into(),
        }
    }

    /// The set of a page.
    #[inline]
    fn set(&self, page: usize) -> usize {
        page & (self.tags.len() - 1)
    }

    /// Where `page` of `asid` is.
    #[inline]
    fn find(&self, asid: Asid, page: usize) -> Option<(usize, usize)> {
        let (set, tag) = (self.set(page), tag(asid, page));
        let way = self.tags[set].iter().position(|&t| t == tag)?;
        Some((set, way))
    }

    /// The entry of `page` (a page number) in `asid`. O(ways).
    #[inline]
    pub fn lookup(&mut self, asid: Asid, page: usize) -> Option<Entry> {
        let set = self.set(page);
        let recent = self.recent[set] as usize;
        if self.tags[set].get(recent) == Some(&tag(asid, page)) {
            return Some(self.entries[set][recent]);
        }
        let (set, way) = self.find(asid, page)?;
        self.recent[set] = way as u8;
        Some(self.entries[set][way])
    }

    /// Keeps `entry` for `page` in `asid`, in place of what was there for it, or of
    /// the oldest entry of the set.
    pub fn insert(&mut self, asid: Asid, page: usize, entry: Entry) {
        let (set, way) = self.find(asid, page).unwrap_or_else(|| {
            let set = self.set(page);
            let way = self.next[set] as usize;
            self.next[set] = ((way + 1) % WAYS) as u8;
            (set, way)
        });
        self.tags[set][way] = tag(asid, page);
        self.entries[set][way] = entry;
    }

    /// Forgets `page` of `asid`.
    pub fn remove(&mut self, asid: Asid, page: usize) {
        if let Some((set, way)) = self.find(asid, page) {
            self.tags[set][way] = 0;
        }
    }

    /// Forgets entries of `asid`. O(pages) for a range shorter than a set is deep,
    /// else O(entries).
    pub fn flush(&mut self, asid: Asid, what: Flush) {
        match what {
            Flush::All => self.forget(|tag| untag(tag).0 == asid),
            Flush::Range(range) => {
                let pages = range.start >> PAGE_SHIFT..range.end.div_ceil(1 << PAGE_SHIFT);
                if pages.len() <= self.tags.len() {
                    pages.for_each(|page| self.remove(asid, page));
                } else {
                    self.forget(|tag| {
                        let (its, page) = untag(tag);
                        its == asid && pages.contains(&page)
                    });
                }
            }
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.forget(|_| true);
    }

    fn forget(&mut self, doomed: impl Fn(u64) -> bool) {
        for tag in self.tags.as_flattened_mut() {
            if *tag != 0 && doomed(*tag) {
                *tag = 0;
            }
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
            writable: true,
            dirty: false,
            note: 0,
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
        let top = crate::pte::USER_END / PAGE_SIZE - 1;
        assert_eq!(untag(tag(B, top)), (B, top));
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
}
