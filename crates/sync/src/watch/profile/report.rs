//! The profile as rows.

use super::Tables;
use crate::watch::site::{SITES, Site};
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::sync::atomic::Ordering::Relaxed;

/// The counts of one call site of one class; times in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The class's name; empty for classes that found no room.
    pub class: &'static str,
    /// The source file; empty for sites that found no room.
    pub file: &'static str,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// Acquisitions, of all kinds, and waits that are under way.
    pub acquisitions: u64,
    /// Those that waited.
    pub contended: u64,
    /// `try_lock`s that failed.
    pub refused: u64,
    /// Rounds of spinning in waits, for locks that report them.
    pub spins: u64,
    /// Sleeps in waits, for locks that report them.
    pub sleeps: u64,
    /// The sum of all waits.
    pub wait: u64,
    /// The longest wait; of those under way only the average is known.
    pub max_wait: u64,
    /// The time that the lock was held after acquisitions that had waited, in total.
    pub hold: u64,
}

impl Row {
    fn of(tables: &Tables, site: Site, now: Option<u64>) -> Row {
        let at = site.location();
        let mut row = Row {
            class: site.class().map_or("", |class| class.name()),
            file: at.map_or("", |at| at.file()),
            line: at.map_or(0, |at| at.line()),
            column: at.map_or(0, |at| at.column()),
            acquisitions: 0,
            contended: 0,
            refused: 0,
            spins: 0,
            sleeps: 0,
            wait: 0,
            max_wait: 0,
            hold: 0,
        };
        for counters in tables.site(site) {
            let contended = counters.contended.load(Relaxed);
            row.acquisitions += counters.free.load(Relaxed) + contended;
            row.contended += contended;
            row.refused += counters.refused.load(Relaxed);
            row.spins += counters.spins.load(Relaxed);
            row.sleeps += counters.sleeps.load(Relaxed);
            row.wait = row.wait.wrapping_add(counters.wait.load(Relaxed));
            row.max_wait = row.max_wait.max(counters.max_wait.load(Relaxed));
            row.hold += counters.hold.load(Relaxed);
        }
        if let Some(now) = now {
            let (waits, passed) = tables.under_way(site, now);
            row.acquisitions += waits;
            row.contended += waits;
            row.max_wait = row.max_wait.max(passed / waits.max(1));
            // Below 0 if a wait of before was none.
            row.wait = row.wait.wrapping_add(passed).cast_signed().max(0) as u64;
        }
        row
    }

    fn place(&self) -> (&'static str, &'static str, u32, u32) {
        (self.class, self.file, self.line, self.column)
    }

    fn add(&mut self, other: &Row) {
        self.acquisitions += other.acquisitions;
        self.contended += other.contended;
        self.refused += other.refused;
        self.spins += other.spins;
        self.sleeps += other.sleeps;
        self.wait += other.wait;
        self.max_wait = self.max_wait.max(other.max_wait);
        self.hold += other.hold;
    }
}

/// The rows of [`Tables::report`], with the waits that are under way at `now`.
pub(super) fn report(tables: &Tables, now: Option<u64>) -> Vec<Row> {
    let mut rows: Vec<Row> = (0..SITES as u16)
        .map(|site| Row::of(tables, Site(site), now))
        .filter(|row| row.acquisitions + row.refused > 0)
        .collect();
    // A generic function has a copy of its call site for each instantiation.
    rows.sort_by_key(Row::place);
    rows.dedup_by(|later, first| {
        let same = later.place() == first.place();
        if same {
            first.add(later);
        }
        same
    });
    rows.sort_by_key(|row| Reverse((row.wait, row.acquisitions)));
    rows
}
