//! A guest at work.

use super::program::Program;
use crate::harness::{Failure, Job, Plan, Running, interrupt, say};
use crate::inside::{self, BEAT, Line, RECORDING, Window};
use crate::tasks::Affinity;
use baselines::Preset;
use guests::boot::{self, Console};
use guests::{Ended, Files, Machine, kernel};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Where the guest has the program.
const PLACE: &str = "workload";
/// The longest silence of a guest: it boots, and emulation is slow.
const PATIENCE: Duration = Duration::from_secs(120);
/// The time between two checks for an interrupt by the user.
const TURN: Duration = Duration::from_millis(100);

/// The result of carrying the console.
type Carried = Result<Ended, guests::Error>;

/// A guest that was watched to its end.
pub(crate) struct Watched {
    pub lines: Vec<Line>,
    /// The file of the kernel.
    pub kernel: PathBuf,
    /// The program, whose file is there while this is.
    pub program: Option<Program>,
}

/// A guest; it ends when this is dropped. Its clock stands at the last counts that it has reported.
pub(super) struct Guest {
    workload: &'static str,
    /// By the guest's clock.
    at: Duration,
    counts: Vec<u64>,
    lines: Receiver<Line>,
    /// Tells the thread to end the guest: relaxed, it passes on nothing else.
    is_over: Arc<AtomicBool>,
    /// Why the last advance has come to no end.
    failure: Option<Failure>,
    /// The guest's files are packed from it.
    program: Option<Program>,
    /// The kernel's file.
    kernel: PathBuf,
    /// Carries the console, until the guest has ended.
    carrier: Option<JoinHandle<Carried>>,
}

impl Guest {
    /// Boots a guest that runs `program` for `plan`. The kernel is built when it is first needed.
    pub(super) fn boot(
        plan: &Plan,
        affinity: Affinity,
        machine: Machine,
        preset: Preset,
        program: Program,
        window: Option<Window>,
    ) -> Result<Self, Failure> {
        let mut files = Files::with_busybox()?;
        files.add(&program.file, PLACE)?;
        if let Job::Recorded(program, threads) = plan.workload {
            let mut recording = Vec::new();
            let written = program.recording(threads).write(&mut recording);
            written.map_err(|error| Failure::Unavailable(format!("{}: {error}", program.name)))?;
            files.write(&RECORDING[1..], recording);
        }
        let file = match window {
            Some(_) => kernel::build_watched()?,
            None => kernel::build()?,
        };
        let kernel = guests::Guest::Ours {
            kernel: file.clone(),
            words: vec![format!("vm={}", preset.name)],
        };
        let words = [PLACE.to_owned()].into_iter();
        let words = words.chain(inside::words(plan, affinity, window));
        let command = guests::Program::new(format!("/{PLACE}"), words);
        let (sender, lines) = channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let stop = is_over.clone();
        let carry = move || {
            let mut lines = Lines {
                sender,
                rest: Vec::new(),
            };
            let console = Console::Into(&mut lines);
            let stop = || stop.load(Relaxed);
            let mut note = |line: &str| say(format_args!("scalevm: kernel: {line}"));
            boot::run(
                &kernel, &machine, &files, &command, console, &stop, &mut note,
            )
        };
        let carrier = thread::Builder::new().name("guest".into()).spawn(carry);
        Ok(Guest {
            workload: plan.workload.name(),
            at: Duration::ZERO,
            counts: vec![0; plan.tasks],
            lines,
            is_over,
            failure: None,
            program: Some(program),
            kernel: file,
            carrier: Some(carrier.map_err(Failure::start("thread"))?),
        })
    }

    /// Waits for the first counts: the tasks are at work.
    pub(super) fn begin(&mut self) -> Result<(), Failure> {
        let line = self.wait()?;
        self.take(line)
    }

    /// The next line; the guest has not ended.
    pub(super) fn wait(&mut self) -> Result<Line, Failure> {
        let line = self.next()?;
        line.ok_or_else(|| {
            let carried = self.carrier.take().map(JoinHandle::join);
            self.ended(carried)
        })
    }

    /// The next line; none if the guest has ended.
    fn next(&mut self) -> Result<Option<Line>, Failure> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            interrupt::check()?;
            match self.lines.recv_timeout(TURN) {
                Ok(line) => return Ok(Some(line)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
        }
        Err(self.failed(format!(
            "no output from the guest for {} s",
            PATIENCE.as_secs()
        )))
    }

    /// All lines up to the guest's end, which must be a good one.
    pub(super) fn finish(mut self) -> Result<Watched, Failure> {
        let mut lines = Vec::new();
        while let Some(line) = self.next()? {
            match line {
                Line::Failed(why) => return Err(Failure::InGuest(why)),
                line => lines.push(line),
            }
        }
        match self.carrier.take().map(JoinHandle::join) {
            Some(Ok(Ok(Ended::Exit(0)))) => Ok(Watched {
                lines,
                kernel: self.kernel.clone(),
                program: self.program.take(),
            }),
            carried => Err(self.ended(carried)),
        }
    }

    fn take(&mut self, line: Line) -> Result<(), Failure> {
        match line {
            Line::Counts(at, counts) if counts.len() == self.counts.len() => {
                (self.at, self.counts) = (at, counts);
                Ok(())
            }
            Line::Failed(why) => Err(Failure::InGuest(why)),
            line => Err(self.failed(format!("unexpected output from the guest: `{line}`"))),
        }
    }

    /// Why it has ended, which it should not.
    fn ended(&self, carried: Option<thread::Result<Carried>>) -> Failure {
        match carried {
            Some(Ok(Ok(Ended::Exit(status)))) => {
                self.failed(format!("the program has ended with status {status}"))
            }
            Some(Ok(Ok(Ended::Panic(panic)))) => self.failed(panic.to_string()),
            Some(Ok(Err(error))) => error.into(),
            _ => self.failed("the guest stopped without giving a reason".to_owned()),
        }
    }

    fn failed(&self, why: String) -> Failure {
        Failure::Guest {
            workload: self.workload,
            why,
        }
    }
}

impl Running for Guest {
    fn counts(&self, into: &mut [u64]) {
        into.copy_from_slice(&self.counts);
    }

    fn now(&self) -> Duration {
        self.at
    }

    /// [`Running::check`] reports errors in the meantime.
    fn advance(&mut self, span: Duration) {
        // The nearest beat.
        let until = self.at + span.saturating_sub(BEAT / 2);
        while self.at < until && self.failure.is_none() {
            let taken = self.wait().and_then(|line| self.take(line));
            self.failure = taken.err();
        }
    }

    fn check(&mut self) -> Result<(), Failure> {
        self.failure.take().map_or(Ok(()), Err)
    }

    fn stop(mut self: Box<Self>) -> Result<(), Failure> {
        self.check()
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        if let Some(carrier) = self.carrier.take() {
            // It has been ended; the status does not matter any more.
            let _ = carrier.join();
        }
    }
}

/// The console: cuts output into lines; passes on those that are not the program's.
struct Lines {
    sender: Sender<Line>,
    /// The beginning of a line.
    rest: Vec<u8>,
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.rest.extend_from_slice(bytes);
        while let Some(end) = self.rest.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line[..end]).into_owned();
            match line.parse() {
                // If the receiver is gone the guest is about to be ended.
                Ok(line) => drop(self.sender.send(line)),
                Err(()) => say(format_args!("{line}")),
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
