//! `scalevm record`: a program's memory operations, to a file.

use super::{prepare, watched};
use crate::cli::RecordArgs;
use crate::output::file;
use crate::output::format::grouped;
use bench::{Failure, interrupt};
use perf::operations::{Operations, Options, Subject, Summary, Underway};
use recording::Lost;
use stats::count;
use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// The longest time between looks at whether there is still something to record.
const LOOK: Duration = Duration::from_millis(50);
/// The time that a command has to end when it is asked to.
const PATIENCE: Duration = Duration::from_secs(5);

/// Records until the program ends, or the user or the time does it.
pub fn run(args: &RecordArgs) -> Result<u8, Failure> {
    let whom = args.attached.whom().map_err(Failure::Recording)?;
    let path = args.output.clone().unwrap_or_else(|| name(args));
    file::check(&path)?;
    prepare()?;
    let options = Options {
        anonymous: args.anonymous,
        foreign: args.foreign,
    };
    let operations = Operations::open(options).map_err(Failure::Recording)?;
    let subject = whom.map_or(Subject::Started, Subject::Running);
    let is_started = subject == Subject::Started;
    let to = File::create(&path).map_err(Failure::file(&path))?;
    let underway = operations.start(subject, to).map_err(Failure::Recording)?;
    let mut child = match is_started {
        true => {
            // Nothing is recorded: no file stays.
            let removed = |_: &Failure| drop(std::fs::remove_file(&path));
            Some(start(&args.command).inspect_err(removed)?)
        }
        false => None,
    };
    if let Some(span) = args.duration {
        eprintln!("scalevm: recording for {} s", span.as_secs_f64());
    } else if !is_started {
        eprintln!("scalevm: recording until Ctrl-C");
    }
    let ended = wait(&underway, child.as_mut(), args.duration)?;
    let summary = underway.finish().map_err(written(&path))?;
    if let Some(child) = child.as_mut().filter(|_| ended.is_none()) {
        end(child);
    }
    eprintln!("scalevm: {}", line(&path, &summary)?);
    match ended.filter(|status| !status.success()) {
        Some(status) => {
            eprintln!("scalevm: {}: {status}", words(&args.command));
            Ok(stats::Exit::TargetFailed.code())
        }
        None => Ok(watched(args.duration.is_some())),
    }
}

/// Waits for the end of all recorded processes, of the time, or for the user. Returns how the
/// command ended, if it did so on its own.
fn wait(
    underway: &Underway,
    mut child: Option<&mut Child>,
    span: Option<Duration>,
) -> Result<Option<ExitStatus>, Failure> {
    let begun = Instant::now();
    let mut ended = None;
    while interrupt::pending().is_none() && !underway.has_failed() {
        if let Some(child) = child.as_mut().filter(|_| ended.is_none()) {
            ended = child.try_wait().map_err(Failure::start("the command"))?;
        }
        let left = span.map_or(LOOK, |span| span.saturating_sub(begun.elapsed()));
        if left.is_zero() || underway.is_over() && (child.is_none() || ended.is_some()) {
            break;
        }
        interrupt::sleep(left.min(LOOK));
    }
    Ok(ended)
}

fn start(command: &[std::ffi::OsString]) -> Result<Child, Failure> {
    let [program, arguments @ ..] = command else {
        unreachable!("the command line asks for one");
    };
    let started = Command::new(program).args(arguments).spawn();
    started.map_err(|error| {
        Failure::Unavailable(format!(
            "{}: {error}",
            stats::printable(&program.to_string_lossy())
        ))
    })
}

/// Ends a command: it is asked first.
fn end(child: &mut Child) {
    // SAFETY: sends a signal to a child that has not been waited for.
    unsafe { libc::kill(child.id().cast_signed(), libc::SIGTERM) };
    let asked = Instant::now();
    while asked.elapsed() < PATIENCE {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(LOOK);
    }
    // It may just have ended.
    let _ = child.kill();
    let _ = child.wait();
}

/// The file's name, if the user gives none.
fn name(args: &RecordArgs) -> PathBuf {
    let last = |path: &Path| path.file_name().map(OsStr::to_owned);
    let stem = match (
        args.command.first(),
        &args.attached.cgroup,
        args.attached.pid.first(),
    ) {
        (Some(program), ..) => last(Path::new(program)),
        (_, Some(group), _) => last(group),
        (.., Some(pid)) => Some(pid.to_string().into()),
        _ => Some("all".into()),
    };
    let mut name = stem.unwrap_or_else(|| "recording".into());
    name.push(".vmrec");
    name.into()
}

/// The summary of a recording.
fn line(path: &Path, seen: &Summary) -> Result<String, Failure> {
    let bytes = path.metadata().map_err(Failure::file(path))?.len();
    let lost = match seen.lost {
        Lost {
            records: records @ 1..,
            ..
        } => format!("{} of the kernel's records lost", grouped(records)),
        Lost {
            switches: switches @ 1..,
            ..
        } => {
            let switches = grouped(switches);
            format!("events lost: the kernel counts {switches} more switches of threads")
        }
        Lost {
            unknown: unknown @ 1..,
            ..
        } => format!("the memory of {} unknown", grouped(unknown)),
        _ => "nothing lost".to_owned(),
    };
    let cost = seen.cost.map_or(String::new(), |cost| {
        format!(
            "; recording costs {:.0} % of a loop of memory calls",
            100.0 * cost.max(0.0)
        )
    });
    Ok(format!(
        "{}: {} events of {} in {:.1} s, {:.1} bytes each; {lost}{cost}",
        path.display(),
        grouped(seen.events),
        count(seen.threads, "thread"),
        seen.span.as_secs_f64(),
        bytes as f64 / seen.events.max(1) as f64,
    ))
}

fn words(command: &[std::ffi::OsString]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    stats::printable(&words.join(" ")).into_owned()
}

fn written(path: &Path) -> impl FnOnce(perf::Error) -> Failure {
    |error| match error {
        perf::Error::Written(recording::Error::Io(source)) => Failure::file(path)(source),
        other => Failure::Recording(other),
    }
}
