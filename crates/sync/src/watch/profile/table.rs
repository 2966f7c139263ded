//! The counters: a table a CPU, a row a call site.
//!
//! A CPU adds to its own table, so profiling makes no line travel between CPUs. The
//! additions are atomic all the same: CPUs of two machines in one process, and CPUs
//! beyond those that [`make_room`] was told of, share tables.

use crate::watch::Wait;
use crate::watch::site::{SITES, Site};
use alloc::boxed::Box;
use alloc::collections::TryReserveError;
use alloc::vec::Vec;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::*};
use machine::MAX_CPUS;

/// Something to count.
pub(super) enum Event {
    /// The lock was got without waiting.
    Free,
    /// It was waited for.
    Waited(Wait),
    /// A lock that had been waited for has been released after so many ns.
    Held(u64),
    /// `try_lock` failed.
    Refused,
}

/// What is counted at one call site; one cache line.
#[derive(Default)]
#[repr(align(64))]
pub(super) struct Counters {
    /// Acquisitions without waiting.
    pub free: AtomicU64,
    pub contended: AtomicU64,
    pub refused: AtomicU64,
    pub spins: AtomicU64,
    pub sleeps: AtomicU64,
    pub wait: AtomicU64,
    pub max_wait: AtomicU64,
    pub hold: AtomicU64,
}

const _: () = assert!(size_of::<Table>() == SITES * 64 && SITES * 64 == 72 << 10);

type Table = [Counters; SITES];

/// The tables, by CPU index. Places fill from the front; a table is never freed.
static TABLES: [AtomicPtr<Table>; MAX_CPUS] = [const { AtomicPtr::new(null_mut()) }; MAX_CPUS];
/// How many there are.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Makes tables for CPUs 0 to `cpus` - 1.
pub(super) fn make_room(cpus: usize) -> Result<(), TryReserveError> {
    let cpus = cpus.clamp(1, MAX_CPUS);
    for place in &TABLES[..cpus] {
        // Acquire: pairs with the release below, for the count to include it.
        if !place.load(Acquire).is_null() {
            continue;
        }
        let mut rows = Vec::new();
        rows.try_reserve_exact(SITES)?;
        rows.resize_with(SITES, Counters::default);
        let rows: Box<Table> = rows.into_boxed_slice().try_into().ok().expect("SITES rows");
        let table = Box::into_raw(rows);
        // Release: who finds the table sees it zeroed.
        if place
            .compare_exchange(null_mut(), table, Release, Relaxed)
            .is_err()
        {
            // SAFETY: somebody else's table was first, so nobody has seen this one.
            drop(unsafe { Box::from_raw(table) });
        }
    }
    // Release: pairs with the acquire in `table`.
    COUNT.fetch_max(cpus, AcqRel);
    Ok(())
}

/// The table at this place, if there is one.
fn table(index: usize) -> Option<&'static Table> {
    // Acquire: pairs with the release in `make_room`.
    let table = TABLES[index].load(Acquire);
    // SAFETY: tables are never freed once published.
    unsafe { table.as_ref() }
}

/// Counts `event` for the CPU with this index.
#[inline]
pub(super) fn add(cpu: usize, site: Site, event: Event) {
    // Acquire: pairs with `make_room`, so tables below the count are there.
    let count = COUNT.load(Acquire);
    let index = if cpu < count { cpu } else { cpu % count.max(1) };
    let Some(table) = table(index) else {
        return;
    };
    let row = &table[site.0 as usize];
    // Relaxed throughout: these are counts, and order nothing.
    match event {
        Event::Free => {
            row.free.fetch_add(1, Relaxed);
        }
        Event::Refused => {
            row.refused.fetch_add(1, Relaxed);
        }
        Event::Held(time) => {
            row.hold.fetch_add(time, Relaxed);
        }
        Event::Waited(wait) => {
            let time = wait.to.saturating_sub(wait.from);
            row.contended.fetch_add(1, Relaxed);
            row.spins.fetch_add(wait.spins, Relaxed);
            row.sleeps.fetch_add(wait.sleeps, Relaxed);
            row.wait.fetch_add(time, Relaxed);
            row.max_wait.fetch_max(time, Relaxed);
        }
    }
}

/// The counters of `site` on each CPU.
pub(super) fn of(site: Site) -> impl Iterator<Item = &'static Counters> {
    (0..COUNT.load(Acquire))
        .filter_map(table)
        .map(move |table| &table[site.0 as usize])
}

/// Sets all counters to 0. What is counted meanwhile may or may not stay.
pub fn reset() {
    for table in (0..COUNT.load(Acquire)).filter_map(table) {
        for row in table {
            let Counters {
                free,
                contended,
                refused,
                spins,
                sleeps,
                wait,
                max_wait,
                hold,
            } = row;
            for counter in [
                free, contended, refused, spins, sleeps, wait, max_wait, hold,
            ] {
                counter.store(0, Relaxed);
            }
        }
    }
}
