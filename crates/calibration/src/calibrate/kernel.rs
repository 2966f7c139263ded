//! Entering the kernel, and sleeping in it.

use super::{Computer, Figure, Reading, join, pinned};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Release};
use std::time::Instant;

const CALLS: usize = 200;

/// Round trips in a round.
const TRIPS: usize = 50;

/// A system call and a yield.
pub fn entries(computer: &Computer, rounds: usize) -> io::Result<Vec<Figure>> {
    let all = move || {
        // SAFETY: neither takes an argument, nor can it fail.
        let syscall = Reading::each(rounds, CALLS, || unsafe {
            libc::syscall(libc::SYS_getppid);
        });
        // SAFETY: it takes no argument and cannot fail.
        let yielded = Reading::each(rounds, CALLS, || unsafe {
            libc::sched_yield();
        });
        vec![
            Figure::new("kernel.syscall", "getppid", syscall),
            Figure::new(
                "kernel.yield_now",
                "sched_yield with nothing else to run",
                yielded,
            ),
        ]
    };
    pinned(computer.first, all).map(join)
}

/// Switching between two tasks that yield one CPU to each other, less a yield without another task.
pub fn switch(computer: &Computer, rounds: usize) -> io::Result<Vec<Figure>> {
    let stop = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&stop);
    let yielding = move || {
        while seen.load(Acquire) == 0 {
            std::thread::yield_now();
        }
    };
    let alone = pinned(computer.first, move || yields(rounds)).map(join)?;
    let other = pinned(computer.first, yielding)?;
    let both = pinned(computer.first, move || yields(rounds)).map(join);
    // Release: the other's Acquire above.
    stop.store(1, Release);
    join(other);
    let half: Vec<f64> = both?.into_iter().map(|time| time / 2.0).collect();
    let how = "half of a round trip of sched_yield between two tasks, less one alone";
    let switch = Reading::of(half).minus(Reading::of(alone));
    let figure = switch.map(|switch| Figure::new("kernel.switch", how, switch));
    Ok(figure.into_iter().collect())
}

/// Nanoseconds of a yield, in each round.
fn yields(rounds: usize) -> Vec<f64> {
    let round = |_| {
        let start = Instant::now();
        (0..CALLS).for_each(|_| std::thread::yield_now());
        start.elapsed().as_nanos() as f64 / CALLS as f64
    };
    (0..=rounds).map(round).skip(1).collect()
}

/// Blocking, from round trips on one CPU; waking, from those across two.
pub fn block_and_wake(computer: &Computer, rounds: usize) -> io::Result<Vec<Figure>> {
    let first = computer.first;
    let block = Reading::of(futexes((first, first), rounds)?);
    let how = "half of a futex round trip on one CPU";
    let mut figures = vec![Figure::new("kernel.block", how, block)];
    if let Some(pair) = computer.other() {
        let across = Reading::of(futexes(pair, rounds)?);
        let how = "half of a futex round trip across CPUs, less `block`";
        let wake = across.minus(block);
        figures.extend(wake.map(|wake| Figure::new("kernel.wake", how, wake)));
    }
    Ok(figures)
}

/// Half of a round trip's time in each round, in ns.
fn futexes((here, there): (usize, usize), rounds: usize) -> io::Result<Vec<f64>> {
    let turn = Arc::new(Turn(AtomicU32::new(0)));
    let theirs = Arc::clone(&turn);
    let trips = (rounds + 1) * TRIPS;
    let other = pinned(there, move || (0..trips).for_each(|_| theirs.pass(1)))?;
    let one = pinned(here, move || {
        let round = |_| {
            let start = Instant::now();
            (0..TRIPS).for_each(|_| turn.pass(0));
            start.elapsed().as_nanos() as f64 / (2 * TRIPS) as f64
        };
        (0..=rounds).map(round).skip(1).collect()
    })?;
    let times = join(one);
    join(other);
    Ok(times)
}

/// Whose turn it is, 0 or 1; the other sleeps.
struct Turn(AtomicU32);

impl Turn {
    /// Sleeps until it is the turn of `me`, then gives it to the other.
    fn pass(&self, me: u32) {
        // Acquire: the other's Release below.
        while self.0.load(Acquire) != me {
            self.futex(libc::FUTEX_WAIT, 1 - me);
        }
        self.0.store(1 - me, Release);
        self.futex(libc::FUTEX_WAKE, 1);
    }

    /// Waits while the word is `value`, or wakes `value` tasks; after an error the caller checks
    /// again.
    fn futex(&self, operation: libc::c_int, value: u32) {
        let operation = operation | libc::FUTEX_PRIVATE_FLAG;
        let forever = std::ptr::null::<libc::timespec>();
        // SAFETY: the word outlives the call; there is no time limit.
        unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), operation, value, forever) };
    }
}
