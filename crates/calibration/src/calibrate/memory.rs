//! Zeroing, copying and touching pages.

use super::mapping::{Mapping, PAGE};
use super::{Computer, Figure, Reading, join, pinned};
use std::hint::black_box;
use std::io;
use std::time::Instant;

/// More than second-level caches hold, as the pages that a kernel zeroes.
const POOL: usize = 4096;

/// Pages of a round.
const COUNT: usize = 128;

/// Zeroing and copying a page, and a fault less the zeroing.
pub fn measure(computer: &Computer, rounds: usize) -> io::Result<Vec<Figure>> {
    join(pinned(computer.first, move || all(rounds))?)
}

fn all(rounds: usize) -> io::Result<Vec<Figure>> {
    let pool = Mapping::new(POOL)?;
    (0..POOL).for_each(|page| pool.touch(page));
    let mut next = 0;
    let zero = Reading::each(rounds, COUNT, || {
        // SAFETY: a page of the pool, to which no reference exists.
        unsafe { black_box(pool.page(next)).write_bytes(0, PAGE) };
        next += 1;
    });
    let copy = Reading::each(rounds, COUNT, || {
        let (from, to) = (pool.page(next), pool.page(next + POOL / 2));
        // SAFETY: two pages of the pool, half of it apart.
        unsafe { black_box(to).copy_from_nonoverlapping(black_box(from), PAGE) };
        next += 1;
    });
    let faults = (0..rounds)
        .map(|_| fault())
        .collect::<io::Result<Vec<_>>>()?;
    let fault = Reading::of(faults).minus(zero);
    let how = "the first write to a fresh page less `zero_page`, with this kernel's work";
    let mut figures = vec![
        Figure::new("memory.zero_page", "a page of 16 MiB", zero),
        Figure::new("memory.copy_page", "a page of 16 MiB", copy),
    ];
    figures.extend(fault.map(|fault| Figure::new("kernel.fault", how, fault)));
    Ok(figures)
}

/// The first write to each of some fresh pages, in ns a page.
fn fault() -> io::Result<f64> {
    let fresh = Mapping::new(COUNT)?;
    let start = Instant::now();
    (0..COUNT).for_each(|page| fresh.touch(page));
    Ok(start.elapsed().as_nanos() as f64 / COUNT as f64)
}
