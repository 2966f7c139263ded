//! The memory operations of programs, recorded: calls, faults, computing between them, and which
//! thread woke which.

mod calibration;
mod calls;
mod environment;
mod existing;
mod foreign;
mod functions;
mod memory;
mod program;
mod raw;
mod reader;
mod regions;
mod store;
mod switches;
mod task;
mod tracer;

use crate::support::{ALLOWS_ALL, remedy};
use crate::{Error, Whom};
use calibration::calibrate;
use functions::Known;
use program::{Program, Watch};
use reader::Reader;
use recording::Lost;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use store::Store;
use tracer::Tracer;

/// The processes whose operations are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// These, which already run, and all that they start.
    Running(Whom),
    /// Those that the calling thread starts, from their first `execve` on.
    Started,
}

/// What is recorded besides, and what is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// True if files have no names in the recording.
    pub anonymous: bool,
    /// True if others are recorded that lock the memory of the processes. All locks of memory
    /// pass a tracepoint then, which takes time.
    pub foreign: bool,
}

/// Records memory operations. It needs the rights to trace the kernel.
pub struct Operations {
    tracer: Tracer,
    watch: Watch,
}

/// A recording that goes on.
pub struct Underway {
    signals: Arc<Signals>,
    thread: Option<JoinHandle<Result<Summary, Error>>>,
}

/// What a finished recording has.
#[derive(Clone, Copy, Debug)]
pub struct Summary {
    pub events: u64,
    pub processes: usize,
    pub threads: usize,
    pub span: Duration,
    pub lost: Lost,
    /// The share of a loop of calls that recording it takes.
    pub cost: Option<f64>,
}

/// What the reader and the thread that started it tell each other.
#[derive(Debug, Default)]
struct Signals {
    stop: AtomicBool,
    over: AtomicBool,
}

impl Operations {
    /// Opens all events, and measures what it costs to record them.
    pub fn open(options: Options) -> Result<Operations, Error> {
        stats::environment::numbers_are_ours().map_err(Error::Proc)?;
        let mut tracer = Tracer::open(options.foreign).map_err(refused)?;
        let costs = calibrate(&mut tracer).map_err(Error::system("measuring the cost"))?;
        let functions = Known::read();
        let watch = Watch {
            costs,
            functions,
            anonymous: options.anonymous,
        };
        Ok(Operations { tracer, watch })
    }

    /// Begins to record, and to write the recording to `to`.
    pub fn start(
        self,
        subject: Subject,
        to: impl Write + Send + 'static,
    ) -> Result<Underway, Error> {
        let roots = match &subject {
            Subject::Running(whom) => whom.roots()?,
            // What they are started with is this process's.
            Subject::Started => vec![std::process::id()],
        };
        // Births are reported before the living are looked at, so that none is missed.
        self.tracer
            .enable()
            .map_err(Error::system("starting to record"))?;
        let began = crate::session::now();
        let starter = (subject == Subject::Started).then(crate::session::own_thread);
        let mut program = Program::new(began, self.watch, starter);
        program.recording.environment = environment::environment(&roots);
        let mut group = None;
        if let Subject::Running(whom) = &subject {
            for pid in whom.family(&roots) {
                program.meet(pid, crate::session::now);
            }
            group = whom.group();
        }
        let store = Store::new(to, &program.recording)?;
        let signals = Arc::new(Signals::default());
        let reader = Reader::new(self.tracer, program, store, group, Arc::clone(&signals));
        let thread = std::thread::Builder::new()
            .name("scalevm-record".to_owned())
            .spawn(move || reader.run())
            .map_err(Error::system("starting the reader"))?;
        Ok(Underway {
            signals,
            thread: Some(thread),
        })
    }
}

impl Underway {
    /// Returns true if no recorded thread is alive any more.
    pub fn is_over(&self) -> bool {
        // Relaxed: a hint.
        self.signals.over.load(Ordering::Relaxed)
    }

    /// Returns true if nothing is recorded any more, because the recording cannot be written.
    pub fn has_failed(&self) -> bool {
        self.thread.as_ref().is_some_and(JoinHandle::is_finished)
    }

    /// Ends the recording.
    pub fn finish(mut self) -> Result<Summary, Error> {
        self.stop();
        let thread = self.thread.take().ok_or(Error::Reader)?;
        thread.join().map_err(|_| Error::Reader)?
    }

    fn stop(&self) {
        // Release: pairs with the reader's acquire load.
        self.signals.stop.store(true, Ordering::Release);
    }
}

impl Drop for Underway {
    /// Dropping an unfinished recording leaves no thread behind.
    fn drop(&mut self) {
        self.stop();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn refused(source: io::Error) -> Error {
    Error::Untraced {
        how: remedy(ALLOWS_ALL),
        source,
    }
}
