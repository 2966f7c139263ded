//! One CPU's translation.

use super::tables::{ADDRESS, ASID, FRAMES, NEXT, OTHER, READ, Tables, WRITE};
use super::{Meeting, alone, linger, two};
use crate::{
    Access, Asid, Atomic, Execute, Flush, Frame, Mmu, Ordering, PAGE_SIZE, PageFault, Platform,
    VaRange, pte,
};
use alloc::sync::Arc;

/// Makes this CPU translate with `tables`, with nothing cached.
pub(super) fn enter<M: Mmu + Clone>(m: &M, tables: &Tables<M>, asid: Asid) {
    m.flush_local(asid, Flush::All);
    m.activate(tables.root, asid);
}

pub(super) fn refused(address: usize, access: Access, present: bool) -> PageFault {
    PageFault {
        address,
        access,
        present,
    }
}

/// What the tables map is read and written, what they do not map or forbid, at any
/// level, faults and says why.
pub fn translation<M: Execute + Platform + Clone>(m: &M) {
    alone(m, |m| {
        let absent = |address| Err(refused(address, Access::Read, false));
        m.deactivate();
        assert_eq!(m.load(ADDRESS), absent(ADDRESS), "no tables");
        let tables = Tables::new(m, 0);
        enter(m, &tables, ASID);
        assert_eq!(m.load(ADDRESS), absent(ADDRESS), "empty tables");

        let frame = tables.map_new(ADDRESS, WRITE);
        m.word(frame, 5).store(50, Ordering::Relaxed);
        assert_eq!(
            m.load(ADDRESS + 40),
            Ok(50),
            "an absent entry was cached, or"
        );
        assert_eq!(m.store(ADDRESS + 48, 60), Ok(()));
        assert_eq!(m.word(frame, 6).load(Ordering::Relaxed), 60, "a store");
        assert_eq!(m.load(ADDRESS + 48), Ok(60), "a load after a store");
        assert_eq!(m.load(NEXT), absent(NEXT), "the page behind");
        assert_eq!(m.load(pte::USER_END), absent(pte::USER_END));
        let alias = ADDRESS | 1 << 48;
        assert_eq!(m.load(alias), absent(alias), "more than 48 bits of address");

        for level in 0..pte::LEVELS {
            each_level(m, &tables, level);
        }
        m.deactivate();
        assert_eq!(m.load(ADDRESS), absent(ADDRESS), "deactivated");
    });
}

/// What taking bits from the entry at `level` does to accesses below it.
pub(super) fn each_level<M: Platform + Clone>(m: &M, tables: &Tables<M>, level: u32) {
    let word = tables.entry_at(ADDRESS, level);
    let entry = word.load(Ordering::Relaxed);
    let with = |entry: u64| {
        word.store(entry, Ordering::Relaxed);
        m.flush_local(ASID, Flush::All);
    };
    let read = |present| Err(refused(ADDRESS, Access::Read, present));
    let write = |present| Err(refused(ADDRESS, Access::Write, present));

    with(entry & !pte::PRESENT);
    assert_eq!(
        m.load(ADDRESS).map(drop),
        read(false),
        "level {level} absent"
    );
    assert_eq!(m.store(ADDRESS, 0), write(false), "level {level} absent");
    with(entry & !pte::WRITABLE);
    assert!(m.load(ADDRESS).is_ok(), "level {level} read-only, read");
    assert_eq!(m.store(ADDRESS, 0), write(true), "level {level} read-only");
    with(entry & !pte::USER);
    assert_eq!(
        m.load(ADDRESS).map(drop),
        read(true),
        "level {level} the kernel's"
    );
    assert_eq!(
        m.store(ADDRESS, 0),
        write(true),
        "level {level} the kernel's"
    );
    // A fault for lack of rights may come from the TLB; it drops the entry.
    with(entry & !pte::WRITABLE);
    assert!(m.load(ADDRESS).is_ok());
    word.store(entry, Ordering::Relaxed);
    let raised = m.store(ADDRESS, 0).or_else(|_| m.store(ADDRESS, 0));
    assert_eq!(raised, Ok(()), "rights given at level {level} never arrive");
}

