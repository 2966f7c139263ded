//! A command, started again and again.

use crate::own::channel::{Kind, Packet};
use crate::own::command::words;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use workloads::Counter;

/// A shell's status when it cannot start a program.
const CAN_NOT_START: i32 = 127 << 8;

/// A command.
pub struct Repeat {
    words: Vec<String>,
}

impl Repeat {
    /// The command of this text.
    pub fn new(text: &str) -> Self {
        Repeat { words: words(text) }
    }

    /// By each task: counts completions of the command. When it fails, or is not to be started
    /// again, returns the packet to send.
    pub fn run(&self, counter: &Counter) -> Packet {
        let failed = |error: io::Error| Packet {
            status: CAN_NOT_START,
            ..Packet::new(Kind::Failed, error.to_string())
        };
        match self.repeat(counter) {
            Ok(packet) => packet,
            Err(error) => failed(error),
        }
    }

    fn repeat(&self, counter: &Counter) -> io::Result<Packet> {
        let mut complaints = Complaints::new()?;
        let mut command = self.command(&complaints)?;
        loop {
            complaints.forget()?;
            let status = command.status()?;
            if !status.success() {
                return Ok(Packet {
                    status: status.into_raw(),
                    ..Packet::new(Kind::Failed, complaints.last()?)
                });
            }
            if !counter.add(1) {
                return Ok(Packet::new(Kind::Returned, ""));
            }
        }
    }

    fn command(&self, complaints: &Complaints) -> io::Result<Command> {
        let (program, arguments) = self.words.split_first().expect("a command has a word");
        let null = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/null")?;
        let mut command = Command::new(program);
        command.args(arguments);
        command.stdin(null.try_clone()?).stdout(null);
        command.stderr(Stdio::from(complaints.0.try_clone()?));
        Ok(command)
    }
}

/// The command's stderr: a file in memory, which every start of it shares.
struct Complaints(File);

impl Complaints {
    fn new() -> io::Result<Self> {
        // SAFETY: a string that ends in zero.
        let file = unsafe { libc::memfd_create(c"stderr".as_ptr(), libc::MFD_CLOEXEC) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just opened, and known nowhere else.
        let file = unsafe { File::from_raw_fd(file) };
        // Processes that have the file open write at its end, wherever that is.
        // SAFETY: a plain system call.
        match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, libc::O_APPEND) } {
            0 => Ok(Complaints(file)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn forget(&self) -> io::Result<()> {
        self.0.set_len(0)
    }

    /// The last line that says something.
    fn last(&mut self) -> io::Result<String> {
        let mut text = Vec::new();
        self.0.rewind()?;
        self.0.read_to_end(&mut text)?;
        let text = String::from_utf8_lossy(&text);
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        Ok(last.unwrap_or_default().trim().to_owned())
    }
}
