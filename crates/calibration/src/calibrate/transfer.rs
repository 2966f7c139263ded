//! The way of a cache line between two CPUs: a ping-pong by compare-exchange, halved, as
//! core-to-core-latency measures it.

use super::{Computer, Figure, Reading, join, pinned};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Relaxed};
use std::time::Instant;

/// Round trips in a round.
const TRIPS: usize = 500;

/// One way, in ns, at each distance that this computer has.
pub fn measure(computer: &Computer, rounds: usize) -> io::Result<Vec<Figure>> {
    let how = "compare-exchange ping-pong / 2";
    let mut figures = Vec::new();
    for (key, pair) in [
        ("transfer.sibling", computer.sibling),
        ("transfer.cluster", computer.near),
        ("transfer.socket", computer.far),
    ] {
        if let Some(pair) = pair {
            let reading = Reading::of(ping_pong(pair, rounds)?);
            figures.push(Figure::new(key, how, reading));
        }
    }
    let remote = computer.remote.iter().map(|&pair| ping_pong(pair, rounds));
    let remote: Vec<f64> = remote.collect::<io::Result<Vec<_>>>()?.concat();
    if !remote.is_empty() {
        let how = "compare-exchange ping-pong / 2, the first socket with each other";
        figures.push(Figure::new("transfer.hops", how, Reading::of(remote)));
    }
    Ok(figures)
}

/// The line that is sent, aligned apart from lines that a prefetcher fetches with it.
#[repr(align(256))]
struct Ball(AtomicBool);

impl Ball {
    /// Waits until the ball is on the side `from`, and sends it to the other.
    fn hit(&self, from: bool) {
        let Ball(side) = self;
        // AcqRel: each hit sees the other side's stores before its own.
        while side.compare_exchange(from, !from, AcqRel, Relaxed).is_err() {}
    }
}

/// The time of one way in each round, in ns.
fn ping_pong((here, there): (usize, usize), rounds: usize) -> io::Result<Vec<f64>> {
    let ball = Arc::new(Ball(AtomicBool::new(true)));
    let theirs = Arc::clone(&ball);
    // The first round warms up.
    let trips = (rounds + 1) * TRIPS;
    let receiver = pinned(there, move || (0..trips).for_each(|_| theirs.hit(false)))?;
    let sender = pinned(here, move || {
        let round = |_| {
            let start = Instant::now();
            (0..TRIPS).for_each(|_| ball.hit(true));
            start.elapsed().as_nanos() as f64 / (2 * TRIPS) as f64
        };
        (0..=rounds).map(round).skip(1).collect()
    })?;
    let times = join(sender);
    join(receiver);
    Ok(times)
}