/// The walker sets the accessed bit by any access, the dirty bit by a write, in
/// entries that allow the access and in no others; again after a flush.
pub fn accessed_dirty<M: Execute + Platform + Clone>(m: &M) {
    alone(m, |m| {
        const BOTH: u64 = pte::ACCESSED | pte::DIRTY;
        let tables = Tables::new(m, 0);
        enter(m, &tables, ASID);
        tables.map_new(ADDRESS, WRITE);
        let word = tables.entry(ADDRESS);
        let bits = || word.load(Ordering::Relaxed) & BOTH;
        assert_eq!(bits(), 0);
        assert_eq!(m.load(ADDRESS), Ok(0));
        assert_eq!(bits(), pte::ACCESSED, "after a load");
        assert_eq!(m.store(ADDRESS, 1), Ok(()));
        assert_eq!(
            bits(),
            BOTH,
            "after a store through an entry cached as clean"
        );

        word.store(word.load(Ordering::Relaxed) & !BOTH, Ordering::Relaxed);
        m.flush_local(ASID, Flush::All);
        assert_eq!(m.store(ADDRESS, 2), Ok(()));
        assert_eq!(bits(), BOTH, "after a store behind a flush");

        for forbidden in [READ, pte::PRESENT | pte::WRITABLE, 0] {
            tables.map(ADDRESS, Frame(0), forbidden);
            m.flush_local(ASID, Flush::All);
            assert!(m.store(ADDRESS, 3).is_err());
            assert_eq!(bits() & pte::DIRTY, 0, "a refused store dirtied");
        }
        assert_eq!(bits(), 0, "an absent entry was marked");
    });
}

/// A local flush forgets what it names, by range or all; what is mapped stays
/// reachable.
pub fn flushes<M: Execute + Platform + Clone>(m: &M) {
    alone(m, |m| {
        let tables = Tables::new(m, 0);
        enter(m, &tables, ASID);
        let [a, b] = [ADDRESS, NEXT].map(|address| tables.map_new(address, WRITE));
        let swap = |x, y| {
            tables.map(ADDRESS, x, WRITE);
            tables.map(NEXT, y, WRITE);
        };
        m.word(a, 0).store(1, Ordering::Relaxed);
        m.word(b, 0).store(2, Ordering::Relaxed);
        let both = || [ADDRESS, NEXT].map(|address| m.load(address));
        assert_eq!(both(), [Ok(1), Ok(2)]);

        swap(b, a);
        m.flush_local(ASID, Flush::Range(VaRange::sized(ADDRESS, PAGE_SIZE)));
        assert_eq!(m.load(ADDRESS), Ok(2), "a range of one page");
        m.flush_local(ASID, Flush::Range(VaRange::sized(ADDRESS, 2 * PAGE_SIZE)));
        assert_eq!(both(), [Ok(2), Ok(1)], "a range of two pages");
        swap(a, b);
        let long = VaRange::sized(ADDRESS - (1 << 30), 1 << 31);
        m.flush_local(ASID, Flush::Range(long));
        assert_eq!(both(), [Ok(1), Ok(2)], "a range of 2 GiB");
        swap(b, a);
        m.flush_local(ASID, Flush::All);
        assert_eq!(both(), [Ok(2), Ok(1)], "all");
    });
}

/// Entries of different ASIDs do not meet.
pub fn asids<M: Execute + Platform + Clone>(m: &M) {
    alone(m, |m| {
        let spaces = [(0, ASID), (FRAMES as u32 / 2, OTHER)];
        let spaces = spaces.map(|(first, asid)| (Tables::new(m, first), asid));
        for (i, (tables, asid)) in spaces.iter().enumerate() {
            enter(m, tables, *asid);
            let frame = tables.map_new(ADDRESS, WRITE);
            m.word(frame, 0).store(i as u64, Ordering::Relaxed);
        }
        for _ in 0..2 {
            for (i, (tables, asid)) in spaces.iter().enumerate() {
                m.activate(tables.root, *asid);
                assert_eq!(m.load(ADDRESS), Ok(i as u64), "{asid:?} sees another");
            }
        }
    });
}

