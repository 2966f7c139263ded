//! Warm-up, samples, rates.

use super::{Body, Failure, Job, Phase, Plan, Reading, Target, Watch, interrupt, say};
use std::time::Duration;

/// The schedule of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// Samples that are shown but not counted; will-it-scale takes 6.
    pub warmup: u32,
    /// Samples that count; 0 means until interrupted.
    pub samples: u32,
    /// The length of a sample.
    pub duration: Duration,
}

/// A sample whose ends are known only to within this part of its length is reported as doubtful.
const DOUBT: f64 = 0.01;

impl Schedule {
    /// The total length of the planned samples; of a run without an end, of those before it.
    pub fn span(&self) -> Duration {
        self.duration * self.warmup.saturating_add(self.samples)
    }

    /// The accuracy with which the ends of a sample must be known.
    pub fn exactness(&self) -> Duration {
        (self.duration / 1000).max(Duration::from_micros(10))
    }

    /// Samples of both kinds, if there is an end.
    pub fn total(&self) -> Option<u64> {
        (self.samples > 0).then(|| u64::from(self.warmup) + u64::from(self.samples))
    }
}

/// Iterations a second in one interval: over the *measured* interval, which under
/// load may be well above the requested one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The slowest task.
    pub min: f64,
    /// The fastest task.
    pub max: f64,
    /// All tasks together.
    pub total: f64,
    /// The interval in seconds.
    pub seconds: f64,
    /// The part of the interval by which it may be longer or shorter for a task, as the readings
    /// took time.
    pub doubt: f64,
}

impl Sample {
    /// The rates between two readings of the counters. A counter counts for `each` tasks; of
    /// several, only the mean is known.
    pub fn between(before: &Reading, after: &Reading, each: usize) -> Self {
        let seconds = (after.at - before.at).as_secs_f64().max(1e-9);
        let pairs = before.counts.iter().zip(&after.counts);
        let rates = pairs.map(|(before, after)| after.saturating_sub(*before) as f64 / seconds);
        let mut sample = Sample {
            min: f64::INFINITY,
            max: 0.0,
            total: 0.0,
            seconds,
            doubt: (before.within + after.within).as_secs_f64() / 2.0 / seconds,
        };
        for rate in rates {
            sample.min = sample.min.min(rate / each as f64);
            sample.max = sample.max.max(rate / each as f64);
            sample.total += rate;
        }
        sample
    }
}

/// The results of a measurement.
#[derive(Debug)]
pub struct Outcome {
    /// The samples that count.
    pub samples: Vec<Sample>,
    /// True if the user cut it short.
    pub interrupted: bool,
    /// The tasks' bottleneck during the first sample; none where only a profile shows it.
    pub bottleneck: Option<String>,
}

impl Outcome {
    /// The mean of the samples' totals; none without samples.
    pub fn average(&self) -> Option<f64> {
        let count = self.samples.len();
        (count > 0).then(|| self.samples.iter().map(|s| s.total).sum::<f64>() / count as f64)
    }

    /// The average as will-it-scale prints it: of whole numbers, rounded down. None without
    /// samples.
    pub fn whole_average(&self) -> Option<u64> {
        let total: u64 = self.samples.iter().map(|s| s.total.round() as u64).sum();
        total.checked_div(self.samples.len() as u64)
    }

    /// The lowest, the median and the highest of the samples' totals; none without samples.
    pub fn spread(&self) -> Option<[f64; 3]> {
        let mut totals: Vec<f64> = self.samples.iter().map(|sample| sample.total).collect();
        totals.sort_by(f64::total_cmp);
        let (low, high) = (*totals.first()?, *totals.last()?);
        let middle = totals.len() / 2;
        let median = match totals.len() % 2 {
            0 => (totals[middle - 1] + totals[middle]) / 2.0,
            _ => totals[middle],
        };
        Some([low, median, high])
    }

    /// The standard deviation of the samples' totals (n − 1); none below two samples.
    pub fn stddev(&self) -> Option<f64> {
        let mean = self.average()?;
        let squares: f64 = self.samples.iter().map(|s| (s.total - mean).powi(2)).sum();
        let count = self.samples.len();
        (count > 1).then(|| (squares / (count - 1) as f64).sqrt())
    }
}

