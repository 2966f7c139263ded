//! Tasks as children of the host.

use super::{Host, death};
use crate::own::channel::{Kind, Received, tell};
use crate::tasks::{Mask, born_at};
use stats::environment::numbers_are_ours;
use std::{fs, io};

/// Forks a child for each task, reports those that end, and ends all on request.
pub fn run(host: &Host, places: &[Mask]) -> io::Result<()> {
    let waiting = Waiting::begin();
    // SAFETY: no arguments in memory.
    let parent = unsafe { libc::getpid() };
    let mut tasks = Vec::with_capacity(host.area.slots().len());
    for task in 0..host.area.slots().len() {
        let fork = || {
            // SAFETY: this process has one thread; the child calls nothing but `child`,
            // which never returns.
            match unsafe { libc::fork() } {
                0 => child(host, task, parent, &waiting),
                pid if pid < 0 => Err(io::Error::last_os_error()),
                pid => Ok(pid),
            }
        };
        tasks.push(born_at(places, task, fork)?);
    }
    let mut reap = || reap(host, &tasks);
    host.open(&mut reap)?;
    loop {
        reap();
        match host.channel.receive(None, Some(&waiting.unblocked)) {
            Received::Nothing => {}
            Received::Packet(_) | Received::Closed => break,
        }
    }
    end_children();
    Ok(())
}

/// A task's work. Nothing may unwind from here into code that is its parent's.
extern "C" fn child(host: &Host, task: usize, parent: libc::pid_t, waiting: &Waiting) -> ! {
    waiting.end();
    death::follow_in_child(parent);
    host.work(task);
    // Not `exit`: the buffers are copies of the parent's.
    // SAFETY: ends the process.
    unsafe { libc::_exit(0) }
}

/// Blocks SIGCHLD except while the host waits, so that none is lost between the check and the wait.
struct Waiting {
    before: libc::sigaction,
    unblocked: libc::sigset_t,
}

impl Waiting {
    fn begin() -> Self {
        extern "C" fn nothing(_: libc::c_int) {}
        // SAFETY: zeroed structures are valid, and filled by the calls.
        unsafe {
            let mut waiting: Waiting = std::mem::zeroed();
            let mut child: libc::sigset_t = std::mem::zeroed();
            libc::sigaddset(&mut child, libc::SIGCHLD);
            libc::sigprocmask(libc::SIG_BLOCK, &child, &mut waiting.unblocked);
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as *const () as libc::sighandler_t;
            libc::sigaction(libc::SIGCHLD, &action, &mut waiting.before);
            waiting
        }
    }

    /// By a child, which has children of its own or none.
    fn end(&self) {
        // SAFETY: the settings that `begin` has found.
        unsafe {
            libc::sigaction(libc::SIGCHLD, &self.before, std::ptr::null_mut());
            libc::sigprocmask(libc::SIG_SETMASK, &self.unblocked, std::ptr::null_mut());
        }
    }
}

/// Reaps ended children, and reports those that are tasks. Returns true if there was one.
fn reap(host: &Host, tasks: &[libc::pid_t]) -> bool {
    let mut lost = false;
    loop {
        let mut status = 0;
        // SAFETY: children of this process that nothing else waits for.
        let pid = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) };
        if pid <= 0 {
            return lost;
        }
        if let Some(task) = tasks.iter().position(|&task| task == pid) {
            tell(host.channel.number(), Kind::Ended, task, status);
            lost = true;
        }
    }
}

/// Kills and reaps the tasks, and the processes they leave behind, until none is left.
fn end_children() {
    loop {
        for pid in children() {
            // SAFETY: a child that is not reaped yet, so the number is its own.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        // SAFETY: the status pointer may be null.
        let pid = unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) };
        if pid < 0 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return;
        }
    }
}

/// The children there are now; none where /proc has other numbers, which would be other processes.
fn children() -> Vec<libc::pid_t> {
    if numbers_are_ours().is_err() {
        return Vec::new();
    }
    let list = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    let numbers = list.split_whitespace();
    numbers.filter_map(|number| number.parse().ok()).collect()
}
