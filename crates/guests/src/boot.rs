//! Running a program in a guest.

use crate::ended::Report;
use crate::qemu::{self, Place};
use crate::terminal::Terminal;
use crate::{Ended, Error, Files, Guest, Library, Machine, Panic, Program, backtrace};
use crate::{compile, program, source};
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::slice;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

/// The interval of checks if the guest is to stop.
const LOOK: Duration = Duration::from_millis(20);

/// The most chunks of output that wait to be written before the guest has to.
const CHUNKS: usize = 16;

/// The bytes of memory that a guest needs in addition to its files.
const BESIDES: u64 = 16 << 20;

/// The guest's console.
pub enum Console<'a> {
    /// The user's terminal, which is standard input and output.
    Terminal,
    /// Output is written to this; there is no input.
    Into(&'a mut dyn Write),
    /// A terminal at which a script types and reads the guest's output.
    Typed(&'a mut Typist),
}

/// A script at a guest's terminal.
pub struct Typist {
    /// Pairs of awaited output and the answer to it, in this order.
    pub script: &'static [(&'static str, &'static str)],
    /// The guest's output.
    pub printed: Vec<u8>,
}

impl Typist {
    /// Takes in a chunk of output; returns the next answer if its cue follows the output already
    /// `read`.
    fn answer(&mut self, chunk: &[u8], read: &mut usize) -> Option<&'static str> {
        self.printed.extend_from_slice(chunk);
        let &(awaited, answer) = self.script.first()?;
        let rest = &self.printed[*read..];
        let at = rest
            .windows(awaited.len())
            .position(|part| part == awaited.as_bytes())?;
        *read += at + awaited.len();
        self.script = &self.script[1..];
        Some(answer)
    }
}

/// Runs `program` in a guest with `files`, until it ends or `stop` says so. Lines that the guest
/// reports and that say nothing about its end are given to `note`.
///
/// # Errors
/// Fails if the guest cannot be prepared or started, or its output cannot be written.
pub fn run(
    guest: &Guest,
    machine: &Machine,
    files: &Files,
    program: &Program,
    console: Console<'_>,
    stop: &dyn Fn() -> bool,
    note: &mut dyn FnMut(&str),
) -> Result<Ended, Error> {
    let programs = slice::from_ref(program);
    run_each(guest, machine, files, programs, console, stop, note)
}

/// Runs `programs` in a guest one after the other, as [`run`] does; all have the input of the
/// first. When one ends, so do all processes that it has left behind. In the output its status
/// follows, between [`SEPARATOR`](crate::SEPARATOR)s; that of the last one ends the guest.
///
/// # Errors
/// As [`run`].
pub fn run_each(
    guest: &Guest,
    machine: &Machine,
    files: &Files,
    programs: &[Program],
    console: Console<'_>,
    stop: &dyn Fn() -> bool,
    note: &mut dyn FnMut(&str),
) -> Result<Ended, Error> {
    let place = Place::new()?;
    let terminal = matches!(console, Console::Terminal);
    let in_batch = matches!(console, Console::Into(_));
    pack(files, programs, !in_batch, &place)?;
    refuse_without_memory(machine, &place)?;
    if let Some(size) = machine.swap {
        let disk = File::create(place.disk()).and_then(|disk| disk.set_len(size));
        disk.map_err(Error::at(place.disk()))?;
    }
    let command = qemu::command(guest, machine, &place, terminal)?;
    let finished = match console {
        Console::Terminal => on_terminal(command, stop)?,
        Console::Into(out) => into(command, out, stop)?,
        Console::Typed(typist) => typed(command, typist, stop)?,
    };
    if !finished {
        return Ok(Ended::Stopped);
    }
    let report = fs::read(place.report()).map_err(Error::at(place.report()))?;
    let report = Report::parse(&String::from_utf8_lossy(&report));
    report.notes.iter().for_each(|line| note(line));
    Ok(ended(guest, report))
}

/// Runs `program` without a terminal, and returns also its output.
///
/// # Errors
/// Fails if the guest cannot be prepared or started.
pub fn captured(
    guest: &Guest,
    machine: &Machine,
    files: &Files,
    program: &Program,
    stop: &dyn Fn() -> bool,
) -> Result<(Ended, Vec<u8>), Error> {
    let mut text = Vec::new();
    let console = Console::Into(&mut text);
    let ended = run(guest, machine, files, program, console, stop, &mut |_| ())?;
    Ok((ended, text))
}

/// Adds the guest's first process and what it runs, and packs all files.
fn pack(files: &Files, programs: &[Program], terminal: bool, place: &Place) -> Result<(), Error> {
    compile(&source("guest/init.c"), &place.init(), Library::Musl)?;
    let mut files = files.clone();
    files.add(&place.init(), "init")?;
    let input = match programs.first().and_then(|first| first.input.clone()) {
        Some(input) => {
            files.write("stdin", input);
            "/stdin"
        }
        None => "",
    };
    files.write("command", program::command(programs, terminal, input));
    let archive = File::create(place.archive()).map_err(Error::at(place.archive()))?;
    files.pack(BufWriter::new(archive), &place.archive())
}

