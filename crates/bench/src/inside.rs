//! The program inside a guest: it runs the tasks of one plan on the guest's kernel, and prints
//! their counts, again and again, on standard output.
//!
//! `src/bin/guest.rs` is the program; it needs only [`crate::os`], so it is built without the
//! feature `ours`. Test cases of the user's own run `kernel/testcase.c` instead, which takes the
//! same words and prints the same lines.

use crate::harness::{
    Failure, Job, Mode, Plan, Reading, Recorded, Running, Target, Times, interrupt,
};
use crate::os::{Os, compiler};
use crate::tasks::Affinity;
use std::fmt::{self, Display, Formatter};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

/// The time between two reports of the counters.
pub const BEAT: Duration = Duration::from_millis(20);
/// The accuracy with which they are read.
const EXACT: Duration = Duration::from_micros(100);
/// Exit code if the tasks fail, whatever it is: the reason is in the last line.
const FAILED: u8 = 4;

/// A line of the program's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// Each task's count, at a time by the guest's clock.
    Counts(Duration, Vec<u64>),
    /// The times of a run with an end.
    Times(Times),
    /// Why there is no measurement.
    Failed(String),
    /// A line of the kernel's profile.
    Seen(String),
}

/// The window in which the kernel watches the program, and the rate of its samples. The program
/// reports counts at the begin and at the end, copies the kernel's profile, and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Samples a second.
    pub frequency: u32,
    /// The time for which the tasks work before.
    pub after: Duration,
    /// The length of the window.
    pub span: Duration,
}

impl Display for Line {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Line::Counts(at, counts) => {
                write!(f, "counts {}", at.as_nanos())?;
                counts.iter().try_for_each(|count| write!(f, " {count}"))
            }
            Line::Times(times) => {
                let [real, user, sys] = [times.real, times.user, times.sys].map(|t| t.as_nanos());
                write!(f, "times {real} {user} {sys}")?;
                times
                    .faults
                    .iter()
                    .try_for_each(|faults| write!(f, " {faults}"))
            }
            Line::Seen(line) => f.write_str(line),
            Line::Failed(why) => write!(f, "failed {}", why.replace('\n', " ")),
        }
    }
}

impl FromStr for Line {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let (word, rest) = line.split_once(' ').ok_or(())?;
        match word {
            "failed" => return Ok(Line::Failed(rest.to_owned())),
            "sample" | "lock" | "lost" => return Ok(Line::Seen(line.to_owned())),
            _ => {}
        }
        let numbers = rest.split(' ').map(|number| number.parse().map_err(drop));
        let numbers: Vec<u64> = numbers.collect::<Result<_, _>>()?;
        match (word, &numbers[..]) {
            ("counts", [at, counts @ ..]) => {
                Ok(Line::Counts(Duration::from_nanos(*at), counts.to_owned()))
            }
            ("times", &[real, user, sys, ref faults @ ..]) if faults.len() <= 1 => {
                let [real, user, sys] = [real, user, sys].map(Duration::from_nanos);
                Ok(Line::Times(Times {
                    real,
                    user,
                    sys,
                    faults: faults.first().copied(),
                }))
            }
            _ => Err(()),
        }
    }
}

/// Where a guest has the recorded program that is the workload.
pub const RECORDING: &str = "/recording";

/// The program's arguments, without its name.
pub fn words(plan: &Plan, affinity: Affinity, watch: Option<Window>) -> [String; 8] {
    let nanoseconds =
        |part: fn(&Window) -> Duration| watch.as_ref().map_or(0, |it| part(it).as_nanos());
    [
        match plan.workload {
            Job::Recorded(..) => RECORDING.to_owned(),
            workload => workload.name().to_owned(),
        },
        plan.mode.name().to_owned(),
        plan.tasks.to_string(),
        match affinity {
            Affinity::Cores => "cores",
            Affinity::Cpus => "cpus",
            Affinity::None => "anywhere",
        }
        .to_owned(),
        plan.count.unwrap_or(0).to_string(),
        watch.map_or(0, |watch| watch.frequency).to_string(),
        nanoseconds(|watch| watch.after).to_string(),
        nanoseconds(|watch| watch.span).to_string(),
    ]
}

/// The work that is called so.
fn job(word: &str) -> Option<Job> {
    match word {
        RECORDING => Some(
            Recorded::open(Path::new(RECORDING), None, None)
                .ok()?
                .into(),
        ),
        name => Some(workloads::find(name)?.into()),
    }
}

