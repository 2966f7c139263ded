//! Flushing the TLBs of other CPUs.

use super::mmu::{Inside, enter};
use super::owned::Owned;
use super::tables::{ADDRESS, ASID, NEXT, Tables, WRITE};
use super::{Meeting, linger, two};
use crate::{Atomic, CpuSet, Execute, Flush, Frame, Ordering, PAGE_SIZE, Platform, VaRange};
use alloc::sync::Arc;
use core::sync::atomic::AtomicU64;

/// Two CPUs in one space, where a page is mapped at [`ADDRESS`].
struct Shared<M: Execute + Platform> {
    machine: Owned<M>,
    tables: Tables<M>,
    frame: Frame,
    meeting: Meeting<M>,
    /// The number of stores that the target has performed.
    performed: AtomicU64,
}

impl<M: Execute + Platform + Clone> Shared<M> {
    fn new(m: &M) -> Arc<Self> {
        let machine = Owned::new(m);
        let tables = Tables::new(&machine, 0);
        Arc::new(Shared {
            machine,
            frame: tables.map_new(ADDRESS, WRITE),
            tables,
            meeting: Meeting::new(),
            performed: AtomicU64::new(0),
        })
    }

    #[must_use]
    fn enter(&self) -> Inside<'_, M> {
        enter(&self.machine, &self.tables, ASID)
    }

    /// Clears the entry of the page at `address` and shoots it down on `targets`. Clears it by an
    /// exchange, as kernels do: a store could overwrite the walker's bits.
    fn take<const N: usize>(&self, address: usize, targets: [usize; N]) {
        self.tables.entry(address).swap(0, Ordering::AcqRel);
        self.shoot(Flush::Range(VaRange::sized(address, PAGE_SIZE)), targets);
    }

    fn shoot<const N: usize>(&self, what: Flush, targets: [usize; N]) {
        let mut set = CpuSet::EMPTY;
        targets.into_iter().for_each(|cpu| set.insert(cpu));
        self.machine.shootdown(&set, ASID, what);
    }
}

/// After a shootdown neither a target nor an initiator that is also a target uses a flushed
/// translation, be it of one page or of everything.
pub fn shootdown<M: Execute + Platform + Clone>(m: &M) {
    for what in [Flush::Range(VaRange::sized(ADDRESS, PAGE_SIZE)), Flush::All] {
        let initiator = move |s: &Shared<M>| {
            let meeting = s.meeting.attend();
            let _inside = s.enter();
            assert_eq!(s.machine.store(ADDRESS, 1), Ok(()));
            meeting.meet();
            s.tables.entry(ADDRESS).swap(0, Ordering::AcqRel);
            s.shoot(what, [0, 1]);
            meeting.meet();
            assert!(s.machine.load(ADDRESS).is_err(), "the initiator's own");
        };
        let target = |s: &Shared<M>| {
            let meeting = s.meeting.attend();
            let _inside = s.enter();
            assert!(s.machine.store(ADDRESS, 1).is_ok());
            meeting.meet();
            meeting.meet();
            assert!(s.machine.fetch(ADDRESS).is_err(), "a target's fetch");
            assert!(s.machine.load(ADDRESS).is_err(), "a target's read");
            assert!(s.machine.store(ADDRESS, 2).is_err(), "a target's write");
        };
        two(m, &Shared::new(m), initiator, target);
    }
}

/// When a shootdown returns, every store that a target made through the flushed entry is performed,
/// and no other follows: the page can be freed. The target tries up to `stores` stores meanwhile.
pub fn stale_stores<M: Execute + Platform + Clone>(m: &M, rounds: usize, stores: u64) {
    let initiator = move |s: &Shared<M>| {
        let meeting = s.meeting.attend();
        let data = s.machine.word(s.frame, 0);
        for round in 0..rounds {
            if round > 0 {
                data.store(0, Ordering::Relaxed);
                s.tables.map(ADDRESS, s.frame, WRITE);
                meeting.meet();
            }
            if round % 2 == 1 {
                linger::<M>(|| data.load(Ordering::Relaxed) != 0);
            }
            M::delay((round as u32 * 7) % 512);
            s.take(ADDRESS, [1]);
            let seen = data.load(Ordering::Relaxed);
            meeting.meet();
            let last = s.performed.load(Ordering::Relaxed);
            assert_eq!(seen, last, "a store after the shootdown had returned");
            assert_eq!(data.load(Ordering::Relaxed), last, "a store got lost");
        }
    };
    let target = move |s: &Shared<M>| {
        let meeting = s.meeting.attend();
        let _inside = s.enter();
        for round in 0..rounds {
            if round > 0 {
                meeting.meet();
            }
            let performed = (1..=stores).take_while(|&n| s.machine.store(ADDRESS, n).is_ok());
            let performed = performed.count() as u64;
            s.performed.store(performed, Ordering::Relaxed);
            meeting.meet();
        }
    };
    two(m, &Shared::new(m), initiator, target);
}

/// Two CPUs that shoot at each other, and access memory in between, make progress.
pub fn mutual_shootdown<M: Execute + Platform + Clone>(m: &M, rounds: usize) {
    let shoot = move |s: &Shared<M>, address, other: usize| {
        let _inside = s.enter();
        for _ in 0..rounds {
            let frame = s.frame;
            s.tables.map(address, frame, WRITE);
            assert!(s.machine.store(address, 1).is_ok());
            s.take(address, [other]);
        }
    };
    let shared = Shared::new(m);
    // Made here, so that the CPUs do not make tables at the same time.
    shared.tables.map(NEXT, shared.frame, WRITE);
    two(
        m,
        &shared,
        move |s| shoot(s, ADDRESS, 1),
        move |s| shoot(s, NEXT, 0),
    );
}

/// Pages that are shot down one by one on an idle CPU: more than any mailbox holds.
const PAGES: usize = 100;

/// No request to an idle CPU is lost, however many there are.
pub fn many_requests<M: Execute + Platform + Clone>(m: &M) {
    let page = |n: usize| ADDRESS + n * PAGE_SIZE;
    let initiator = move |s: &Shared<M>| {
        let meeting = s.meeting.attend();
        (1..PAGES).for_each(|n| s.tables.map(page(n), s.frame, WRITE));
        meeting.meet();
        meeting.meet();
        (0..PAGES).for_each(|n| s.take(page(n), [1]));
        meeting.meet();
    };
    let target = move |s: &Shared<M>| {
        let meeting = s.meeting.attend();
        let _inside = s.enter();
        meeting.meet();
        (0..PAGES).for_each(|n| assert!(s.machine.load(page(n)).is_ok()));
        meeting.meet();
        meeting.meet();
        let reached = (0..PAGES).find(|&n| s.machine.load(page(n)).is_ok());
        assert_eq!(reached, None, "a request was lost");
    };
    two(m, &Shared::new(m), initiator, target);
}
