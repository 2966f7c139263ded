//! The counters: a table per CPU, a row per call site.
//!
//! A CPU adds to its own table, so profiling moves no cache line between CPUs. The additions are
//! atomic all the same: CPUs beyond those given to [`Tables::start`] share tables.

use super::report::{self, Row};
use crate::watch::Wait;
use crate::watch::site::{SITES, Site};
use alloc::boxed::Box;
use alloc::collections::TryReserveError;
use alloc::vec::Vec;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering::*};
use machine::{Anchor, MAX_CPUS, Machine};

/// A countable event.
pub(super) enum Event {
    /// The lock was acquired without waiting.
    Free,
    /// The lock was acquired after a wait.
    Waited(Wait),
    /// A lock that had been waited for was released after being held for this many ns.
    Held(u64),
    /// `try_lock` failed.
    Refused,
}

/// The counters of one call site; one cache line.
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

/// The attempts to acquire locks from one call site that have not succeeded yet.
#[derive(Default)]
struct UnderWay {
    count: AtomicU64,
    /// The sum of the times at which they began, modulo 2⁶⁴.
    began: AtomicU64,
}

/// An attempt that has taken less time than this on average, in ns, may still find the lock free:
/// the lock's line is on its way.
const WAITS: u64 = 1_000;

impl UnderWay {
    /// The number of waits at `now`, and how long they have taken.
    fn at(&self, now: u64) -> (u64, u64) {
        let (count, began) = (self.count.load(Relaxed), self.began.load(Relaxed));
        let passed = now.wrapping_mul(count).wrapping_sub(began) as i64;
        match u64::try_from(passed) {
            Ok(passed) if passed > count * WAITS => (count, passed),
            _ => (0, 0),
        }
    }
}

/// The number of machines that are being profiled; every operation reads it first.
static PROFILED: AtomicUsize = AtomicUsize::new(0);

/// A machine's profile, from its first start on: 26 KiB, and 72 KiB per CPU.
///
/// It lies in the machine's [`Anchor`]; `of` finds it.
pub struct Tables {
    running: AtomicBool,
    /// By CPU index. Places fill from the front.
    places: [AtomicPtr<Table>; MAX_CPUS],
    /// The number of places in use.
    count: AtomicUsize,
    /// By call site.
    under_way: AtomicPtr<[UnderWay; SITES]>,
}

/// The profile of the machine that `anchor` belongs to.
pub fn of(anchor: &Anchor) -> &Tables {
    anchor.get_or_init(|| Tables {
        running: AtomicBool::new(false),
        places: [const { AtomicPtr::new(null_mut()) }; MAX_CPUS],
        count: AtomicUsize::new(0),
        under_way: AtomicPtr::new(null_mut()),
    })
}

/// The profile of the calling task's machine, while it is running.
#[inline]
pub(super) fn running<M: Machine>() -> Option<&'static Tables> {
    // Relaxed: a task that asks while a profile starts may miss the start.
    match PROFILED.load(Relaxed) {
        0 => None,
        _ => find::<M>(),
    }
}

#[cold]
fn find<M: Machine>() -> Option<&'static Tables> {
    let tables = M::anchor().get::<Tables>()?;
    tables.running.load(Relaxed).then_some(tables)
}

impl Tables {
    /// Starts profiling on CPUs 0 to `cpus` - 1. Further CPUs share the counters of
    /// these.
    ///
    /// # Errors
    /// If there is no memory for it; profiling is then not started.
    pub fn start(&self, cpus: usize) -> Result<(), TryReserveError> {
        self.make_room(cpus)?;
        if !self.running.swap(true, Relaxed) {
            PROFILED.fetch_add(1, Relaxed);
        }
        Ok(())
    }

    /// Stops profiling. An acquisition that is under way may still be counted.
    pub fn stop(&self) {
        if self.running.swap(false, Relaxed) {
            PROFILED.fetch_sub(1, Relaxed);
        }
    }

    /// The counts since the last [`Tables::reset`]: a row for each call site that has any, the
    /// longest total wait first, then the most acquisitions.
    ///
    /// Counters that change meanwhile are each read at some moment.
    pub fn report(&self) -> Vec<Row> {
        report::report(self, None)
    }

    /// As [`Tables::report`], and the waits that are under way at `now`, if the machine's clock is
    /// free.
    pub fn report_at(&self, now: u64) -> Vec<Row> {
        report::report(self, Some(now))
    }

