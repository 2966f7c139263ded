//! Tasks as child processes.

use super::Linux;
use crate::harness::{Failure, Plan, Running, interrupt};
use crate::tasks::{Area, Gate, Mask, Slot, begin_task, born_at};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};
use workloads::Workload;

/// Exit code of a child whose workload failed; the reason is in its slot.
const TASK_FAILED: libc::c_int = 4;
/// Exit code of a child that unwound.
const TASK_PANICKED: libc::c_int = 101;

/// Child processes at work; killed and reaped when dropped.
pub struct Processes {
    workload: &'static Workload,
    area: Area,
    /// By task; taken once the child is reaped.
    children: Vec<Option<libc::pid_t>>,
    /// Keeps the prepared files until the tasks are gone.
    system: Linux,
}

/// The longest time that tasks with children of their own may take to wait for them.
const GRACE: Duration = Duration::from_secs(2);

/// Forks a child for each task and opens the gate when all wait at it.
pub fn start(
    plan: &Plan,
    places: &[Mask],
    area: Area,
    gate: &Gate,
    system: Linux,
) -> Result<Processes, Failure> {
    let workload = plan.workload.known()?;
    let mut running = Processes {
        workload,
        area,
        children: Vec::with_capacity(plan.tasks),
        system,
    };
    // SAFETY: no arguments in memory.
    let parent = unsafe { libc::getpid() };
    for (task, slot) in running.area.slots().iter().enumerate() {
        let system = running.system.of_task(task);
        let fork = || {
            // SAFETY: the child calls nothing but `child`, which never returns.
            match unsafe { libc::fork() } {
                0 => child(parent, workload, slot, gate, system),
                pid if pid < 0 => Err(io::Error::last_os_error()),
                pid => Ok(pid),
            }
        };
        let pid = born_at(places, task, fork).map_err(Failure::start("fork"))?;
        running.children.push(Some(pid));
    }
    while !running.area.slots().iter().all(Slot::is_ready) {
        running.check()?;
        std::thread::sleep(Duration::from_millis(1));
    }
    gate.open().map_err(Failure::start("pipe"))?;
    Ok(running)
}

/// The child's work. If the parent has other threads, locks they held at the
/// fork stay locked here: up to the workload this makes only system calls, and the
/// workloads at most allocate, and libc's `fork` takes care of the allocator's locks.
fn child(
    parent: libc::pid_t,
    workload: &Workload,
    slot: &Slot,
    gate: &Gate,
    mut system: Linux,
) -> ! {
    let mut exit = Exit(TASK_PANICKED);
    // The parent decides when the user interrupts, and takes its children with it
    // if it is killed itself: between fork and prctl by the second question.
    // SAFETY: plain system calls.
    unsafe {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != parent {
            libc::_exit(0);
        }
    }
    slot.ready();
    gate.pass();
    exit.0 = match begin_task(|| workload.run(&mut system, &slot.counter)) {
        Ok(()) => 0,
        Err(error) => {
            slot.fail(error);
            TASK_FAILED
        }
    };
    drop(exit);
    unreachable!("the child has ended");
}

impl Processes {
    /// Reaps the child of `task` if it has ended, and says how it did.
    fn reap(&mut self, task: usize, flags: libc::c_int) -> Option<ExitStatus> {
        let pid = self.children[task]?;
        let mut status = 0;
        loop {
            // SAFETY: `pid` is a child of this process that nothing else reaps.
            match unsafe { libc::waitpid(pid, &mut status, flags) } {
                0 => return None,
                -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                _ => break,
            }
        }
        self.children[task] = None;
        Some(ExitStatus::from_raw(status))
    }

    /// Kills and reaps all children.
    fn end(&mut self) {
        let features = self.workload.needs.features;
        if features.iter().any(|feature| feature.makes_children()) {
            self.let_end();
        }
        for pid in self.children.iter().flatten() {
            // SAFETY: a child that is not reaped yet, so the number is still its own.
            unsafe { libc::kill(*pid, libc::SIGKILL) };
        }
        for task in 0..self.children.len() {
            self.reap(task, 0);
        }
    }
}

impl Processes {
    /// Lets the tasks end by themselves: children of theirs would be orphans if they were
    /// killed. For some time only: one may still wait at the gate.
    fn let_end(&mut self) {
        for slot in self.area.slots() {
            slot.counter.stop();
        }
        let deadline = Instant::now() + GRACE;
        loop {
            for task in 0..self.children.len() {
                self.reap(task, libc::WNOHANG);
            }
            if self.children.iter().all(Option::is_none) || Instant::now() >= deadline {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Processes {
    /// Waits until all tasks have ended, each at its limit.
    pub fn join(mut self) -> Result<(), Failure> {
        while self.children.iter().any(Option::is_some) {
            interrupt::check()?;
            for task in 0..self.children.len() {
                match self.reap(task, libc::WNOHANG) {
                    Some(status) if !status.success() => return Err(self.failure(task, status)),
                    _ => {}
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// The failure of the child of `task`, which has ended with `status`.
    fn failure(&self, task: usize, status: ExitStatus) -> Failure {
        self.area.failure(self.workload.name, task, Some(status))
    }
}

impl Running for Processes {
    fn counts(&self, into: &mut [u64]) {
        self.area.counts(into);
    }

    fn check(&mut self) -> Result<(), Failure> {
        for task in 0..self.children.len() {
            if let Some(status) = self.reap(task, libc::WNOHANG) {
                return Err(self.failure(task, status));
            }
        }
        Ok(())
    }

    fn pids(&self) -> Vec<u32> {
        self.children
            .iter()
            .flatten()
            .map(|pid| pid.cast_unsigned())
            .collect()
    }

    fn stop(mut self: Box<Self>) -> Result<(), Failure> {
        self.check()
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.end();
    }
}

/// Ends the process when dropped, so also if its work unwinds: the parent's code on its stack is
/// not the child's to run.
pub struct Exit(pub libc::c_int);

impl Drop for Exit {
    fn drop(&mut self) {
        // SAFETY: ends the process without running anything of the parent's.
        unsafe { libc::_exit(self.0) }
    }
}