/// Fails if the guest has no memory to unpack its archive.
fn refuse_without_memory(machine: &Machine, place: &Place) -> Result<(), Error> {
    let archive = place.archive();
    let size = fs::metadata(&archive).map_err(Error::at(&archive))?.len();
    // The archive stays while it is unpacked. An eighth of memory is the kernel's heap.
    let least = (2 * size + BESIDES) / 7 * 8;
    if machine.memory >= least {
        return Ok(());
    }
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    let why = format!(
        "{} MiB, which take {} MiB of memory to unpack; --memory is {} MiB",
        mib(size),
        mib(least),
        mib(machine.memory)
    );
    Err(Error::unusable("the guest's files", why))
}

fn ended(guest: &Guest, report: Report) -> Ended {
    match (report.panic, report.status) {
        (Some((message, addresses)), _) => Ended::Panic(Panic {
            message,
            stack: backtrace::frames(guest.file(), &addresses),
        }),
        (None, Some(code)) => Ended::Exit(code),
        (None, None) => Ended::Silently,
    }
}

/// A running QEMU, which does not outlive this value, nor this process.
struct Running(Child);

impl Running {
    fn start(mut command: Command) -> Result<Running, Error> {
        // SAFETY: the child calls nothing but prctl, which may be called between fork and exec.
        unsafe { command.pre_exec(die_with_parent) };
        let child = command.spawn().map_err(Error::at(command.get_program()))?;
        Ok(Running(child))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already; a failure cannot be reported.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The kernel ends QEMU when the thread that has started it is gone, however that happens.
fn die_with_parent() -> io::Result<()> {
    // SAFETY: the arguments are those of this option.
    match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Runs QEMU at the user's terminal. Returns true if it has ended by itself, false if it was
/// stopped.
fn on_terminal(command: Command, stop: &dyn Fn() -> bool) -> Result<bool, Error> {
    let _restored = Terminal::save();
    let program = command.get_program().to_owned();
    let mut qemu = Running::start(command)?;
    while !stop() {
        if qemu.0.try_wait().map_err(Error::at(&program))?.is_some() {
            return Ok(true);
        }
        thread::sleep(LOOK);
    }
    Ok(false)
}

/// Runs QEMU with the guest's output written to `out`. Returns true if it has ended by itself.
fn into(mut command: Command, out: &mut dyn Write, stop: &dyn Fn() -> bool) -> Result<bool, Error> {
    command.stdin(Stdio::null());
    follow(command, stop, &mut |chunk, _| {
        out.write_all(chunk).and_then(|()| out.flush())
    })
}

/// Runs QEMU with a script at the guest's console. Returns true if it has ended by itself.
fn typed(
    mut command: Command,
    typist: &mut Typist,
    stop: &dyn Fn() -> bool,
) -> Result<bool, Error> {
    command.stdin(Stdio::piped());
    let mut read = 0;
    follow(command, stop, &mut |chunk, qemu| {
        let mut answer = typist.answer(chunk, &mut read);
        while let Some(keys) = answer {
            if let Some(stdin) = &mut qemu.stdin {
                stdin.write_all(keys.as_bytes())?;
            }
            answer = typist.answer(&[], &mut read);
        }
        Ok(())
    })
}

/// Runs QEMU, and gives the guest's output to `printed`, as it comes.
fn follow(
    mut command: Command,
    stop: &dyn Fn() -> bool,
    printed: &mut dyn FnMut(&[u8], &mut Child) -> io::Result<()>,
) -> Result<bool, Error> {
    command.stdout(Stdio::piped());
    // Ctrl-C interrupts only this process, which ends QEMU.
    command.process_group(0);
    let program = command.get_program().to_owned();
    let mut qemu = Running::start(command)?;
    let Some(stdout) = qemu.0.stdout.take() else {
        unreachable!("standard output is a pipe")
    };
    let chunks = chunks(stdout);
    while !stop() {
        match chunks.recv_timeout(LOOK) {
            Ok(chunk) => {
                printed(&chunk, &mut qemu.0).map_err(Error::at("the guest's console"))?;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return qemu.0.wait().map(|_| true).map_err(Error::at(&program));
            }
        }
    }
    Ok(false)
}

/// The chunks of `source`, as they come; disconnected at its end.
fn chunks(mut source: ChildStdout) -> Receiver<Vec<u8>> {
    let (sender, receiver) = sync_channel(CHUNKS);
    thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(length @ 1..) = source.read(&mut buffer) {
            if sender.send(buffer[..length].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}
