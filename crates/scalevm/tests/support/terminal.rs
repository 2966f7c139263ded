//! A terminal on which the command draws, and at which this test types.

use super::place::within_reason;
use std::fs::File;
use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Lines and letters of the screen.
const SIZE: (u16, u16) = (30, 120);

/// A pseudo-terminal with a program on it.
pub struct Terminal {
    keyboard: File,
    /// The program's side.
    line: File,
    before: Modes,
    program: Child,
    /// What the program has written so far.
    written: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

/// How the terminal treats what is typed and written.
#[derive(Debug, PartialEq)]
pub struct Modes {
    flags: [libc::tcflag_t; 4],
    keys: [libc::cc_t; libc::NCCS],
}

impl Terminal {
    /// Starts a program on a terminal of its own.
    pub fn start(command: &mut Command) -> Terminal {
        let [keyboard, line] = pair();
        let end = || line.try_clone().expect("a descriptor");
        command.stdin(end()).stdout(end()).stderr(end());
        // SAFETY: between fork and exec these calls allocate nothing and take no lock.
        unsafe { command.pre_exec(take_terminal) };
        let before = modes(&line);
        let program = command.spawn().expect("it starts");
        // It holds the program's side open, which would never seem closed then.
        command.stdin(std::process::Stdio::null());
        command.stdout(std::process::Stdio::null());
        command.stderr(std::process::Stdio::null());
        let written = Arc::<Mutex<Vec<u8>>>::default();
        let (to, mut from) = (written.clone(), keyboard.try_clone().expect("a descriptor"));
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // An error says that the program's side is closed.
            while let Ok(count) = from.read(&mut buffer) {
                to.lock().expect("no panic").extend(&buffer[..count]);
            }
        });
        Terminal {
            keyboard,
            line,
            before,
            program,
            written,
            reader,
        }
    }

    pub fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("typed");
    }

    /// The lines that are on the screen now.
    pub fn screen(&self) -> Vec<String> {
        let written = self.written.lock().expect("no panic");
        screen(&String::from_utf8_lossy(&written))
    }

    /// Waits until a line of the screen contains `text`.
    pub fn shows(&self, text: &str) {
        within_reason(text, || {
            self.screen().iter().any(|line| line.contains(text))
        });
    }

    /// Returns true if the terminal is as it was before the program started.
    pub fn is_as_before(&self) -> bool {
        modes(&self.line) == self.before
    }

    /// Waits for the program's end; its status, and all that it has written.
    pub fn end(mut self) -> (ExitStatus, String) {
        let status = self.program.wait().expect("it ends");
        assert!(self.is_as_before(), "{:?}", modes(&self.line));
        drop(self.line);
        self.reader.join().expect("read");
        let written = self.written.lock().expect("no panic");
        (status, String::from_utf8_lossy(&written).into_owned())
    }
}

/// Both sides of a new terminal.
fn pair() -> [File; 2] {
    let (mut keyboard, mut line) = (-1, -1);
    let (ws_row, ws_col) = SIZE;
    let size = libc::winsize {
        ws_row,
        ws_col,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let (name, usual) = (std::ptr::null_mut(), std::ptr::null());
    // SAFETY: three pointers are to local variables, and the other two may be null.
    let opened = unsafe { libc::openpty(&mut keyboard, &mut line, name, usual, &size) };
    assert_eq!(opened, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the call has just opened both descriptors, so nothing else owns them.
    [keyboard, line].map(|fd| unsafe { File::from_raw_fd(fd) })
}

/// Makes the terminal at stdin that of this process, so that `/dev/tty` is no other one.
fn take_terminal() -> std::io::Result<()> {
    // SAFETY: the calls take numbers only.
    let taken = unsafe { libc::setsid() >= 0 && libc::ioctl(0, libc::TIOCSCTTY, 0) == 0 };
    taken
        .then_some(())
        .ok_or_else(std::io::Error::last_os_error)
}

fn modes(line: &File) -> Modes {
    let mut found = MaybeUninit::<libc::termios>::uninit();
    // SAFETY: the call writes to `found`, which is as large as it expects.
    let got = unsafe { libc::tcgetattr(line.as_raw_fd(), found.as_mut_ptr()) };
    assert_eq!(got, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the call has succeeded, and so has written all of it.
    let found = unsafe { found.assume_init() };
    Modes {
        flags: [found.c_iflag, found.c_oflag, found.c_cflag, found.c_lflag],
        keys: found.c_cc,
    }
}

/// The screen after `written`, in which each line follows its position: `ESC [ row ; 1 H`. The last
/// line may not be complete, and does not count.
fn screen(written: &str) -> Vec<String> {
    let mut lines = vec![String::new(); SIZE.0.into()];
    let (written, _) = written.rsplit_once("\x1b[").unwrap_or_default();
    let sequences = written.split("\x1b[").skip(1);
    let mut row = None;
    for sequence in sequences {
        let end = sequence.find(|letter: char| letter.is_ascii_alphabetic());
        let (code, text) = sequence.split_at(end.map_or(sequence.len(), |end| end + 1));
        if let Some(place) = code.strip_suffix(";1H") {
            row = place.parse::<usize>().ok();
        }
        if let (Some(row), true) = (row, code == "2K") {
            text.clone_into(&mut lines[row - 1]);
        }
    }
    lines
}