/// Starts the tasks of `plan` on `target`, takes the samples, ends the tasks.
///
/// An interrupt drops the sample it falls into and keeps those before.
pub fn measure(
    target: &dyn Target,
    plan: &Plan,
    schedule: &Schedule,
    watch: &mut dyn Watch,
) -> Result<Outcome, Failure> {
    let mut running = target.start(plan)?;
    let mut outcome = Outcome {
        samples: Vec::new(),
        interrupted: false,
        bottleneck: None,
    };
    let exactness = schedule.exactness();
    let mut before = Reading::of(&*running, plan.tasks, exactness);
    'phases: for (phase, count) in [
        (Phase::Warmup, Some(schedule.warmup)),
        (
            Phase::Measurement,
            (schedule.samples > 0).then_some(schedule.samples),
        ),
    ] {
        watch.phase(phase);
        for index in 0..count.unwrap_or(u32::MAX) {
            running.advance(schedule.duration);
            if interrupt::pending().is_some() {
                outcome.interrupted = true;
                break 'phases;
            }
            running.check()?;
            let after = Reading::of(&*running, plan.tasks, exactness);
            if let Some(task) = after.backwards(&before) {
                let [was, is] = [&before, &after].map(|reading| reading.counts[task]);
                let why = format!("its count went backwards, from {was} to {is}");
                return Err(own(plan, Some(task), why));
            }
            let sample = Sample::between(&before, &after, plan.width() / plan.tasks);
            watch.sample(phase, index, &sample);
            if phase == Phase::Measurement {
                outcome.samples.push(sample);
            }
            before = after;
        }
    }
    outcome.bottleneck = running.bottleneck();
    // After Ctrl-C the tasks may have been told to end as well: no news.
    if outcome.interrupted {
        drop(running)
    } else {
        running.stop()?;
        outcome.check(plan)?;
    }
    outcome.warn();
    Ok(outcome)
}

fn own(plan: &Plan, task: Option<usize>, why: String) -> Failure {
    let workload = plan.workload.name();
    Failure::Own {
        workload,
        task,
        why,
    }
}

impl Outcome {
    /// A workload of the user's own that has counted nothing was not measured.
    fn check(&self, plan: &Plan) -> Result<(), Failure> {
        let Job::Own(job) = plan.workload else {
            return Ok(());
        };
        if self.samples.is_empty() || self.samples.iter().any(|sample| sample.total > 0.0) {
            return Ok(());
        }
        let seconds: f64 = self.samples.iter().map(|sample| sample.seconds).sum();
        let hint = match job.body {
            Body::Object(_) => {
                "a compiler may keep the count in a register: count through a volatile pointer"
            }
            Body::Command(_) => {
                "--duration makes samples longer, and `scalevm profile` watches a command that \
                 does not complete"
            }
        };
        let why = format!("no task counted any operation in {seconds:.3} s; {hint}");
        Err(own(plan, None, why))
    }

