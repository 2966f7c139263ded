//! The resident pages of an object, and the reservations of 2 MiB that they come from (FreeBSD 14,
//! sys/vm/vm_reserv.c).

use super::domain::MemoryDomains;
use alloc::collections::BTreeMap;
use core::mem;
use core::ops::Range;
use machine::Machine;

/// Pages of a reservation (`VM_LEVEL_0_NPAGES`).
const PAGES: u64 = 512;

/// The resident pages of an object, by reservations. Guarded by the object's lock.
#[derive(Default)]
pub(super) struct Resident(BTreeMap<u64, Reservation>);

/// A reservation: 2 MiB of an object.
struct Reservation {
    used: [u64; (PAGES / 64) as usize],
    count: u64,
    /// The domain that the pages are taken from.
    domain: usize,
}

fn place(index: u64) -> (u64, usize, u64) {
    let within = index % PAGES;
    (index / PAGES, (within / 64) as usize, 1 << (within % 64))
}

impl Resident {
    pub(super) fn has(&self, index: u64) -> bool {
        let (number, word, bit) = place(index);
        self.0
            .get(&number)
            .is_some_and(|of| of.used[word] & bit != 0)
    }

    /// The indices of the resident pages, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().flat_map(|(number, of)| {
            let has = |within: &u64| of.used[(within / 64) as usize] & 1 << (within % 64) != 0;
            (0..PAGES)
                .filter(has)
                .map(move |within| number * PAGES + within)
        })
    }

    /// Takes a page for `index`, if there is none.
    #[track_caller]
    pub(super) fn take<M: Machine>(&mut self, index: u64) {
        if self.has(index) {
            return;
        }
        let domains = MemoryDomains::<M>::of_machine();
        let (number, word, bit) = place(index);
        let of = self.0.entry(number).or_insert_with(|| {
            let domain = MemoryDomains::<M>::here();
            drop(domains.of(domain).lock_free());
            domains.of(domain).move_reservation();
            Reservation::new(domain)
        });
        domains.of(of.domain).taken(1);
        of.used[word] |= bit;
        of.count += 1;
        if of.count == PAGES {
            domains.of(of.domain).move_reservation();
        }
    }

    /// Frees the page of `index`, if there is one.
    #[track_caller]
    pub(super) fn free<M: Machine>(&mut self, index: u64) {
        if !self.has(index) {
            return;
        }
        let (number, word, bit) = place(index);
        let Some(of) = self.0.get_mut(&number) else {
            return;
        };
        let domain = MemoryDomains::<M>::of_machine().of(of.domain);
        if of.count == PAGES {
            domain.move_reservation();
        }
        of.used[word] &= !bit;
        of.count -= 1;
        domain.freed(1);
        if of.count == 0 {
            domain.move_reservation();
            drop(domain.lock_free());
            self.0.remove(&number);
        }
    }

    /// Frees the pages of `range`.
    #[track_caller]
    pub(super) fn free_range<M: Machine>(&mut self, range: Range<u64>) {
        let numbers = range.start / PAGES..range.end.div_ceil(PAGES);
        let some: alloc::vec::Vec<u64> = self.0.range(numbers).map(|(&number, _)| number).collect();
        for number in some {
            let first = number * PAGES;
            let within = range.start.max(first)..range.end.min(first + PAGES);
            within.for_each(|index| self.free::<M>(index));
        }
    }

    /// Takes over the pages of `other`, and frees those that it has itself. Page `offset` of
    /// `other` is this object's first.
    #[track_caller]
    pub(super) fn take_over<M: Machine>(&mut self, other: &mut Resident, offset: u64, size: u64) {
        let mut other = mem::take(other);
        let pages: alloc::vec::Vec<u64> = other.iter().collect();
        for from in pages {
            let to = from
                .checked_sub(offset)
                .filter(|&to| to < size && !self.has(to));
            match to {
                Some(to) => self.adopt(&mut other, from, to),
                None => other.free::<M>(from),
            }
        }
    }

    /// Takes over a page of `other`, with its memory.
    pub(super) fn adopt(&mut self, other: &mut Resident, from: u64, to: u64) {
        let (number, word, bit) = place(from);
        let Some(of) = other.0.get_mut(&number) else {
            return;
        };
        of.used[word] &= !bit;
        of.count -= 1;
        let domain = of.domain;
        if of.count == 0 {
            other.0.remove(&number);
        }
        let (number, word, bit) = place(to);
        let of = self
            .0
            .entry(number)
            .or_insert_with(|| Reservation::new(domain));
        of.used[word] |= bit;
        of.count += 1;
    }
}

impl Reservation {
    fn new(domain: usize) -> Self {
        Reservation {
            used: [0; (PAGES / 64) as usize],
            count: 0,
            domain,
        }
    }
}
