//! Tasks of the user's own at work in their host.

use super::channel::{Channel, Kind, Packet, Received};
use super::process::{Process, Setting};
use crate::harness::{Body, Failure, Mode, Own, Plan, Running, interrupt};
use crate::tasks::{Affinity, Area};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// The longest time that the host may take to clean up, or to end when it has announced that.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time between two checks for an interrupt by the user.
const TURN: Duration = Duration::from_millis(100);
/// The longest time that a command may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(5);

/// Tasks at work in their host; ended and cleaned up when dropped.
pub struct Guest {
    workload: &'static str,
    area: Area,
    channel: Channel,
    host: Process,
    /// True if its tasks start a command again and again.
    is_command: bool,
    /// True if each task ends with the command that it has started.
    is_last: bool,
    /// The host's current stage.
    stage: &'static str,
}

/// A shared object's description of itself, if it has one. `name` is the user's name
/// for it.
pub fn describe(name: &str, object: &Path) -> Result<Option<String>, Failure> {
    let setting = Setting {
        body: &Body::Object(object.to_owned()),
        tasks: 1,
        threads: false,
        affinity: Affinity::None,
    };
    let (_area, channel, mut host) = host(&setting)?;
    loop {
        match channel.receive(Some(TURN), None) {
            Received::Packet(packet) if packet.kind == Kind::Loaded => {
                return Ok(Some(packet.text).filter(|text| !text.is_empty()));
            }
            Received::Packet(refusal) => {
                let why = format!("{name}: {}", refusal.text);
                return Err(Failure::Unavailable(why));
            }
            Received::Nothing => {
                if let Some(signal) = interrupt::pending() {
                    return Err(Failure::Interrupted(signal));
                }
            }
            Received::Closed => {
                let status = host.ended(PATIENCE).unwrap_or_default();
                let why = format!("{name}: loading it ends the process ({status})");
                return Err(Failure::Unavailable(why));
            }
        }
    }
}

/// Starts a host that runs the tasks of `plan`, whose workload is `own`.
pub fn start(plan: &Plan, own: &'static Own, affinity: Affinity) -> Result<Guest, Failure> {
    let threads = plan.mode == Mode::Threads;
    if threads && matches!(own.body, Body::Command(_)) {
        let why = "--command conflicts with --threads: commands run in processes";
        return Err(Failure::Unavailable(why.into()));
    }
    let (area, channel, host) = host(&Setting {
        body: &own.body,
        tasks: plan.tasks,
        threads,
        affinity,
    })?;
    let mut guest = Guest {
        workload: &own.name,
        area,
        channel,
        host,
        is_command: matches!(own.body, Body::Command(_)),
        is_last: false,
        stage: "loading it",
    };
    guest.reach(Kind::Loaded)?;
    guest.channel.send(&Packet::new(Kind::Begin, ""));
    guest.stage = "testcase_prepare";
    guest.reach(Kind::Prepared)?;
    guest.stage = "starting its tasks";
    guest.reach(Kind::Running)?;
    guest.stage = "running";
    Ok(guest)
}

fn host(setting: &Setting<'_>) -> Result<(Area, Channel, Process), Failure> {
    let (area, file) = Area::with_file(setting.tasks).map_err(Failure::start("shared memory"))?;
    let (ours, theirs) = Channel::pair().map_err(Failure::start("socket"))?;
    let host = Process::start(setting, &theirs, &file)
        .map_err(Failure::start("starting /proc/self/exe as host process"))?;
    Ok((area, ours, host))
}

impl Guest {
    /// Waits until the host says `kind`, or the user interrupts.
    fn reach(&mut self, kind: Kind) -> Result<(), Failure> {
        while interrupt::pending().is_none() {
            match self.channel.receive(Some(TURN), None) {
                Received::Packet(packet) if packet.kind == kind => return Ok(()),
                Received::Packet(packet) => return Err(self.failure(packet)),
                Received::Nothing => {}
                Received::Closed => {
                    let status = self.host.ended(PATIENCE);
                    return Err(self.gone(status));
                }
            }
        }
        Ok(())
    }

