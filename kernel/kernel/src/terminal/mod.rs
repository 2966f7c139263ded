//! The terminal: typed input becomes lines and signals, output appears.
//!
//! The serial port does not interrupt: a task polls it for bytes, from the first time that a thread
//! asks for input.

mod input;
mod settings;

pub use settings::{Settings, WindowSize};

use crate::errno::Errno;
use crate::fs::Tty;
use crate::process::{self, Info, Process, Signal, with_current};
use crate::single::Single;
use crate::system::{Lock, is_disturbed, system};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use input::Input;
use ipc::{End, Pipe, poll_while};
use machine::{Clock, Scheduler};
use metal::Metal;
use metal::report::CONSOLE;

/// The period at which the port is polled for input, in nanoseconds.
const PERIOD: u64 = 5_000_000;
/// A unit of time in the settings, in nanoseconds.
const TENTH: u64 = 100_000_000;

/// The terminal.
pub static TERMINAL: Single<Terminal> = Single::new();

/// A terminal.
pub struct Terminal {
    state: Lock<State>,
    /// Held while something is printed: the bytes of one call stay together.
    output: Lock<()>,
    /// Contains a byte while there is input, so that threads can wait for input as for a pipe.
    has_input: Pipe<Metal>,
    is_asked: AtomicBool,
}

struct State {
    settings: Settings,
    window: WindowSize,
    input: Input,
    /// The session whose terminal this is, and its group that gets signals; 0 for none.
    session: u32,
    foreground: u32,
}

impl Terminal {
    /// A terminal of no session.
    pub fn new() -> Self {
        Terminal {
            state: Lock::new(State {
                settings: Settings::usual(),
                window: WindowSize::default(),
                input: Input::default(),
                session: 0,
                foreground: 0,
            }),
            output: Lock::new(()),
            has_input: Pipe::new(),
            is_asked: AtomicBool::new(false),
        }
    }

    /// Waits for input, until `limit`. Returns true if there is some.
    fn wait(&self, limit: u64) -> bool {
        let waits = || !is_disturbed() && Metal::now() < limit;
        let wait = || poll_while(&system().kernel, &[(&self.has_input, End::Reading)], waits) != 0;
        match limit {
            u64::MAX => wait(),
            limit => process::wait_until(limit, wait),
        }
    }

    /// Refuses a foreground operation if the caller is in the background; `signal` then stops its
    /// group, if `matters` returns true.
    fn own_turn(&self, signal: Signal, matters: impl Fn(&State) -> bool) -> Result<(), Errno> {
        let Some(caller) = caller() else {
            return Ok(());
        };
        {
            let state = self.state.lock();
            let is_there = state.session != caller.job.session()
                || state.foreground == 0
                || state.foreground == caller.job.group();
            if is_there || !matters(&state) {
                return Ok(());
            }
        }
        let holds = with_current(|it| it.is_some_and(|it| it.mask().has(signal)));
        let ignores = holds || caller.handlers.lock().ignores(signal);
        let is_input = signal == Signal::TERMINAL_INPUT;
        if ignores && !is_input {
            return Ok(());
        }
        if ignores || process::is_orphaned(caller.job.group(), caller.job.session()) {
            return Err(Errno::IO);
        }
        send(caller.job.group(), signal);
        Err(Errno::INTR)
    }

    /// Starts the polling for input.
    pub fn ask(&'static self) {
        if !self.is_asked.swap(true, Ordering::Relaxed) {
            let asks = move || {
                loop {
                    while let Some(byte) = CONSOLE.receive() {
                        self.receive(byte);
                    }
                    Metal::sleep_until(Metal::now() + PERIOD);
                }
            };
            system().scheduler.start(Box::new(asks));
        }
    }

    /// Takes a typed byte.
    fn receive(&self, byte: u8) {
        let (echo, signal, foreground) = {
            let mut guard = self.state.lock();
            let state = &mut *guard;
            let mut echo = Vec::new();
            let signal = state.input.receive(byte, &state.settings, &mut echo);
            self.tell(&state.input);
            (echo, signal, state.foreground)
        };
        echo.iter().for_each(|&byte| CONSOLE.send(byte));
        if let Some(signal) = signal
            && foreground != 0
        {
            send(foreground, signal);
        }
    }

    /// Puts a byte into `has_input` if there is input, else takes it out. Called under the lock of
    /// `state`.
    fn tell(&self, input: &Input) {
        let (kernel, mut byte) = (&system().kernel, [0]);
        match input.count() {
            0 => {
                self.has_input.read_while(kernel, &mut byte, || false);
            }
            _ if self.has_input.room(End::Reading).0 == 0 => {
                // The pipe has room for one byte.
                let _ = self.has_input.write_while(kernel, &byte, || false);
            }
            _ => {}
        }
    }

    /// The terminal's settings.
    pub fn settings(&self) -> Settings {
        self.state.lock().settings
    }

