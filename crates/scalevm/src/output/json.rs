//! Results as JSON, one object a line, as `stats::record` defines them.

use crate::cli::On;
use crate::harness::{self, Phase, Plan, Sample, Watch};
use crate::output::progress::Progress;
use baselines::selected::Preset;
use sim::profile::Profile;
use stats::environment::{self, Environment, Tool};
use stats::record::{Measurement, Mode, Record, Subject, Summary};
use std::io::Write;

/// Unit of the rates of workloads.
pub const UNIT: &str = "operations/s";

/// Describes `plan` on a system; `machine` is the simulated one and its first seed.
pub fn subject(plan: &Plan, on: On, vm: Option<&str>, machine: Option<(&Profile, u64)>) -> Subject {
    Subject {
        workload: plan.workload.name().to_owned(),
        on: on.entry().name.to_owned(),
        vm: (on != On::Os).then(|| vm.unwrap_or(Preset::Scalevm.name()).to_owned()),
        tasks: u32::try_from(plan.tasks).unwrap_or(u32::MAX),
        mode: match plan.mode {
            harness::Mode::Processes => Mode::Processes,
            harness::Mode::Threads => Mode::Threads,
        },
        profile: machine.map(|(profile, _)| profile.name.clone()),
        topology: machine.map(|(profile, _)| profile.topology.shape()),
        seed: machine.map(|(_, seed)| seed),
        unit: UNIT.to_owned(),
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

/// Prints the samples of one run that count as they come, and then their summary.
pub struct Records<'a> {
    subject: &'a Subject,
    out: &'a mut dyn Write,
    progress: Option<&'a mut Progress>,
    samples: Vec<Measurement>,
}

impl<'a> Records<'a> {
    /// Prints on `out`, and moves `progress` on if there is one.
    pub fn new(
        subject: &'a Subject,
        out: &'a mut dyn Write,
        progress: Option<&'a mut Progress>,
    ) -> Self {
        Records {
            subject,
            out,
            progress,
            samples: Vec::new(),
        }
    }

    /// Prints the line that ends a run, with the load on the machine after it, if it was
    /// on this one. Without samples there is none.
    pub fn finish(mut self, machine: &mut Environment) {
        let here = self.subject.profile.is_none().then(|| {
            machine.observe_after();
            machine.clone()
        });
        if let Some(summary) = Summary::of(&self.samples, here) {
            self.print(&Record::Summary(Box::new(summary)));
        }
    }

    fn print(&mut self, record: &Record) {
        let mut print = || {
            let written = record.write(&mut *self.out);
            written.unwrap_or_else(|error| panic!("results: {error}")); // as println! does
        };
        match &self.progress {
            Some(progress) => progress.aside(print),
            None => print(),
        }
    }
}

impl Watch for Records<'_> {
    fn phase(&mut self, _: Phase) {}

    fn sample(&mut self, phase: Phase, index: u32, sample: &Sample) {
        if let Some(progress) = &mut self.progress {
            progress.sample(phase, index, sample);
        }
        if phase == Phase::Measurement {
            let measurement = Measurement {
                subject: self.subject.clone(),
                sample: index.saturating_add(1),
                min: sample.min,
                max: sample.max,
                total: sample.total,
                average: sample.total / f64::from(self.subject.tasks),
                seconds: sample.seconds,
            };
            self.print(&Record::Sample(measurement.clone()));
            self.samples.push(measurement);
        }
    }
}