    /// Prints a warning if the ends of samples are not known exactly.
    fn warn(&self) {
        let doubts = self.samples.iter().map(|sample| sample.doubt);
        let doubtful: Vec<f64> = doubts.filter(|&doubt| doubt > DOUBT).collect();
        let worst = doubtful.iter().copied().fold(0.0, f64::max);
        if worst > 0.0 {
            say(format_args!(
                "scalevm: warning: {} of {} samples are known to within {:.0} % only: this process \
                 was kept from a CPU while it read the counts",
                doubtful.len(),
                self.samples.len(),
                100.0 * worst
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Film, Mode, Running, Times};
    use super::*;
    use std::cell::{Cell, RefCell};
    use std::rc::Rc;

    /// Two tasks in virtual time; each `advance` takes twice the requested time.
    struct Virtual {
        now: Cell<Duration>,
        log: Rc<RefCell<Vec<String>>>,
        dies_at: Duration,
        /// How often its reader is still to lose its CPU for a second, between the counters and the
        /// clock.
        losses: Cell<u32>,
    }

    impl Running for Virtual {
        fn counts(&self, into: &mut [u64]) {
            let seconds = self.now.get().as_secs();
            into.copy_from_slice(&[100 * seconds, 300 * seconds]);
            if let Some(left) = self.losses.get().checked_sub(1) {
                self.losses.set(left);
                self.now.set(self.now.get() + Duration::from_secs(1));
            }
        }
        fn now(&self) -> Duration {
            self.now.get()
        }
        fn advance(&mut self, span: Duration) {
            self.now.set(self.now.get() + 2 * span);
        }
        fn check(&mut self) -> Result<(), Failure> {
            if self.now.get() >= self.dies_at {
                return Err(Failure::Died {
                    workload: "mmap1",
                    task: 1,
                    status: None,
                });
            }
            Ok(())
        }
        fn stop(self: Box<Self>) -> Result<(), Failure> {
            self.log.borrow_mut().push("stop".into());
            Ok(())
        }
    }

    struct Fixture {
        log: Rc<RefCell<Vec<String>>>,
        dies_at: Duration,
        losses: u32,
    }

    impl Target for Fixture {
        fn start(&self, _: &Plan) -> Result<Box<dyn Running>, Failure> {
            Ok(Box::new(Virtual {
                now: Cell::new(Duration::from_secs(5)),
                log: Rc::clone(&self.log),
                dies_at: self.dies_at,
                losses: Cell::new(self.losses),
            }))
        }
        fn complete(&self, _: &Plan, _: u32) -> Result<Times, Failure> {
            Ok(Times::default())
        }
        fn play(&self, _: &Plan, _: &'static Film) -> Result<(), Failure> {
            Ok(())
        }
    }

    struct Log(Rc<RefCell<Vec<String>>>);

    impl Watch for Log {
        fn phase(&mut self, phase: Phase) {
            self.0.borrow_mut().push(format!("{phase:?}"));
        }
        fn sample(&mut self, phase: Phase, index: u32, _: &Sample) {
            self.0.borrow_mut().push(format!("{phase:?} {index}"));
        }
    }

    fn run(dies_at: u64, losses: u32) -> (Result<Outcome, Failure>, Vec<String>) {
        let log = Rc::new(RefCell::new(Vec::new()));
        let target = Fixture {
            log: Rc::clone(&log),
            dies_at: Duration::from_secs(dies_at),
            losses,
        };
        let plan = Plan {
            workload: workloads::find("mmap1").expect("a known workload").into(),
            tasks: 2,
            mode: Mode::Threads,
            count: None,
        };
        let schedule = Schedule {
            warmup: 1,
            samples: 2,
            duration: Duration::from_secs(1),
        };
        let outcome = measure(&target, &plan, &schedule, &mut Log(Rc::clone(&log)));
        let log = log.borrow().clone();
        (outcome, log)
    }

    #[test]
    fn rates_are_over_the_measured_interval() {
        let (outcome, log) = run(1000, 0);
        let outcome = outcome.expect("nobody dies");
        let sample = Sample {
            min: 100.0,
            max: 300.0,
            total: 400.0,
            seconds: 2.0,
            doubt: 0.0,
        };
        assert_eq!(outcome.samples, [sample, sample]);
        assert_eq!(
            (outcome.average(), outcome.stddev()),
            (Some(400.0), Some(0.0))
        );
        assert_eq!(outcome.whole_average(), Some(400));
        let expected = [
            "Warmup",
            "Warmup 0",
            "Measurement",
            "Measurement 0",
            "Measurement 1",
            "stop",
        ];
        assert_eq!(log, expected);
    }

    #[test]
    fn a_reading_that_was_interrupted_is_repeated() {
        let (outcome, _) = run(1000, 3);
        let outcome = outcome.expect("nobody dies");
        for sample in outcome.samples {
            assert_eq!((sample.total, sample.doubt), (400.0, 0.0));
        }
    }

    #[test]
    fn a_sample_whose_ends_are_not_known_is_in_doubt() {
        let (outcome, _) = run(100_000, u32::MAX);
        let outcome = outcome.expect("nobody dies");
        assert!(outcome.samples.iter().all(|sample| sample.doubt > DOUBT));
    }

    #[test]
    fn a_death_ends_the_measurement() {
        let (outcome, log) = run(8, 0);
        assert!(matches!(outcome, Err(Failure::Died { task: 1, .. })));
        assert_eq!(log, ["Warmup", "Warmup 0", "Measurement"]);
    }
}