    /// Changes the settings, and discards the typed input if `flushes`.
    pub fn set(&self, settings: Settings, flushes: bool) -> Result<(), Errno> {
        self.own_turn(Signal::TERMINAL_OUTPUT, |_| true)?;
        let mut state = self.state.lock();
        state.settings = settings;
        if flushes {
            state.input = Input::default();
        }
        if !settings.reading().0 {
            state.input.end_line();
        }
        self.tell(&state.input);
        Ok(())
    }

    /// Discards the typed input.
    pub fn flush(&self) {
        let mut state = self.state.lock();
        state.input = Input::default();
        self.tell(&state.input);
    }

    /// The window's size.
    pub fn window(&self) -> WindowSize {
        self.state.lock().window
    }

    /// Sets the window's size, and signals the foreground.
    pub fn set_window(&self, size: WindowSize) {
        let foreground = {
            let mut state = self.state.lock();
            let is_new = state.window != size;
            state.window = size;
            if is_new { state.foreground } else { 0 }
        };
        if foreground != 0 {
            send(foreground, Signal::WINDOW);
        }
    }

    /// Makes this the terminal of the caller's session, which has no terminal and which the caller
    /// leads.
    pub fn become_of(&self, leader: &Process) -> Result<(), Errno> {
        let mut state = self.state.lock();
        let session = leader.job.session();
        if session == leader.pid && state.session == session {
            return Ok(());
        }
        if session != leader.pid || state.session != 0 {
            return Err(Errno::PERM);
        }
        (state.session, state.foreground) = (session, leader.job.group());
        Ok(())
    }

    /// Returns true if this is the terminal of the process.
    pub fn is_of(&self, process: &Process) -> bool {
        let session = self.state.lock().session;
        session != 0 && session == process.job.session()
    }

    /// The session whose terminal this is.
    pub fn session(&self) -> u32 {
        self.state.lock().session
    }

    /// The foreground group, which gets the terminal's signals.
    pub fn foreground(&self) -> u32 {
        self.state.lock().foreground
    }

    /// Sets the foreground group.
    pub fn set_foreground(&self, group: u32, caller: &Process) -> Result<(), Errno> {
        if !self.is_of(caller) {
            return Err(Errno::NOTTY);
        }
        self.own_turn(Signal::TERMINAL_OUTPUT, |_| true)?;
        let session = caller.job.session();
        if !process::group(group).any(|it| it.job.session() == session) {
            return Err(Errno::PERM);
        }
        self.state.lock().foreground = group;
        Ok(())
    }

    /// Takes the terminal from its session, whose leader has ended or gives it up, and signals the
    /// foreground.
    pub fn give_up(&self, leader: &Process) {
        let foreground = {
            let mut state = self.state.lock();
            if state.session != leader.pid {
                return;
            }
            state.session = 0;
            core::mem::take(&mut state.foreground)
        };
        if foreground != 0 {
            send(foreground, Signal::HANGUP);
            send(foreground, Signal::CONTINUE);
        }
    }
}

impl Tty for Terminal {
    fn read(&'static self, to: &mut [u8], waits: bool) -> Result<usize, Errno> {
        self.ask();
        loop {
            self.own_turn(Signal::TERMINAL_INPUT, |_| true)?;
            let (is_line, least, tenths) = {
                let mut state = self.state.lock();
                let (is_line, least, tenths) = state.settings.reading();
                if let Some(count) = state.input.take(to, is_line) {
                    self.tell(&state.input);
                    return Ok(count);
                }
                (is_line, least, tenths)
            };
            if !is_line && least == 0 && tenths == 0 {
                return Ok(0);
            }
            if !waits {
                return Err(Errno::AGAIN);
            }
            let limit = if !is_line && least == 0 {
                Metal::now() + u64::from(tenths) * TENTH
            } else {
                u64::MAX
            };
            if !self.wait(limit) {
                return if Metal::now() >= limit {
                    Ok(0)
                } else {
                    Err(Errno::INTR)
                };
            }
        }
    }

    fn input_pipe(&'static self) -> &'static Pipe<Metal> {
        &self.has_input
    }

    fn has_input(&'static self) -> bool {
        self.ask();
        self.state.lock().input.count() > 0
    }

    fn count(&self) -> usize {
        self.state.lock().input.count()
    }

    fn write(&self, from: &[u8]) -> Result<usize, Errno> {
        self.own_turn(Signal::TERMINAL_OUTPUT, |state| {
            state.settings.stops_output()
        })?;
        let expands = self.state.lock().settings.expands_lines();
        let _whole = self.output.lock();
        for &byte in from {
            if byte == b'\n' && expands {
                CONSOLE.send(b'\r');
            }
            CONSOLE.send(byte);
        }
        Ok(from.len())
    }
}

/// Called when a process has ended: a session's leader gives its terminal up.
pub fn leave(process: &Process) {
    if process.job.session() == process.pid {
        TERMINAL.give_up(process);
    }
}

fn caller() -> Option<Arc<Process>> {
    with_current(|thread| thread.map(|it| it.process.clone()))
}

/// Sends a signal of the terminal to a group.
fn send(group: u32, signal: Signal) {
    for process in process::group(group) {
        // This fails only for queued signals.
        let _ = process.send(Info::kernel(signal));
    }
}