    /// Has no task start its command again.
    pub fn repeat_no_more(&mut self) {
        self.is_last = true;
        let slots = self.area.slots().iter();
        slots.for_each(|slot| slot.counter.stop());
    }

    /// Asks the commands that run to end, and waits for that for a while.
    pub fn terminate(&self) {
        for command in self.commands() {
            // SAFETY: a task's child, or one that has just ended; no memory is involved.
            unsafe { libc::kill(command, libc::SIGTERM) };
        }
        let deadline = Instant::now() + GRACE;
        while !self.commands().is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The processes that tasks have started and wait for.
    fn commands(&self) -> Vec<i32> {
        let tasks = children(self.host.id()).into_iter();
        let commands = tasks.flat_map(children);
        commands.filter_map(|pid| pid.try_into().ok()).collect()
    }

    /// The failure that an unexpected packet means.
    fn failure(&mut self, packet: Packet) -> Failure {
        let (workload, task) = (self.workload, packet.task as usize);
        let own = |task, why| Failure::Own {
            workload,
            task,
            why,
        };
        let status = ExitStatus::from_raw(packet.status);
        match packet.kind {
            Kind::Ended => Failure::Died {
                workload,
                task,
                status: Some(status),
            },
            Kind::Ending => Failure::Died {
                workload,
                task,
                status: self.host.ended(PATIENCE),
            },
            Kind::Returned => {
                let why = "testcase returned; it must run until it is killed";
                own(Some(task), why.into())
            }
            Kind::Failed if packet.text.is_empty() => own(Some(task), status.to_string()),
            Kind::Failed => own(Some(task), format!("{status}: {}", packet.text)),
            _ => own(None, format!("{}: {}", self.stage, packet.text)),
        }
    }

    fn gone(&self, status: Option<ExitStatus>) -> Failure {
        let why = match status {
            Some(status) => format!("{}: the process ended: {status}", self.stage),
            None => format!("{}: the process does not respond", self.stage),
        };
        Failure::Own {
            workload: self.workload,
            task: None,
            why,
        }
    }

    /// Has the host end the tasks and clean up, and waits for that.
    fn finish(&mut self) -> Result<(), Failure> {
        self.channel.send(&Packet::new(Kind::End, ""));
        self.stage = "testcase_cleanup";
        match self.host.ended(PATIENCE) {
            Some(status) if status.success() => Ok(()),
            status => Err(self.gone(status)),
        }
    }
}

impl Running for Guest {
    fn counts(&self, into: &mut [u64]) {
        self.area.counts(into);
    }

    fn check(&mut self) -> Result<(), Failure> {
        // Asked first: then all it had to say is there.
        let ended = self.host.ended(Duration::ZERO);
        match (self.channel.receive(Some(Duration::ZERO), None), ended) {
            (Received::Packet(Packet { kind, .. }), _)
                if self.is_last && matches!(kind, Kind::Returned | Kind::Ended) =>
            {
                Ok(())
            }
            (Received::Packet(packet), _) => Err(self.failure(packet)),
            (_, Some(status)) => Err(self.gone(Some(status))),
            _ => Ok(()),
        }
    }

    fn pids(&self) -> Vec<u32> {
        vec![self.host.id()]
    }

    /// The host's thread that waits for the end, and the tasks that start commands and wait for
    /// them.
    fn drivers(&self) -> Vec<u32> {
        let host = self.host.id();
        let tasks = self.is_command.then(|| children(host));
        tasks.into_iter().flatten().chain([host]).collect()
    }

    fn stop(mut self: Box<Self>) -> Result<(), Failure> {
        self.check()?;
        self.finish()
    }
}

/// The children of a process of one thread; none if it is gone.
fn children(pid: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let list = list.unwrap_or_default();
    let numbers = list.split_whitespace();
    numbers.filter_map(|number| number.parse().ok()).collect()
}

impl Drop for Guest {
    fn drop(&mut self) {
        // Without effect if the host is gone; a failure to clean up matters less than
        // the reason why there is no measurement.
        let _ = self.finish();
    }
}
