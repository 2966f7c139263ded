//! The additional cost of interrupting another CPU when taking a right from a page.

use super::mapping::Mapping;
use super::{Computer, Figure, Reading, join, pinned};
use std::hint::spin_loop;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// The key of the whole, which `profile` divides among the parts.
pub const WHOLE: &str = "ipi";

/// Calls in a round.
const COUNT: usize = 10;

/// One shootdown: mprotect while another thread runs, less mprotect alone.
pub fn measure(computer: &Computer, rounds: usize) -> io::Result<Vec<Figure>> {
    let Some((here, there)) = computer.other() else {
        return Ok(Vec::new());
    };
    let readings = move || -> io::Result<_> {
        let alone = protect(rounds, || ())?;
        let company = Company::start(there)?;
        let both = protect(rounds, || company.wait());
        company.stop();
        Ok(both?.minus(alone))
    };
    let whole = join(pinned(here, readings)?)?;
    let how = "mprotect while a thread of another CPU runs, less mprotect alone";
    let figure = whole.map(|whole| Figure::new(WHOLE, how, whole));
    Ok(figure.into_iter().collect())
}

/// Times taking the right to write from a page that was just written; calls `before` each time.
fn protect(rounds: usize, before: impl Fn()) -> io::Result<Reading> {
    let page = Mapping::new(1)?;
    let one = || {
        page.touch(0);
        before();
        let start = Instant::now();
        page.protect(false)?;
        let time = start.elapsed();
        page.protect(true)?;
        Ok(time.as_nanos() as f64)
    };
    let round = |_| {
        let times = (0..COUNT)
            .map(|_| one())
            .collect::<io::Result<Vec<f64>>>()?;
        Ok(Reading::of(times).median)
    };
    (0..rounds)
        .map(round)
        .collect::<io::Result<Vec<_>>>()
        .map(Reading::of)
}

/// A thread that runs in user space, so that its CPU may hold entries.
struct Company {
    /// Counts its turns; the top bit ends it.
    turns: Arc<AtomicU64>,
    thread: std::thread::JoinHandle<()>,
}

const STOP: u64 = 1 << 63;

impl Company {
    fn start(cpu: usize) -> io::Result<Self> {
        let turns = Arc::new(AtomicU64::new(0));
        let theirs = Arc::clone(&turns);
        // Relaxed, here and below: the word carries nothing but itself.
        let thread = pinned(
            cpu,
            move || while theirs.fetch_add(1, Relaxed) & STOP == 0 {},
        )?;
        Ok(Company { turns, thread })
    }

    /// Waits until the thread takes a turn: another task may run on its CPU.
    fn wait(&self) {
        let seen = self.turns.load(Relaxed);
        while self.turns.load(Relaxed) == seen {
            spin_loop();
        }
    }

    fn stop(self) {
        self.turns.fetch_or(STOP, Relaxed);
        join(self.thread);
    }
}
