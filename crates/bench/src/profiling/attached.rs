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

fn of(subject: Subject, recording: &Recording, machine: Environment) -> Profile {
    let mut profile = Profile {
        subject,
        seconds: recording.span().as_secs_f64(),
        clock: recording.clock().name().into(),
        rate: None,
        rate_unwatched: None,
        lived: Some(recording.lived().as_secs_f64()),
        hidden: recording.hidden(),
        busy: recording.busy(),
        waits: recording.waiting(),
        locks: Vec::new(),
        holders: Vec::new(),
        bottleneck: String::new(),
        notes: recording.notes(),
        machine: Some(machine),
    };
    profile.locks = recording.locks(profile.task_seconds());
    profile.holders = recording.holders();
    profile.name_bottleneck();
    profile
}

fn subject(whom: &Whom, roots: &[u32]) -> Subject {
    Subject {
        workload: name(whom, roots),
        on: On::Os.name().into(),
        vm: None,
        tasks: roots.len() as u32,
        mode: Mode::Processes,
        profile: None,
        topology: None,
        cpus: None,
        scheduler: None,
        seed: None,
        unit: String::new(),
    }
}

fn name(whom: &Whom, roots: &[u32]) -> String {
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
