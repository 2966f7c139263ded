//! The process that hosts a workload, as scalevm sees it.

use super::channel::Channel;
use crate::harness::Body;
use crate::tasks::Affinity;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// What the host is told on its command line.
pub struct Setting<'a> {
    /// What to run.
    pub body: &'a Body,
    /// By how many tasks.
    pub tasks: usize,
    /// Whether these are threads.
    pub threads: bool,
    /// Where tasks run.
    pub affinity: Affinity,
}

impl Setting<'_> {
    fn arguments(&self, channel: RawFd, area: RawFd) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["host".into()];
        match self.body {
            Body::Object(path) => arguments.extend(["--object".into(), path.into()]),
            Body::Command(text) => arguments.extend(["--command".into(), text.into()]),
        }
        let numbers = [
            ("--tasks", self.tasks.to_string()),
            ("--parent", std::process::id().to_string()),
            ("--channel", channel.to_string()),
            ("--area", area.to_string()),
        ];
        for (name, number) in numbers {
            arguments.extend([name.into(), number.into()]);
        }
        arguments.extend(self.threads.then(|| "--threads".into()));
        match self.affinity {
            Affinity::Cores => {}
            Affinity::Cpus => arguments.push("--smt".into()),
            Affinity::None => arguments.push("--no-affinity".into()),
        }
        arguments
    }
}

/// The host and all that it has started; killed and reaped when dropped.
pub struct Process {
    child: Child,
    status: Option<ExitStatus>,
}

impl Process {
    /// Starts the host with its end of the channel and the file of the area.
    pub fn start(setting: &Setting<'_>, channel: &Channel, area: &OwnedFd) -> io::Result<Self> {
        let (channel, area) = (channel.number(), area.as_raw_fd());
        // This very program, also if its file has been replaced meanwhile.
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0("scalevm")
            .args(setting.arguments(channel, area));
        // What a test case prints is no data of ours.
        let stderr = io::stderr();
        command.stdin(Stdio::null()).stdout(stderr);
        // A group of its own: Ctrl-C does not reach it, and it can be killed as a whole.
        command.process_group(0);
        let inherit = move || {
            for number in [channel, area] {
                // SAFETY: a plain system call.
                if unsafe { libc::fcntl(number, libc::F_SETFD, 0) } < 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            Ok(())
        };
        // SAFETY: the closure makes system calls only.
        unsafe { command.pre_exec(inherit) };
        let child = command.spawn()?;
        Ok(Process {
            child,
            status: None,
        })
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How the host ended; waits for that until `limit` has passed.
    pub fn ended(&mut self, limit: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + limit;
        while self.status.is_none() && !self.is_zombie() {
            if Instant::now() >= deadline {
                return None;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Some(self.reap())
    }

    /// Whether the host has ended and waits to be reaped.
    fn is_zombie(&self) -> bool {
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: a zeroed siginfo is valid; `child` is ours and not reaped, so the
        // number is its own.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(libc::P_PID, self.id(), &mut info, flags) == 0 && info.si_pid() != 0
        }
    }

    /// Kills the whole group, then reaps the host: as long as it is not reaped, the
    /// group's number is its own.
    fn reap(&mut self) -> ExitStatus {
        if let Some(status) = self.status {
            return status;
        }
        // SAFETY: a plain system call on the group that the child leads.
        unsafe { libc::kill(-self.id().cast_signed(), libc::SIGKILL) };
        let status = self.child.wait().unwrap_or_default();
        *self.status.insert(status)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.reap();
    }
}
