//! Processes that already run: one recording, which neither starts nor stops anything.

use crate::harness::{Failure, interrupt};
use crate::on::On;
use perf::{Options, Recorder, Recording, Whom};
use profile::Profile;
use stats::environment::Environment;
use stats::printable;
use stats::record::{Mode, Subject};
use std::time::{Duration, Instant};

/// The longest time between looks at whether there is still something to watch.
const LOOK: Duration = Duration::from_millis(100);

/// Processes that can be watched.
pub struct Attached {
    recorder: Recorder,
    subject: Subject,
    machine: Environment,
}

impl Attached {
    /// Opens everything that can be recorded of them here.
    pub fn open(
        whom: Whom,
        options: &Options,
        machine: fn() -> Environment,
    ) -> Result<Self, Failure> {
        let named = whom.clone();
        let recorder = Recorder::of(options, whom).map_err(Failure::Recording)?;
        let subject = subject(&named, recorder.roots());
        let mut machine = machine();
        // The load is what is watched.
        machine.load_before = None;
        let why = "part of it is what was watched".to_owned();
        machine.missing.insert("load_before".into(), why);
        Ok(Attached {
            recorder,
            subject,
            machine,
        })
    }

    /// The watched processes, in words.
    pub fn name(&self) -> &str {
        &self.subject.workload
    }

    /// Watches for `span`, or without it until all processes have ended or the user interrupts,
    /// which ends both.
    pub fn profile(mut self, span: Option<Duration>) -> Result<Profile, Failure> {
        self.recorder.start().map_err(Failure::Recording)?;
        let begun = Instant::now();
        while interrupt::pending().is_none() && !self.recorder.is_over() {
            let left = span.map_or(LOOK, |span| span.saturating_sub(begun.elapsed()));
            if left.is_zero() {
                break;
            }
            interrupt::sleep(left.min(LOOK));
        }
        let recording = self.recorder.finish().map_err(Failure::Recording)?;
        Ok(of(self.subject, &recording, self.machine))
    }
}

/// The profile of processes without a rate.
pub fn of(subject: Subject, recording: &Recording, machine: Environment) -> Profile {
    let seconds = recording.span().as_secs_f64();
    let mut profile = Profile {
        machine: Some(machine),
        ..recording.fill(Profile::new(subject, seconds, ""))
    };
    recording.judge(&mut profile);
    profile
}

fn subject(whom: &Whom, roots: &[u32]) -> Subject {
    let (name, tasks) = (name(whom, roots), roots.len() as u32);
    Subject::new(&name, On::Os.name(), tasks, Mode::Processes)
}

/// The processes in words.
pub fn name(whom: &Whom, roots: &[u32]) -> String {
    match (whom, roots) {
        (Whom::Group(group), _) => format!("cgroup {}", group.name()),
        (Whom::All, _) => "all processes".into(),
        (Whom::Processes(_), [pid]) => {
            let command = std::fs::read_to_string(format!("/proc/{pid}/comm"));
            let command = command.unwrap_or_default();
            format!("process {pid} ({})", printable(command.trim_end()))
        }
        (Whom::Processes(_), several) => Mode::Processes.count(several.len()),
    }
}