    /// Sets all counters to 0. Events counted meanwhile may or may not stay.
    pub fn reset(&self) {
        for row in self.all().flatten() {
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

    /// As [`Tables::reset`]; waits that are under way at `now` count from then on.
    pub fn reset_at(&self, now: u64) {
        self.reset();
        for site in 0..SITES as u16 {
            let (_, passed) = self.under_way(Site(site), now);
            if let Some(row) = self.site(Site(site)).next() {
                // They will be added as a whole; the sum is modulo 2⁶⁴.
                row.wait.store(passed.wrapping_neg(), Relaxed);
            }
        }
    }

    /// Makes tables for CPUs 0 to `cpus` - 1.
    fn make_room(&self, cpus: usize) -> Result<(), TryReserveError> {
        let cpus = cpus.clamp(1, MAX_CPUS);
        for place in &self.places[..cpus] {
            // Acquire: pairs with the release below, for the count to include it.
            if !place.load(Acquire).is_null() {
                continue;
            }
            publish::<Counters>(place)?;
        }
        if self.under_way.load(Acquire).is_null() {
            publish::<UnderWay>(&self.under_way)?;
        }
        // Release: pairs with the acquire in `add` and `all`.
        self.count.fetch_max(cpus, AcqRel);
        Ok(())
    }

    fn table(&self, index: usize) -> Option<&Table> {
        // Acquire: pairs with the release in `make_room`.
        let table = self.places[index].load(Acquire);
        // SAFETY: tables are freed only with `self`.
        unsafe { table.as_ref() }
    }

    fn all(&self) -> impl Iterator<Item = &Table> {
        (0..self.count.load(Acquire)).filter_map(|index| self.table(index))
    }

    /// The counters of `site` on each CPU.
    pub(super) fn site(&self, site: Site) -> impl Iterator<Item = &Counters> {
        self.all().map(move |table| &table[site.0 as usize])
    }

    /// An attempt begins at `from`.
    pub(super) fn begin_wait(&self, site: Site, from: u64) {
        if let Some(waits) = self.waits(site) {
            waits.count.fetch_add(1, Relaxed);
            waits.began.fetch_add(from, Relaxed);
        }
    }

    /// An attempt that began at `from` has succeeded.
    pub(super) fn end_wait(&self, site: Site, from: u64) {
        if let Some(waits) = self.waits(site) {
            waits.count.fetch_sub(1, Relaxed);
            waits.began.fetch_sub(from, Relaxed);
        }
    }

    /// The number of waits that are under way at `now`, and how long they have taken.
    pub(super) fn under_way(&self, site: Site, now: u64) -> (u64, u64) {
        self.waits(site).map_or((0, 0), |waits| waits.at(now))
    }

    fn waits(&self, site: Site) -> Option<&UnderWay> {
        // Acquire: pairs with the release in `publish`.
        let waits = self.under_way.load(Acquire);
        // SAFETY: freed only with `self`.
        let waits = unsafe { waits.as_ref() };
        waits.map(|waits| &waits[site.0 as usize])
    }

    /// Counts `event` for the CPU with this index.
    #[inline]
    pub(super) fn add(&self, cpu: usize, site: Site, event: Event) {
        // Acquire: pairs with `make_room`, so tables below the count are there.
        let count = self.count.load(Acquire);
        let index = if cpu < count { cpu } else { cpu % count.max(1) };
        let Some(table) = self.table(index) else {
            return;
        };
        let row = &table[site.0 as usize];
        // Relaxed throughout: these are counts, which order nothing.
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
}

/// Fills an empty place with a table of zeroes.
fn publish<T: Default>(place: &AtomicPtr<[T; SITES]>) -> Result<(), TryReserveError> {
    let mut rows = Vec::new();
    rows.try_reserve_exact(SITES)?;
    rows.resize_with(SITES, T::default);
    let rows: Box<[T; SITES]> = rows.into_boxed_slice().try_into().ok().expect("SITES rows");
    let table = Box::into_raw(rows);
    // Release: a CPU that finds the table sees it zeroed.
    if place
        .compare_exchange(null_mut(), table, Release, Relaxed)
        .is_err()
    {
        // SAFETY: another CPU's table was first, so only this CPU has seen this one.
        drop(unsafe { Box::from_raw(table) });
    }
    Ok(())
}

impl Drop for Tables {
    fn drop(&mut self) {
        self.stop();
        self.places.iter_mut().for_each(free);
        free(&mut self.under_way);
    }
}

/// Frees a table that `publish` has made.
fn free<T>(place: &mut AtomicPtr<[T; SITES]>) {
    let table = *place.get_mut();
    if !table.is_null() {
        // SAFETY: the table was published once, and the caller has its owner exclusively.
        drop(unsafe { Box::from_raw(table) });
    }
}
