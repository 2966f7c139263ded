//! The cost of a core's own operations.

use super::{Computer, Figure, Reading, join, pinned};
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst, fence};
use std::{io, ptr};

const COUNT: usize = 1000;

/// A load that hits, a locked instruction, a fence and a pause.
pub fn measure(computer: &Computer, rounds: usize) -> io::Result<Vec<Figure>> {
    pinned(computer.first, move || all(rounds)).map(join)
}

fn all(rounds: usize) -> Vec<Figure> {
    let hit = load(rounds);
    let word = AtomicU64::new(0);
    // Each waits for the one before: the result is the next one's operand.
    let mut last = 1;
    let locked = Reading::each(rounds, COUNT, || {
        last = word.fetch_add(black_box(last | 1), Relaxed);
    });
    let rest = locked.minus(hit);
    // The black box between two fences keeps them from becoming one.
    let fence = Reading::each(rounds, COUNT, || {
        black_box(());
        fence(SeqCst);
        black_box(&word);
    });
    let pause = Reading::each(rounds, COUNT, spin_loop);
    let mut figures = vec![
        Figure::new(
            "core.hit",
            "a load whose address is the result of the last",
            hit,
        ),
        Figure::new("core.fence", "a full fence", fence),
        Figure::new("core.pause", "a spin-wait hint", pause),
    ];
    let how = "a fetch-add less `hit`";
    figures.extend(rest.map(|rest| Figure::new("core.rmw", how, rest)));
    figures
}

/// A chain of loads of one word.
fn load(rounds: usize) -> Reading {
    struct Link(*const Link);
    let mut link = Box::new(Link(ptr::null()));
    link.0 = &raw const *link;
    let mut at = link.0;
    let reading = Reading::each(rounds, COUNT, || {
        // SAFETY: the link points to itself, and lives on below.
        at = unsafe { (&raw const (*at).0).read_volatile() };
    });
    drop(link);
    reading
}