/// Parses them.
fn understood(words: &[String]) -> Option<(Plan, Os, Option<Window>)> {
    let [
        workload,
        mode,
        tasks,
        affinity,
        count,
        frequency,
        after,
        span,
    ] = words
    else {
        return None;
    };
    let duration = |word: &String| word.parse().map(Duration::from_nanos).ok();
    let watch = Window {
        frequency: frequency.parse().ok()?,
        after: duration(after)?,
        span: duration(span)?,
    };
    let affinity = match affinity.as_str() {
        "cores" => Affinity::Cores,
        "cpus" => Affinity::Cpus,
        _ => Affinity::None,
    };
    let modes = [Mode::Processes, Mode::Threads];
    let plan = Plan {
        workload: job(workload)?,
        tasks: tasks.parse().ok()?,
        mode: modes.into_iter().find(|it| it.name() == mode)?,
        count: Some(count.parse().ok()?).filter(|count| *count > 0),
    };
    Some((
        plan,
        Os { affinity },
        Some(watch).filter(|watch| watch.frequency > 0),
    ))
}

/// The program: runs until it is ended, or the plan has an end.
pub fn main() -> ExitCode {
    if let Some(code) = compiler::run() {
        return code;
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let told = match understood(&words) {
        Some((plan, os, watch)) => told(&plan, &os, watch).map_err(|failure| failure.to_string()),
        None => Err("guest: started by scalevm itself".to_owned()),
    };
    match told {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            // If this fails there is no way to report it.
            let _ = tell(&Line::Failed(why));
            ExitCode::from(FAILED)
        }
    }
}

fn told(plan: &Plan, os: &Os, watch: Option<Window>) -> Result<(), Failure> {
    let lost = Failure::start("standard output");
    if plan.count.is_some() {
        return tell(&Line::Times(os.complete(plan, 0)?)).map_err(lost);
    }
    let mut running = os.start(plan)?;
    if let Some(watch) = watch {
        return watched(plan, &mut *running, watch);
    }
    loop {
        count(plan, &mut *running)?;
        interrupt::sleep(BEAT);
    }
}

fn count(plan: &Plan, running: &mut dyn Running) -> Result<(), Failure> {
    let Reading { counts, at, .. } = Reading::of(running, plan.tasks, EXACT);
    running.check()?;
    tell(&Line::Counts(at, counts)).map_err(Failure::start("standard output"))
}

/// The kernel watches the tasks for a while.
fn watched(plan: &Plan, running: &mut dyn Running, watch: Window) -> Result<(), Failure> {
    let profile = |frequency: u32| fs::write("/dev/profile", frequency.to_string());
    interrupt::sleep(watch.after);
    profile(watch.frequency).map_err(Failure::start("profile"))?;
    count(plan, running)?;
    interrupt::sleep(watch.span);
    count(plan, running)?;
    profile(0).map_err(Failure::start("profile"))?;
    let copied = File::open("/proc/profile")
        .and_then(|mut file| io::copy(&mut file, &mut io::stdout().lock()));
    copied.map(drop).map_err(Failure::start("profile"))
}

fn tell(line: &Line) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_are_written() {
        let [real, user, sys] = [3, 2, 1].map(Duration::from_millis);
        for line in [
            Line::Counts(Duration::from_nanos(7), vec![1, 0, u64::MAX]),
            Line::Times(Times {
                real,
                user,
                sys,
                faults: None,
            }),
            Line::Times(Times {
                real,
                user,
                sys,
                faults: Some(12),
            }),
            Line::Failed("mmap1: task 0: mmap: no memory".into()),
            Line::Seen("sample 1003009 ffffffff80100000 401000".into()),
        ] {
            assert_eq!(line.to_string().parse(), Ok(line));
        }
        for bad in [
            "",
            "counts",
            "counts x",
            "times 1 2",
            "times 1 2 3 4 5",
            "hello 1",
        ] {
            assert_eq!(bad.parse::<Line>(), Err(()), "{bad}");
        }
    }

    #[test]
    fn words_are_understood_as_they_are_meant() {
        let plan = Plan {
            workload: workloads::find("mmap1").expect("a workload").into(),
            tasks: 3,
            mode: Mode::Threads,
            count: Some(9),
        };
        let watch = Some(Window {
            frequency: 997,
            after: Duration::from_millis(1),
            span: Duration::from_secs(1),
        });
        let said = words(&plan, Affinity::None, watch);
        let (same, os, watched) = understood(&said).expect("words");
        assert_eq!(watched, watch);
        assert_eq!(same.workload.name(), "mmap1");
        assert_eq!(
            (same.tasks, same.mode, same.count),
            (3, Mode::Threads, Some(9))
        );
        assert_eq!(os.affinity, Affinity::None);
        assert!(understood(&["mmap1".to_owned()]).is_none());
    }
}
