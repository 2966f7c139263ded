//! The order of measurements, and their results.

use super::contended::{Stage, Sums};
use super::registry::Row;
use super::subject::wrong;
use bench::tasks::places::{Mask, born_at};
use bench::{Failure, interrupt};
use hosted::Hosted;
use machine::Topology;
use std::thread::{self, Builder};
use std::time::Duration;
use sync::obm::SlowPaths;

/// Rounds of one thread alone; many and short, so that being preempted spoils few.
const ALONE: u32 = 101;
/// Rounds of several threads.
const CONTENDED: u32 = 3;

/// Turns to be taken for one row and `counts` numbers of threads.
pub fn turns(counts: usize) -> u64 {
    u64::from(ALONE) + counts as u64 * u64::from(CONTENDED)
}

/// A row and its numbers, as far as they were measured.
pub struct Figures {
    pub row: &'static Row,
    /// Nanoseconds for one operation of one thread, nothing inside: median of rounds.
    pub alone: Option<f64>,
    /// The rates for each number of threads.
    pub contended: Vec<Contended>,
}

/// The rates of several threads.
pub struct Contended {
    /// The number of threads.
    pub threads: usize,
    /// Operations a second of all together: median of rounds.
    pub rate: f64,
    /// The slowest thread's operations a second, over all rounds.
    pub min: f64,
    /// The fastest thread's operations a second, over all rounds.
    pub max: f64,
    /// Operations of all rounds.
    pub operations: u64,
    /// Length of all rounds.
    pub seconds: f64,
    /// How often the slow paths were taken, if the lock counts that.
    pub slow_paths: Option<SlowPaths>,
}

/// A turn that is about to be taken.
pub struct Step {
    pub row: &'static Row,
    /// The number of threads.
    pub threads: usize,
}

/// Measures `rows`, each for `span` alone and for `span` with each number of threads.
/// A signal ends it early, with the rows finished by then.
///
/// # Errors
/// If threads cannot be started, or a row does not work.
pub fn measure(
    rows: &[&'static Row],
    counts: &[usize],
    span: Duration,
    places: &[Mask],
    mut step: impl FnMut(Step) + Send,
) -> Result<Vec<Figures>, Failure> {
    let mut rounds = all_alone(rows, span / ALONE, places, &mut step)?;
    let mut figures: Vec<Figures> = Vec::with_capacity(rows.len());
    for (row, rounds) in rows.iter().zip(&mut rounds) {
        figures.push(Figures {
            row,
            alone: median(rounds),
            contended: Vec::new(),
        });
    }
    for &threads in counts {
        let machine = Hosted::new(threads);
        let stage = Stage {
            machine: &machine,
            places,
            threads,
            span: span / CONTENDED,
        };
        let mut results: Vec<Meeting> = rows.iter().map(|_| Meeting::default()).collect();
        for _ in 0..CONTENDED {
            for (row, result) in rows.iter().zip(&mut results) {
                step(Step { row, threads });
                let before = row.slow_paths.map(|count| count());
                let sums = (row.contended)(row.name, &stage)?;
                // The round was cut short, so it does not count.
                if interrupt::pending().is_some() {
                    return Ok(figures);
                }
                result.add(&sums, row.slow_paths.zip(before));
            }
        }
        for (figures, result) in figures.iter_mut().zip(results) {
            figures.contended.extend(result.finish(threads));
        }
    }
    Ok(figures)
}

/// Nanoseconds of each row in each round, by one thread.
fn all_alone(
    rows: &[&'static Row],
    slice: Duration,
    places: &[Mask],
    step: &mut (impl FnMut(Step) + Send),
) -> Result<Vec<Vec<f64>>, Failure> {
    let machine = Hosted::new(1);
    let work = || {
        machine.attach(0);
        let mut subjects: Vec<_> = rows.iter().map(|row| (row.alone)(machine.cpus())).collect();
        let operations: Vec<u64> = subjects
            .iter_mut()
            .map(|subject| enough(slice, |operations| subject.time(operations)))
            .collect();
        let mut rounds = vec![Vec::new(); rows.len()];
        'rounds: for _ in 0..ALONE {
            for (index, subject) in subjects.iter_mut().enumerate() {
                if interrupt::pending().is_some() {
                    break 'rounds;
                }
                let row = rows[index];
                step(Step { row, threads: 1 });
                let time = subject.time(operations[index]);
                rounds[index].push(time.as_secs_f64() * 1e9 / operations[index] as f64);
            }
        }
        for (row, subject) in rows.iter().zip(&subjects) {
            subject.verify().map_err(|why| wrong(row.name, 1, why))?;
        }
        Ok(rounds)
    };
    thread::scope(|scope| {
        let thread = born_at(places, 0, || Builder::new().spawn_scoped(scope, work));
        let thread = thread.map_err(Failure::start("thread"))?;
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The number of operations that fill `slice`.
fn enough(slice: Duration, mut time: impl FnMut(u64) -> Duration) -> u64 {
    let mut operations = 1;
    loop {
        let took = time(operations);
        if took >= slice / 2 || operations >= 1 << 40 {
            let share = slice.as_secs_f64() / took.as_secs_f64().max(1e-9);
            return ((operations as f64 * share) as u64).max(1);
        }
        operations *= 2;
    }
}

/// Rounds of several threads.
#[derive(Default)]
struct Meeting {
    rates: Vec<f64>,
    seconds: f64,
    operations: Vec<u64>,
    slow_paths: Option<SlowPaths>,
}

impl Meeting {
    fn add(&mut self, sums: &Sums, slow: Option<(fn() -> SlowPaths, SlowPaths)>) {
        self.rates.push(sums.rate());
        self.seconds += sums.seconds;
        self.operations.resize(sums.operations.len(), 0);
        for (sum, operations) in self.operations.iter_mut().zip(&sums.operations) {
            *sum += operations;
        }
        if let Some((count, before)) = slow {
            let now = count();
            let sum = self.slow_paths.get_or_insert_default();
            sum.slow_lock += now.slow_lock - before.slow_lock;
            sum.slow_unlock += now.slow_unlock - before.slow_unlock;
        }
    }

    fn finish(mut self, threads: usize) -> Option<Contended> {
        let rate = |operations: Option<&u64>| Some(*operations? as f64 / self.seconds);
        Some(Contended {
            threads,
            min: rate(self.operations.iter().min())?,
            max: rate(self.operations.iter().max())?,
            rate: median(&mut self.rates)?,
            operations: self.operations.iter().sum(),
            seconds: self.seconds,
            slow_paths: self.slow_paths,
        })
    }
}

/// The middle of `values`, or the mean of the two in the middle.
pub(super) fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some((lower + upper) / 2.0)
}
