//! Pages of 2 MiB. The checks need 512 aligned frames besides the suite's own.

use super::mmu::{each_level, enter, harvest_at, no_execute, refused};
use super::owned::Owned;
use super::tables::{ADDRESS, ASID, OTHER, READ, Tables, WRITE, large};
use super::{Meeting, alone, two};
use crate::{
    Access, Atomic, CpuSet, Execute, Flush, Frame, Ordering, PAGE_SIZE, Platform, VaRange, pte,
};
use alloc::sync::Arc;

/// The 2 MiB around the suite's address.
const BASE: usize = ADDRESS & !(pte::span(1) - 1);
/// The pages of the 2 MiB that are accessed.
const PAGES: [usize; 4] = [0, 1, 300, pte::ENTRIES - 1];
/// The bits that the walker sets.
const BOTH: u64 = pte::ACCESSED | pte::DIRTY;

/// The address of the word that is accessed in a page.
const fn at(page: usize) -> usize {
    BASE + page * PAGE_SIZE + 8
}

const fn pages(first: usize, count: usize) -> VaRange {
    VaRange::sized(BASE + first * PAGE_SIZE, count * PAGE_SIZE)
}

/// A word of page `page` of the large page.
fn word<M: Platform>(m: &Owned<M>, page: usize) -> &M::AtomicU64 {
    m.word(Frame(large(m).0 + page as u32), 1)
}

/// An entry of level 1 with the large bit maps 2 MiB, page by page to frame by frame, with its own
/// accessed and dirty bits and rights.
pub fn large_pages<M: Execute + Platform + Clone>(m: &M) {
    alone(m, |m| {
        let tables = Tables::new(m, 0);
        let _inside = enter(m, &tables, ASID);
        tables.map_large(ADDRESS, WRITE);
        let entry = tables.entry_at(BASE, 1);
        let bits = || entry.load(Ordering::Relaxed) & BOTH;
        for page in PAGES {
            word(m, page).store(page as u64, Ordering::Relaxed);
            assert_eq!(m.load(at(page)), Ok(page as u64), "page {page}");
        }
        assert_eq!(bits(), pte::ACCESSED, "a large entry after loads");
        for page in PAGES {
            assert_eq!(m.store(at(page), 1000 + page as u64), Ok(()));
            let stored = word(m, page).load(Ordering::Relaxed);
            assert_eq!(stored, 1000 + page as u64, "a store to page {page}");
            assert_eq!(bits(), BOTH, "a large entry after a store to page {page}");
        }
        for beside in [BASE - 8, BASE + pte::span(1)] {
            let absent = Err(refused(beside, Access::Read, false));
            assert_eq!(m.load(beside), absent, "beside a large page");
        }
        (1..pte::LEVELS).for_each(|level| each_level(m, &tables, level));
        (1..pte::LEVELS).for_each(|level| no_execute(m, &tables, level));

        tables.map_large(ADDRESS, READ);
        m.flush_local(ASID, Flush::All);
        for page in PAGES {
            let forbidden = Err(refused(at(page), Access::Write, true));
            assert_eq!(m.load(at(page)), Ok(1000 + page as u64), "read-only");
            assert_eq!(m.store(at(page), 0), forbidden, "read-only");
        }
        assert_eq!(bits(), pte::ACCESSED, "a refused store dirtied");
        entry.swap(0, Ordering::AcqRel);
        m.flush_local(ASID, Flush::Range(pages(0, pte::ENTRIES)));
        (PAGES.iter()).for_each(|&page| assert!(m.load(at(page)).is_err(), "flushed"));
        assert_eq!(bits(), 0, "an absent entry was marked");
    });
}

/// A local flush of any address in a large page, alone or in a range, drops the whole translation.
pub fn large_flushes<M: Execute + Platform + Clone>(m: &M) {
    alone(m, |m| {
        let tables = Tables::new(m, 0);
        let _inside = enter(m, &tables, ASID);
        let within = [0, 77, pte::ENTRIES - 1].map(|page| pages(page, 1));
        let before = VaRange::sized(BASE - 2 * PAGE_SIZE, 3 * PAGE_SIZE);
        let behind = pages(pte::ENTRIES - 1, 2 * pte::ENTRIES);
        let ranges = within.into_iter().chain([before, behind]);
        for what in ranges.map(Flush::Range).chain([Flush::All]) {
            tables.map_large(ADDRESS, WRITE);
            for page in PAGES {
                assert_eq!(m.store(at(page), 1), Ok(()), "a page mapped anew");
            }
            tables.entry_at(BASE, 1).swap(0, Ordering::AcqRel);
            m.flush_local(ASID, what);
            let left = PAGES.iter().find(|&&page| m.load(at(page)).is_ok());
            assert_eq!(
                left, None,
                "pages still translated after the flush of {what:?}"
            );
        }
    });
}