/// Beyond the contract, for machines whose TLB forgets nothing by itself: a stale
/// entry is used until it is flushed, by its own ASID and page and no other.
pub fn exact_tlb<M: Execute + Platform + Clone>(m: &M) {
    alone(m, |m| {
        let tables = Tables::new(m, 0);
        enter(m, &tables, ASID);
        let frame = tables.map_new(ADDRESS, WRITE);
        assert_eq!(m.store(ADDRESS, 1), Ok(()));
        tables.entry(ADDRESS).store(0, Ordering::Relaxed);
        assert_eq!(m.store(ADDRESS, 2), Ok(()), "a stale entry");
        assert_eq!(m.word(frame, 0).load(Ordering::Relaxed), 2);
        m.flush_local(OTHER, Flush::All);
        m.flush_local(ASID, Flush::Range(VaRange::sized(NEXT, PAGE_SIZE)));
        m.deactivate();
        m.activate(tables.root, ASID);
        assert_eq!(m.load(ADDRESS), Ok(2), "a stale entry after other flushes");
        m.flush_local(ASID, Flush::Range(VaRange::sized(ADDRESS, PAGE_SIZE)));
        assert!(m.load(ADDRESS).is_err(), "a stale entry after its flush");
    });
}

/// A kernel that exchanges an entry for 0 learns from the old value of every store
/// the walker let through, and the walker marks no absent entry.
pub fn harvest<M: Execute + Platform + Clone>(m: &M, rounds: usize) {
    harvest_at(m, rounds, 0);
}

/// The same with an entry at `level`.
pub(super) fn harvest_at<M: Execute + Platform + Clone>(m: &M, rounds: usize, level: u32) {
    struct Shared<M: Execute> {
        machine: M,
        tables: Tables<M>,
        frame: Frame,
        /// The entry's value when the page is mapped.
        mapped: u64,
        meeting: Meeting<M>,
    }
    let tables = Tables::new(m, 0);
    let frame = match level {
        0 => tables.map_new(ADDRESS, WRITE),
        _ => tables.map_large(ADDRESS, WRITE),
    };
    let shared = Arc::new(Shared {
        machine: m.clone(),
        frame,
        mapped: tables.entry_at(ADDRESS, level).load(Ordering::Relaxed),
        tables,
        meeting: Meeting::new(),
    });
    let kernel = move |s: &Shared<M>| {
        let meeting = s.meeting.attend();
        let data = s.machine.word(s.frame, 0);
        let entry = s.tables.entry_at(ADDRESS, level);
        for round in 0..rounds {
            if round > 0 {
                data.store(0, Ordering::Relaxed);
                entry.store(s.mapped, Ordering::Release);
                meeting.meet();
            }
            if round % 2 == 1 {
                linger::<M>(|| data.load(Ordering::Relaxed) != 0);
            }
            M::delay(round as u32 % 64);
            let old = entry.swap(0, Ordering::AcqRel);
            meeting.meet();
            let stored = data.load(Ordering::Relaxed) == 7;
            assert_eq!(old & pte::DIRTY != 0, stored, "dirty bit against store");
            assert_eq!(
                entry.load(Ordering::Relaxed),
                0,
                "an absent entry was marked"
            );
        }
    };
    let task = move |s: &Shared<M>| {
        let meeting = s.meeting.attend();
        enter(&s.machine, &s.tables, ASID);
        for round in 0..rounds {
            if round > 0 {
                s.machine.flush_local(ASID, Flush::All);
                meeting.meet();
            }
            // Stored or refused; the kernel's side knows what follows from each.
            let _either = s.machine.store(ADDRESS, 7);
            meeting.meet();
        }
    };
    two(m, &shared, kernel, task);
}
