//! Processes that already run, one interval after the other.

use super::attached::name;
use crate::harness::Failure;
use perf::{Options, Recorder, Recording, Whom};
use profile::Interval;
use std::time::{SystemTime, UNIX_EPOCH};

/// Processes that are watched. Nothing of an interval is kept, so they can be watched for days.
pub struct Live {
    recorder: Recorder,
    name: String,
}

impl Live {
    /// Begins to watch them.
    pub fn start(whom: Whom, options: &Options) -> Result<Self, Failure> {
        let named = whom.clone();
        let mut recorder = Recorder::of(options, whom).map_err(Failure::Recording)?;
        let name = name(&named, recorder.roots());
        recorder.start().map_err(Failure::Recording)?;
        Ok(Live { recorder, name })
    }

    /// The watched processes, in words.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What cannot be seen, and how to allow it.
    pub fn missing(&self) -> &[String] {
        self.recorder.missing()
    }

    /// Returns true if all processes have ended.
    pub fn is_over(&self) -> bool {
        self.recorder.is_over()
    }

    /// Ends an interval and begins the next.
    pub fn interval(&mut self) -> Result<Interval, Failure> {
        let recording = self.recorder.cut().map_err(Failure::Recording)?;
        Ok(of(&recording))
    }
}

fn of(recording: &Recording) -> Interval {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let lived = recording.lived().as_secs_f64();
    let idle = recording.spent().map_or(0.0, |spent| spent.idle);
    let active = lived - idle;
    let mut threads = recording.threads();
    threads.sort_by(|a, b| b.active().total_cmp(&a.active()).then(a.tid.cmp(&b.tid)));
    Interval {
        time: now.unwrap_or_default().as_secs_f64(),
        seconds: recording.span().as_secs_f64(),
        lived,
        active,
        busy: threads.iter().fold(0.0, |sum, thread| sum + thread.busy),
        hidden: recording.hidden(),
        lost: recording.lost(),
        locks: recording.locks(active.max(f64::MIN_POSITIVE)),
        holders: recording.holders(),
        threads,
    }
}