/// A shootdown of any address in a large page drops the whole translation on other CPUs.
pub fn large_shootdown<M: Execute + Platform + Clone>(m: &M) {
    struct Shared<M: Execute + Platform> {
        machine: Owned<M>,
        tables: Tables<M>,
        meeting: Meeting<M>,
    }
    let machine = Owned::new(m);
    let shared = Arc::new(Shared {
        tables: Tables::new(&machine, 0),
        machine,
        meeting: Meeting::new(),
    });
    shared.tables.map_large(ADDRESS, WRITE);
    let initiator = |s: &Shared<M>| {
        let meeting = s.meeting.attend();
        meeting.meet();
        s.tables.entry_at(BASE, 1).swap(0, Ordering::AcqRel);
        let mut target = CpuSet::EMPTY;
        target.insert(1);
        let one = Flush::Range(pages(77, 1));
        s.machine.shootdown(&target, ASID, one);
        meeting.meet();
    };
    let target = |s: &Shared<M>| {
        let meeting = s.meeting.attend();
        let _inside = enter(&s.machine, &s.tables, ASID);
        for page in PAGES {
            assert_eq!(s.machine.store(at(page), 1), Ok(()));
        }
        meeting.meet();
        meeting.meet();
        let left = PAGES.iter().find(|&&page| s.machine.load(at(page)).is_ok());
        assert_eq!(
            left, None,
            "pages still translated after a shootdown of one"
        );
    };
    two(m, &shared, initiator, target);
}

/// An entry changes from a table to a large page and back, with other frames: both may be seen
/// until the flush, only the new one after it; each has the marks of its own accesses.
pub fn large_changes<M: Execute + Platform + Clone>(m: &M) {
    alone(m, |m| {
        let tables = Tables::new(m, 0);
        let _inside = enter(m, &tables, ASID);
        let small = tables.frame();
        m.word(small, 1).store(1, Ordering::Relaxed);
        for page in PAGES {
            tables.map(at(page), small, WRITE);
            word(m, page).store(2, Ordering::Relaxed);
        }
        let entry = tables.entry_at(BASE, 1);
        let table = entry.load(Ordering::Relaxed);
        let all = |expected: &[u64], when: &str| {
            for page in PAGES {
                let found = m.load(at(page)).expect("mapped before and after");
                assert!(expected.contains(&found), "page {page} {when}: {found}");
            }
        };
        all(&[1], "while the table maps");
        entry.swap(large(m).address() | WRITE | pte::HUGE, Ordering::AcqRel);
        all(&[1, 2], "before the flush");
        m.flush_local(ASID, Flush::Range(pages(0, pte::ENTRIES)));
        all(&[2], "while the large page maps");
        assert_eq!(m.store(at(300), 2), Ok(()));
        assert_eq!(word(m, 300).load(Ordering::Relaxed), 2);

        let large = entry.swap(table, Ordering::AcqRel);
        assert_eq!(large & BOTH, BOTH, "the large page's own marks");
        all(&[1, 2], "before the flush");
        m.flush_local(ASID, Flush::Range(pages(1, 1)));
        all(&[1], "while the table maps again");
        let marks = |page| {
            let word = m.word(pte::frame(table), pte::index(at(page), 0));
            word.load(Ordering::Relaxed) & BOTH
        };
        let found = PAGES.map(marks);
        assert_eq!(
            found,
            [pte::ACCESSED; 4],
            "marks of the pages that were read"
        );
        assert_eq!(m.store(at(1), 1), Ok(()));
        let dirty = PAGES.map(|page| marks(page) == BOTH);
        assert_eq!(dirty, PAGES.map(|page| page == 1), "dirty by the page");
    });
}

/// The check of [`super::harvest`], with a large page.
pub fn large_harvest<M: Execute + Platform + Clone>(m: &M, rounds: usize) {
    harvest_at(m, rounds, 1);
}

/// Beyond the contract: a large page is one stale entry, whichever of its pages filled it, until
/// one of them is flushed.
pub fn exact_large_tlb<M: Execute + Platform + Clone>(m: &M) {
    alone(m, |m| {
        let tables = Tables::new(m, 0);
        let _inside = enter(m, &tables, ASID);
        tables.map_large(ADDRESS, WRITE);
        assert_eq!(m.store(at(300), 1), Ok(()));
        tables.entry_at(BASE, 1).swap(0, Ordering::AcqRel);
        let beside = VaRange::sized(BASE - PAGE_SIZE, PAGE_SIZE);
        m.flush_local(ASID, Flush::Range(beside));
        m.flush_local(ASID, Flush::Range(pages(pte::ENTRIES, 1)));
        m.flush_local(OTHER, Flush::Range(pages(0, pte::ENTRIES)));
        for page in PAGES {
            assert_eq!(m.store(at(page), 5), Ok(()), "a stale entry, page {page}");
            assert_eq!(word(m, page).load(Ordering::Relaxed), 5, "page {page}");
        }
        m.flush_local(ASID, Flush::Range(pages(2, 1)));
        (PAGES.iter()).for_each(|&page| assert!(m.load(at(page)).is_err(), "flushed"));
    });
}
