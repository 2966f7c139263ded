//! Results as JSON, one object a line, as `stats::record` defines them.

use crate::cli::On;
use crate::harness::{Body, Job, Phase, Plan, Sample, Watch};
use crate::output::progress::Progress;
use crate::output::sink::Sink;
use baselines::selected::Preset;
use sim::profile::Profile;
use stats::Time;
use stats::environment::{self, Environment, Tool};
use stats::record::{Measurement, Record, Subject, Summary};

/// Unit of the rates of workloads.
pub const UNIT: &str = "operations/s";
/// Unit of the rates of commands.
pub const COMPLETIONS: &str = "completions/s";

/// Unit of the rates of `job`.
pub fn unit(job: Job) -> &'static str {
    match job {
        Job::Own(own) if matches!(own.body, Body::Command(_)) => COMPLETIONS,
        _ => UNIT,
    }
}

/// Describes `plan` on a system; `machine` is the simulated one and its first seed.
pub fn subject(plan: &Plan, on: On, vm: Option<&str>, machine: Option<(&Profile, u64)>) -> Subject {
    Subject {
        workload: plan.workload.name().to_owned(),
        on: on.entry().name.to_owned(),
        vm: (on != On::Os).then(|| vm.unwrap_or(Preset::Scalevm.name()).to_owned()),
        tasks: u32::try_from(plan.tasks).unwrap_or(u32::MAX),
        mode: plan.mode,
        profile: machine.map(|(profile, _)| profile.name.clone()),
        topology: machine.map(|(profile, _)| profile.topology.shape()),
        seed: machine.map(|(_, seed)| seed),
        unit: unit(plan.workload).to_owned(),
    }
}

/// Describes this machine and this command; takes the time to watch the load.
pub fn machine() -> Environment {
    let arguments: Vec<String> = std::env::args_os()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    environment::collect(&Tool {
        version: concat!("scalevm ", env!("CARGO_PKG_VERSION")),
        commit: option_env!("SCALEVM_COMMIT"),
        arguments: &arguments,
    })
}

/// Hands on the samples of one run that count as they come, and then their summary.
pub struct Records<'a, 'b> {
    subject: &'a Subject,
    sink: &'a mut Sink<'b>,
    progress: Option<&'a mut Progress>,
    samples: Vec<Measurement>,
}

impl<'a, 'b> Records<'a, 'b> {
    /// Hands on to `sink`, and moves `progress` on if there is one.
    pub fn new(
        subject: &'a Subject,
        sink: &'a mut Sink<'b>,
        progress: Option<&'a mut Progress>,
    ) -> Self {
        Records {
            subject,
            sink,
            progress,
            samples: Vec::new(),
        }
    }

    /// Hands on the line that ends a run, with the load on the machine after it, if it was
    /// on this one. Without samples there is none.
    pub fn finish(self, machine: &mut Environment) {
        if self.subject.profile.is_none() {
            machine.observe_after();
        }
        self.finish_at_once(machine);
    }

    /// The same without a look at the load, where the next run must not wait.
    pub fn finish_at_once(mut self, machine: &Environment) {
        let here = self.subject.profile.is_none().then(|| machine.clone());
        if let Some(mut summary) = Summary::of(&self.samples, here) {
            let label = self.sink.label().map(str::to_owned);
            let label = label.or_else(|| machine.measured(&self.subject.on));
            summary.label = label.or_else(|| Some(machine.version.clone()));
            self.hand_on(&Record::Summary(Box::new(summary)));
        }
    }

    /// Hands on a run of one sample, if there is one, that others have taken.
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
        if let Some(progress) = &mut self.progress {
            progress.sample(phase, index, sample);
        }
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
