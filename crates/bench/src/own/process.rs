//! The process that hosts a workload, as scalevm sees it.

use super::channel::Channel;
use crate::harness::Body;
use crate::tasks::Affinity;
use stats::environment::numbers_are_ours;
use std::ffi::OsString;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io};

/// The host's command line.
pub struct Setting<'a> {
    /// The work to run.
    pub body: &'a Body,
    /// The number of tasks.
    pub tasks: usize,
    /// True if these are threads.
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
    /// Children that this process had before.
    others: Vec<libc::pid_t>,
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
        // A test case's output is no result.
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
        // Processes that have left the host's group and lost their parents become children of this
        // one.
        // SAFETY: a plain system call.
        unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
        let others = children();
        let child = command.spawn()?;
        Ok(Process {
            child,
            status: None,
            others,
        })
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the host's end until `limit` has passed, and returns its status.
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

    /// Returns true if the host has ended and waits to be reaped.
    fn is_zombie(&self) -> bool {
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: a zeroed siginfo is valid; `child` is this process's and not reaped, so the
        // number is its own.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(libc::P_PID, self.id(), &mut info, flags) == 0 && info.si_pid() != 0
        }
    }

    /// Kills the whole group, then reaps the host: as long as it is not reaped, the
    /// group's number is its own. Then kills the host's other descendants.
    fn reap(&mut self) -> ExitStatus {
        if let Some(status) = self.status {
            return status;
        }
        // SAFETY: a plain system call on the group that the child leads.
        unsafe { libc::kill(-self.id().cast_signed(), libc::SIGKILL) };
        let status = self.child.wait().unwrap_or_default();
        self.end_orphans();
        *self.status.insert(status)
    }

    /// Kills and reaps processes of the host that have become children of this process by the
    /// deaths of their parents, until none is left: each may leave children of its own.
    fn end_orphans(&self) {
        loop {
            let mut orphans = children();
            orphans.retain(|pid| !self.others.contains(pid));
            if orphans.is_empty() {
                return;
            }
            for pid in orphans {
                // SAFETY: a child that is not reaped yet, so the number is its own; the status
                // pointer may be null.
                unsafe {
                    libc::kill(pid, libc::SIGKILL);
                    libc::waitpid(pid, std::ptr::null_mut(), 0);
                }
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.reap();
    }
}

/// The children of all threads of this process; none where /proc has other numbers, which would be
/// other processes.
fn children() -> Vec<libc::pid_t> {
    if numbers_are_ours().is_err() {
        return Vec::new();
    }
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten();
    let lists = threads
        .flatten()
        .map(|thread| thread.path().join("children"));
    let numbers = |list: String| -> Vec<libc::pid_t> {
        let numbers = list.split_whitespace();
        numbers.filter_map(|number| number.parse().ok()).collect()
    };
    lists
        .filter_map(|list| fs::read_to_string(list).ok())
        .flat_map(numbers)
        .collect()
}
