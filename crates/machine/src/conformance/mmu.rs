//! One CPU's translation.

use super::owned::Owned;
use super::tables::{ADDRESS, ASID, FRAMES, NEXT, OTHER, READ, Tables, WRITE};
use super::{Meeting, alone, linger, two};
use crate::{
    Access, Asid, Atomic, Execute, Flush, Frame, KernelEntries, Mmu, Ordering, PAGE_SIZE,
    PageFault, Platform, VaRange, pte,
};
use alloc::sync::Arc;

/// Makes this CPU translate with `tables`, with nothing cached, until the result is dropped: the
/// next check makes its tables in the same frames.
#[must_use]
pub(super) fn enter<'a, M: Mmu>(m: &'a Owned<M>, tables: &Tables<M>, asid: Asid) -> Inside<'a, M> {
    m.flush_local(asid, Flush::All);
    m.activate(tables.root, asid);
    Inside(m)
}

/// Makes the calling CPU translate until this is dropped.
pub(super) struct Inside<'a, M: Mmu>(&'a M);

impl<M: Mmu> Drop for Inside<'_, M> {
    fn drop(&mut self) {
        self.0.deactivate();
    }
}

pub(super) fn refused(address: usize, access: Access, present: bool) -> PageFault {
    PageFault {
        address,
        access,
        present,
    }
}

