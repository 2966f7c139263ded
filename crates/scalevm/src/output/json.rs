//! Results as JSON, one object a line, as `stats::record` defines them.

use crate::output::progress::Progress;
use crate::output::sink::Sink;
use bench::{Outcome, Phase, Sample, Watch};
use stats::Time;
use stats::environment::{self, Environment, Tool};
use stats::record::{Measurement, Record, Subject, Summary};
use std::mem;

/// The commit that this command is built from, if that is known.
pub const COMMIT: Option<&str> = option_env!("SCALEVM_COMMIT");

/// Describes this machine and this command; takes the time to watch the load.
pub fn machine() -> Environment {
    let arguments: Vec<String> = std::env::args_os()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    environment::collect(&Tool {
        version: concat!("scalevm ", env!("CARGO_PKG_VERSION")),
        commit: COMMIT,
        arguments: &arguments,
    })
}

/// Passes on the samples of a run that count as they come, and then their summary. Other runs may
/// follow.
pub struct Records<'a, 'b> {
    subject: &'a Subject,
    sink: &'a mut Sink<'b>,
    progress: Option<&'a Progress>,
    samples: Vec<Measurement>,
}

impl<'a, 'b> Records<'a, 'b> {
    /// Passes records on to `sink`, while `progress` is out of the way if there is one.
    pub fn new(
        subject: &'a Subject,
        sink: &'a mut Sink<'b>,
        progress: Option<&'a Progress>,
    ) -> Self {
        Records {
            subject,
            sink,
            progress,
            samples: Vec::new(),
        }
    }

    /// Begins a run of `subject`.
    pub fn of(&mut self, subject: &'a Subject) -> &mut Self {
        self.subject = subject;
        self
    }

    /// Passes on the line that ends a run, with the load on the machine after it, if it was on this
    /// one, and with a mark if it was cut short. Without samples there is none.
    pub fn finish(&mut self, machine: &mut Environment, outcome: &Outcome) {
        if self.subject.profile.is_none() {
            machine.observe_after();
        }
        self.summarize(machine, Some(outcome));
    }

    /// Passes on the line that ends a whole run, without a look at the load, where the next run
    /// must not wait.
    pub fn finish_at_once(&mut self, machine: &Environment) {
        self.summarize(machine, None);
    }

    fn summarize(&mut self, machine: &Environment, outcome: Option<&Outcome>) {
        let here = self.subject.profile.is_none().then(|| machine.clone());
        if let Some(mut summary) = Summary::of(&mem::take(&mut self.samples), here) {
            let label = self.sink.label().map(str::to_owned);
            let label = label.or_else(|| machine.measured(&self.subject.on));
            if let Some(outcome) = outcome {
                summary.interrupted = outcome.interrupted;
                summary.bottleneck = outcome.bottleneck.clone();
            }
            summary.label = label.or_else(|| Some(machine.version.clone()));
            self.hand_on(&Record::Summary(Box::new(summary)));
        }
    }

    /// Passes on a run of one sample that others have taken, if there is one.
    pub fn whole(mut self, sample: Option<Measurement>, machine: &Environment) {
        if let Some(sample) = sample {
            self.keep(sample);
        }
        self.finish_at_once(machine);
    }

    fn keep(&mut self, sample: Measurement) {
        let sample = Measurement {
            time: Some(Time::now()),
            ..sample
        };
        self.hand_on(&Record::Sample(sample.clone()));
        self.samples.push(sample);
    }

    fn hand_on(&mut self, record: &Record) {
        match &self.progress {
            Some(progress) => progress.aside(|| self.sink.take(record)),
            None => self.sink.take(record),
        }
    }
}

impl Watch for Records<'_, '_> {
    fn phase(&mut self, _: Phase) {}

    fn sample(&mut self, phase: Phase, index: u32, sample: &Sample) {
        if phase == Phase::Measurement {
            self.keep(Measurement {
                subject: self.subject.clone(),
                sample: index.saturating_add(1),
                min: sample.min,
                max: sample.max,
                total: sample.total,
                average: sample.total / f64::from(self.subject.tasks),
                seconds: sample.seconds,
                time: None,
            });
        }
    }
}
