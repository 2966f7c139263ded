//! Tasks as child processes, or as threads of one.

use super::Linux;
use super::system::spare_cancellation;
use crate::harness::{Failure, Mode, Plan, Running, interrupt};
use crate::tasks::{Area, Gate, Mask, Slot, begin_task, born_at};
use std::io;
use std::ops::Range;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};
use workloads::{Call, Error, Timed, Workload};

/// Exit code of a child whose workload failed; the reason is in its slot.
const TASK_FAILED: libc::c_int = 4;
/// Exit code of a child that unwound.
const TASK_PANICKED: libc::c_int = 101;

/// Child processes at work; killed and reaped when dropped.
pub struct Processes {
    workload: &'static Workload,
    area: Area,
    children: Vec<Child>,
    /// Keeps the prepared files until the tasks are gone.
    system: Linux,
}

/// A child process.
struct Child {
    /// Taken once it is reaped.
    pid: Option<libc::pid_t>,
    /// Its tasks.
    tasks: Range<usize>,
}

/// The longest time that tasks with children of their own may take to wait for them.
const GRACE: Duration = Duration::from_secs(2);

/// Forks a child for each task, or one that has a thread for each, and opens the gate when all wait
/// at it. No task shares an address space with the process that measures and watches it.
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
        children: Vec::new(),
        system,
    };
    // SAFETY: no arguments in memory.
    let parent = unsafe { libc::getpid() };
    let each = match plan.mode {
        Mode::Processes => 1,
        Mode::Threads => plan.tasks,
    };
    for first in (0..plan.tasks).step_by(each) {
        let tasks = first..first + each;
        let crew = Crew {
            workload,
            slots: running.area.slots(),
            gate,
            system: &running.system,
            places,
        };
        let fork = || {
            // SAFETY: the child calls nothing but `child`, which never returns.
            match unsafe { libc::fork() } {
                0 => child(parent, &crew, tasks.clone()),
                pid if pid < 0 => Err(io::Error::last_os_error()),
                pid => Ok(pid),
            }
        };
        let pid = match plan.mode {
            Mode::Processes => born_at(places, tasks.start, fork),
            Mode::Threads => fork(),
        };
        let pid = Some(pid.map_err(Failure::start("fork"))?);
        running.children.push(Child { pid, tasks });
    }
    while !running.area.slots().iter().all(Slot::is_ready) {
        running.check()?;
        thread::sleep(Duration::from_millis(1));
    }
    gate.open().map_err(Failure::start("pipe"))?;
    Ok(running)
}

/// What the tasks of a child share.
struct Crew<'a> {
    workload: &'static Workload,
    slots: &'a [Slot],
    gate: &'a Gate,
    system: &'a Linux,
    places: &'a [Mask],
}

impl Crew<'_> {
    /// Runs one task to its end; returns the exit code of its process.
    fn run(&self, task: usize) -> libc::c_int {
        let (slot, mut system) = (&self.slots[task], self.system.of_task(task));
        slot.ready();
        self.gate.pass();
        match begin_task(|| self.workload.run(&mut system, &slot.counter)) {
            Ok(()) => 0,
            Err(error) => {
                slot.fail(error);
                TASK_FAILED
            }
        }
    }

    /// Runs tasks on threads. One that fails ends the process.
    fn run_threads(&self, tasks: Range<usize>) -> libc::c_int {
        thread::scope(|scope| {
            for task in tasks {
                let run = move || {
                    let mut exit = Exit(TASK_PANICKED);
                    spare_cancellation();
                    exit.0 = self.run(task);
                    if exit.0 == 0 {
                        std::mem::forget(exit);
                    }
                };
                let builder = thread::Builder::new().name(format!("task {task}"));
                let thread = born_at(self.places, task, || builder.spawn_scoped(scope, run));
                if let Err(error) = thread {
                    let code = error.raw_os_error().unwrap_or(libc::EAGAIN);
                    self.slots[task].fail(Error::Failed(Call::Thread, code));
                    drop(Exit(TASK_FAILED));
                }
            }
        });
        0
    }
}

/// The child's work. If the parent has other threads, locks they held at the
/// fork stay locked here: up to the workload this makes only system calls and threads, and the
/// workloads at most allocate, and libc's `fork` takes care of the allocator's locks.
fn child(parent: libc::pid_t, crew: &Crew<'_>, tasks: Range<usize>) -> ! {
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
    exit.0 = match crew.system.mode() {
        Mode::Processes => crew.run(tasks.start),
        Mode::Threads => crew.run_threads(tasks),
    };
    drop(exit);
    unreachable!("the child has ended");
}

impl Processes {
    /// Reaps a child if it has ended, and says how it did.
    fn reap(&mut self, child: usize, flags: libc::c_int) -> Option<ExitStatus> {
        let pid = self.children[child].pid?;
        let mut status = 0;
        loop {
            // SAFETY: `pid` is a child of this process that nothing else reaps.
            match unsafe { libc::waitpid(pid, &mut status, flags) } {
                0 => return None,
                -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                _ => break,
            }
        }
        self.children[child].pid = None;
        Some(ExitStatus::from_raw(status))
    }

    /// The children that are not reaped.
    fn living(&self) -> impl Iterator<Item = libc::pid_t> {
        self.children.iter().filter_map(|child| child.pid)
    }

    /// Kills and reaps all children.
    fn end(&mut self) {
        let features = self.workload.needs.features;
        if features.iter().any(|feature| feature.makes_children()) {
            self.let_end();
        }
        for pid in self.living() {
            // SAFETY: a child that is not reaped yet, so the number is still its own.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        for child in 0..self.children.len() {
            self.reap(child, 0);
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
            for child in 0..self.children.len() {
                self.reap(child, libc::WNOHANG);
            }
            if self.living().next().is_none() || Instant::now() >= deadline {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Processes {
    /// Waits until all tasks have ended, each at its limit.
    pub fn join(mut self) -> Result<(), Failure> {
        while self.living().next().is_some() {
            interrupt::check()?;
            for child in 0..self.children.len() {
                match self.reap(child, libc::WNOHANG) {
                    Some(status) if !status.success() => return Err(self.failure(child, status)),
                    _ => {}
                }
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// The failure of a child that has ended with `status`: that of the task which says so.
    fn failure(&self, child: usize, status: ExitStatus) -> Failure {
        let tasks = self.children[child].tasks.clone();
        let slots = self.area.slots();
        let failed = tasks.clone().find(|&task| slots[task].error().is_some());
        let task = failed.unwrap_or(tasks.start);
        self.area.failure(self.workload.name, task, Some(status))
    }
}

impl Running for Processes {
    fn counts(&self, into: &mut [u64]) {
        self.area.counts(into);
    }

    fn delay(&mut self, time: Duration) -> bool {
        self.area.delay(time);
        true
    }

    fn timed(&self) -> Timed {
        self.area.timed()
    }

    fn check(&mut self) -> Result<(), Failure> {
        for child in 0..self.children.len() {
            if let Some(status) = self.reap(child, libc::WNOHANG) {
                return Err(self.failure(child, status));
            }
        }
        Ok(())
    }

    fn pids(&self) -> Vec<u32> {
        self.living().map(libc::pid_t::cast_unsigned).collect()
    }

    /// The first thread of a process whose other threads are the tasks only waits for them.
    fn drivers(&self) -> Vec<u32> {
        match self.system.mode() {
            Mode::Processes => Vec::new(),
            Mode::Threads => self.pids(),
        }
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