/// Mapped pages are read and written; an access that the tables do not map or forbid, at any level,
/// faults and says why.
pub fn translation<M: Execute + Platform + Clone>(m: &M) {
    alone(m, |m| {
        let absent = |address| Err(refused(address, Access::Read, false));
        m.deactivate();
        assert_eq!(m.load(ADDRESS), absent(ADDRESS), "no tables");
        let tables = Tables::new(m, 0);
        let _inside = enter(m, &tables, ASID);
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
        assert_eq!(m.load(NEXT), absent(NEXT), "the next page");
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

/// Clears bits of the entry at `level` and checks the accesses below it.
pub(super) fn each_level<M: Platform>(m: &Owned<M>, tables: &Tables<M>, level: u32) {
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

/// Instructions are fetched from pages that tasks may use, unless an entry at any level forbids it.
pub fn execution<M: Execute + Platform + Clone>(m: &M) {
    alone(m, |m| {
        let tables = Tables::new(m, 0);
        let _inside = enter(m, &tables, ASID);
        let frame = tables.map_new(ADDRESS, READ);
        m.word(frame, 5).store(50, Ordering::Relaxed);
        assert_eq!(m.fetch(ADDRESS + 40), Ok(50), "a fetch");
        let absent = Err(refused(NEXT, Access::Execute, false));
        assert_eq!(m.fetch(NEXT), absent, "a fetch from the next page");
        (0..pte::LEVELS).for_each(|level| no_execute(m, &tables, level));
    });
}

/// Forbids execution in the entry at `level` and checks the accesses below it.
pub(super) fn no_execute<M: Platform>(m: &Owned<M>, tables: &Tables<M>, level: u32) {
    let word = tables.entry_at(ADDRESS, level);
    let entry = word.load(Ordering::Relaxed);
    let with = |entry: u64| {
        word.store(entry, Ordering::Relaxed);
        m.flush_local(ASID, Flush::All);
    };
    let fetch = || m.fetch(ADDRESS).map(drop);
    let refused = Err(refused(ADDRESS, Access::Execute, true));
    for read_first in [false, true] {
        with(entry | pte::NO_EXECUTE);
        if read_first {
            assert!(m.load(ADDRESS).is_ok(), "level {level} no-execute, read");
        }
        assert_eq!(fetch(), refused, "level {level} no-execute");
    }
    // The fault may come from the TLB, as for other rights.
    assert!(m.load(ADDRESS).is_ok());
    word.store(entry, Ordering::Relaxed);
    let raised = fetch().or_else(|_| fetch());
    assert_eq!(raised, Ok(()), "the right at level {level} never arrives");
    with(entry & !pte::USER);
    assert_eq!(fetch(), refused, "level {level} the kernel's");
    with(entry);
}

/// Any access sets the accessed bit and a write the dirty bit, in entries that allow the access and
/// in no others; again after a flush.
pub fn accessed_dirty<M: Execute + Platform + Clone>(m: &M) {
    alone(m, |m| {
        const BOTH: u64 = pte::ACCESSED | pte::DIRTY;
        let tables = Tables::new(m, 0);
        let _inside = enter(m, &tables, ASID);
        tables.map_new(ADDRESS, WRITE);
        let word = tables.entry(ADDRESS);
        let bits = || word.load(Ordering::Relaxed) & BOTH;
        assert_eq!(bits(), 0);
        assert_eq!(m.load(ADDRESS), Ok(0));
        assert_eq!(bits(), pte::ACCESSED, "after a load");
        word.store(
            word.load(Ordering::Relaxed) & !pte::ACCESSED,
            Ordering::Relaxed,
        );
        m.flush_local(ASID, Flush::All);
        assert_eq!(m.fetch(ADDRESS), Ok(0));
        assert_eq!(bits(), pte::ACCESSED, "after a fetch");
        assert_eq!(m.store(ADDRESS, 1), Ok(()));
        assert_eq!(
            bits(),
            BOTH,
            "after a store through an entry cached as clean"
        );

        word.store(word.load(Ordering::Relaxed) & !BOTH, Ordering::Relaxed);
        m.flush_local(ASID, Flush::All);
        assert_eq!(m.store(ADDRESS, 2), Ok(()));
        assert_eq!(bits(), BOTH, "after a flush and a store");

        for forbidden in [READ, pte::PRESENT | pte::WRITABLE, 0] {
            tables.map(ADDRESS, tables.root, forbidden);
            m.flush_local(ASID, Flush::All);
            assert!(m.store(ADDRESS, 3).is_err());
            assert_eq!(bits() & pte::DIRTY, 0, "a refused store dirtied");
        }
        assert_eq!(bits(), 0, "an absent entry was marked");
    });
}

/// A local flush drops the named entries, by range or all; mapped pages stay reachable.
pub fn flushes<M: Execute + Platform + Clone>(m: &M) {
    alone(m, |m| {
        let tables = Tables::new(m, 0);
        let _inside = enter(m, &tables, ASID);
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

/// Entries of different ASIDs are separate, up to the highest ASID; there is at least one.
pub fn asids<M: Execute + Platform + Clone>(m: &M) {
    let count = m.asids();
    let range = 1..=1 << u16::BITS;
    assert!(range.contains(&count), "{count} ASIDs");
    // Spaces that share the only tag are kept apart by the changes of the root.
    let highest = Asid((count - 1) as u16);
    alone(m, move |m| {
        let spaces = [(0, ASID), (FRAMES as u32 / 2, highest)];
        let spaces = spaces.map(|(first, asid)| (Tables::new(m, first), asid));
        for (i, (tables, asid)) in spaces.iter().enumerate() {
            let _inside = enter(m, tables, *asid);
            let frame = tables.map_new(ADDRESS, WRITE);
            m.word(frame, 0).store(i as u64, Ordering::Relaxed);
        }
        for _ in 0..2 {
            for (i, (tables, asid)) in spaces.iter().enumerate() {
                m.activate(tables.root, *asid);
                assert_eq!(
                    m.load(ADDRESS),
                    Ok(i as u64),
                    "{asid:?} sees another's entry"
                );
            }
        }
        m.deactivate();
    });
}

/// The kernel's entries of a root come after the users' entries, lead to no usable frame, and give
/// tasks no access.
pub fn kernel_entries<M: Execute + Platform + Clone>(m: &M) {
    let Some(KernelEntries { root, places }) = m.kernel_entries() else {
        return;
    };
    assert!(places.start >= pte::USER_ENTRIES, "{places:?} are users'");
    assert!(places.end <= pte::ENTRIES, "{places:?} in a root");
    m.usable(&mut |range| assert!(!range.contains(&root.0), "{root:?} is handed over"));
    alone(m, move |m| {
        let tables = Tables::new(m, 0);
        for place in places.clone() {
            let entry = m.word(root, place).load(Ordering::Relaxed);
            m.usable(&mut |range| {
                let leads_out = entry & pte::PRESENT == 0 || !range.contains(&pte::frame(entry).0);
                assert!(leads_out, "entry {place} leads to a frame handed over");
            });
        }
        let _inside = enter(m, &tables, ASID);
        for place in places {
            // Addresses there have all upper bits set.
            let address = (place * pte::span(pte::LEVELS - 1)) | !(2 * pte::USER_END - 1);
            assert!(m.load(address).is_err(), "a task reads at {address:#x}");
        }
        m.deactivate();
    });
}

/// Beyond the contract, for machines whose TLB drops nothing by itself: a stale entry is used until
/// its own ASID and page are flushed.
pub fn exact_tlb<M: Execute + Platform + Clone>(m: &M) {
    alone(m, |m| {
        let tables = Tables::new(m, 0);
        let _inside = enter(m, &tables, ASID);
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

/// A kernel that exchanges an entry for 0 learns from the old value of every store that the walker
/// allowed, and the walker marks no absent entry.
pub fn harvest<M: Execute + Platform + Clone>(m: &M, rounds: usize) {
    harvest_at(m, rounds, 0);
}

/// Accessed and dirty bits of an entry at `level` stay exact while CPUs set and harvest them.
pub(super) fn harvest_at<M: Execute + Platform + Clone>(m: &M, rounds: usize, level: u32) {
    let machine = Owned::new(m);
    let tables = Tables::new(&machine, 0);
    let frame = match level {
        0 => tables.map_new(ADDRESS, WRITE),
        _ => tables.map_large(ADDRESS, WRITE),
    };
    let shared = Arc::new(Harvest {
        machine,
        frame,
        mapped: tables.entry_at(ADDRESS, level).load(Ordering::Relaxed),
        tables,
        level,
        rounds,
        meeting: Meeting::new(),
    });
    two(m, &shared, Harvest::kernel, Harvest::task);
}

/// A page that one CPU unmaps while another stores to it.
struct Harvest<M: Execute + Platform> {
    machine: Owned<M>,
    tables: Tables<M>,
    frame: Frame,
    /// The entry's value when the page is mapped.
    mapped: u64,
    level: u32,
    rounds: usize,
    meeting: Meeting<M>,
}

impl<M: Execute + Platform + Clone> Harvest<M> {
    fn kernel(&self) {
        let meeting = self.meeting.attend();
        let data = self.machine.word(self.frame, 0);
        let entry = self.tables.entry_at(ADDRESS, self.level);
        for round in 0..self.rounds {
            if round > 0 {
                data.store(0, Ordering::Relaxed);
                entry.store(self.mapped, Ordering::Release);
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
            let left = entry.load(Ordering::Relaxed);
            assert_eq!(left, 0, "an absent entry was marked");
        }
    }

    fn task(&self) {
        let meeting = self.meeting.attend();
        let _inside = enter(&self.machine, &self.tables, ASID);
        for round in 0..self.rounds {
            if round > 0 {
                self.machine.flush_local(ASID, Flush::All);
                meeting.meet();
            }
            // Stored or refused; the kernel's side checks the consequences of each.
            let _either = self.machine.store(ADDRESS, 7);
            meeting.meet();
        }
    }
}
