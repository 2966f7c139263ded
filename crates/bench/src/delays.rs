//! The time that tasks lose by meeting, found by letting them meet less often.
//!
//! No kernel goes without a lock, but tasks can ask for it less: each spends a delay outside of the
//! kernel before each operation. As delays grow, queues empty, and the time that an operation takes
//! in the kernel falls to that of a task that waits for nobody.

use crate::harness::{Bars, Failure, Job, Plan, Reading, Running, Sample, interrupt};
use crate::system::System;
use crate::tasks::places;
use stats::interval::{Median, of_median};
use std::time::Duration;

/// The delays, as multiples of an operation's time without one.
const MULTIPLES: [u32; 6] = [0, 1, 2, 4, 8, 16];
/// The number of delays, the longest, at which tasks meet so seldom that waits are in proportion to
/// the rate.
const SPARSE: usize = 3;
/// The level of the gain's interval.
const LEVEL: f64 = 0.95;
/// An interval over a larger factor says nothing.
const WIDEST: f64 = 2.0;

/// The question: what would the tasks gain if none of them ever waited for another?
pub struct Delays<'a> {
    pub system: &'a System,
    pub plan: Plan,
    /// The length of a window without delays; others have as many operations.
    pub span: Duration,
    /// The number of windows with each delay. The delays alternate.
    pub rounds: usize,
}

/// The answer.
pub struct Delayed {
    /// The delays in nanoseconds, the shortest first: it is 0.
    pub delays: Vec<u64>,
    /// With each delay, a window of each round.
    windows: Vec<Vec<Window>>,
    /// Those of one task alone.
    alone: Vec<Window>,
}

/// A window's result.
#[derive(Clone, Copy)]
struct Window {
    /// Operations a second.
    rate: f64,
    /// Nanoseconds that an operation takes beyond its delay.
    response: f64,
}

impl Delays<'_> {
    /// Measures.
    ///
    /// # Errors
    /// The tasks cannot meet, or cannot be delayed; they fail; or a signal asks to end.
    pub fn ask(&self, bars: Bars) -> Result<Delayed, Failure> {
        self.check()?;
        let count = self.rounds * (MULTIPLES.len() + 1) + 1;
        let progress = bars(count as u64, "windows");
        let window = |running: &mut dyn Running, tasks, delay, multiple: u32| {
            self.delay(running, delay)?;
            let window = Window::of(running, tasks, delay, self.span * (1 + multiple));
            progress.step();
            window
        };
        let (target, tasks) = (self.system.target(), self.plan.tasks);
        let mut running = target.start(&self.plan)?;
        let first = window(&mut *running, tasks, 0, 0)?;
        if first.rate == 0.0 {
            return Err(Failure::Unavailable(format!(
                "{}: no operation ended in {:?}; --duration makes windows longer",
                self.plan.workload.name(),
                self.span
            )));
        }
        let delays = MULTIPLES.map(|multiple| (f64::from(multiple) * first.response) as u64);
        let mut windows = vec![Vec::new(); delays.len()];
        for _ in 0..self.rounds {
            for ((windows, delay), multiple) in windows.iter_mut().zip(delays).zip(MULTIPLES) {
                windows.push(window(&mut *running, tasks, delay, multiple)?);
            }
        }
        running.stop()?;
        let plan = Plan {
            tasks: 1,
            ..self.plan
        };
        let mut running = target.start(&plan)?;
        let alone = (0..self.rounds).map(|_| window(&mut *running, 1, 0, 0));
        let alone = alone.collect::<Result<_, _>>()?;
        running.stop()?;
        progress.finish();
        Ok(Delayed {
            delays: delays.to_vec(),
            windows,
            alone,
        })
    }

    /// Fails if delays say nothing here.
    fn check(&self) -> Result<(), Failure> {
        let (name, tasks) = (self.plan.workload.name(), self.plan.tasks);
        let cpus = match self.system {
            System::Sim(target) => target.profile.cpus(),
            _ => places::cpus()?,
        };
        let why = match self.plan.workload {
            Job::Recorded(..) => format!("{name}: a recorded program has delays of its own"),
            _ if tasks == 1 => format!("{name}: one task waits for nobody; delays need several"),
            _ if tasks > cpus => {
                format!("{name}: {tasks} tasks on {cpus} CPUs wait for these, and delays free them")
            }
            _ => return Ok(()),
        };
        Err(Failure::Unavailable(why))
    }

    fn delay(&self, running: &mut dyn Running, nanoseconds: u64) -> Result<(), Failure> {
        match running.delay(Duration::from_nanos(nanoseconds)) {
            true => Ok(()),
            false => Err(Failure::Unavailable(format!(
                "{} on {}: its tasks cannot be delayed",
                self.plan.workload.name(),
                self.system.on().name()
            ))),
        }
    }
}

impl Window {
    /// Lets `tasks` tasks work for `span`, each delayed by `delay` nanoseconds before an operation.
    fn of(
        running: &mut dyn Running,
        tasks: usize,
        delay: u64,
        span: Duration,
    ) -> Result<Self, Failure> {
        let exactness = span / 1000;
        let (before, timed) = (Reading::of(running, tasks, exactness), running.timed());
        running.advance(span);
        interrupt::check()?;
        running.check()?;
        let (after, timed) = (
            Reading::of(running, tasks, exactness),
            running.timed() - timed,
        );
        let rate = Sample::between(&before, &after, 1).total;
        let response = match delay {
            0 => tasks as f64 * 1e9 / rate,
            _ => timed.time as f64 / timed.operations as f64,
        };
        Ok(Window { rate, response })
    }
}

impl Delayed {
    /// Operations a second with that delay.
    pub fn rate(&self, at: usize) -> f64 {
        median(&self.windows[at], |window| window.rate)
    }

    /// Nanoseconds that an operation takes beyond that delay.
    pub fn response(&self, at: usize) -> f64 {
        median(&self.windows[at], |window| window.response)
    }

    /// Nanoseconds that an operation of one task alone takes.
    pub fn alone(&self) -> f64 {
        median(&self.alone, |window| window.response)
    }

    /// The part of a delay in which the task would have waited: by that much less than the delay an
    /// operation comes later.
    pub fn hidden(&self, at: usize) -> f64 {
        (self.response(0) - self.response(at)) / self.delays[at] as f64
    }

    /// The gain if no task waited for another; none if the rounds disagree too much.
    pub fn gain(&self) -> Option<Median> {
        let gains = (0..self.alone.len()).map(|round| self.gain_in(round));
        let gain = of_median(&gains.collect::<Vec<_>>(), LEVEL)?;
        let is_clear = gain.low > 0.0 && gain.high.is_finite() && gain.high <= WIDEST * gain.low;
        is_clear.then_some(gain)
    }

    fn gain_in(&self, round: usize) -> f64 {
        let windows = self.windows.iter().map(|windows| windows[round]);
        let windows: Vec<Window> = windows.collect();
        let sparse = &windows[windows.len() - SPARSE..];
        windows[0].response / at_no_rate(sparse)
    }
}

/// The response at a rate of 0 on the straight line that fits the windows best.
fn at_no_rate(windows: &[Window]) -> f64 {
    let mean =
        |of: &dyn Fn(&Window) -> f64| windows.iter().map(of).sum::<f64>() / windows.len() as f64;
    let (rate, response) = (mean(&|one| one.rate), mean(&|one| one.response));
    let slope = mean(&|one| (one.rate - rate) * (one.response - response))
        / mean(&|one| (one.rate - rate).powi(2));
    response - slope * rate
}

fn median(windows: &[Window], of: impl Fn(&Window) -> f64) -> f64 {
    let values: Vec<f64> = windows.iter().map(of).collect();
    of_median(&values, LEVEL).map_or(f64::NAN, |found| found.median)
}
