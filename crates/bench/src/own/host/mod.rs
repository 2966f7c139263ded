//! The process in which a workload of the user's own runs (`scalevm host`).
//!
//! It loads the test case, prepares it, starts the tasks behind a gate, waits, and on
//! command ends the tasks and cleans up. Until it starts tasks that are threads it has
//! one thread, like the process from which will-it-scale forks its tasks.

mod death;
mod new_task;
mod processes;
mod repeat;
mod testcase;
mod threads;

use super::channel::{Channel, Kind, Packet, Received};
use super::process::Setting;
use crate::harness::{Body, say};
use crate::tasks::{Area, Gate, Slot, places};
use repeat::Repeat;
use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;
use testcase::Testcase;

/// The values that the host inherits from the process that started it.
pub struct Inherited {
    /// The number of that process.
    pub parent: i32,
    /// Descriptor of the channel to it.
    pub channel: RawFd,
    /// Descriptor of the tasks' counters.
    pub area: RawFd,
}

/// Does all of it, and ends the process.
pub fn run(setting: &Setting<'_>, from: &Inherited) -> ! {
    // The runtime ignores it, and tasks would inherit that.
    // SAFETY: no handler is involved, and no other thread runs yet.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    if death::follow(from.parent).is_err() {
        say(format_args!("scalevm: `host` is started by scalevm itself"));
        std::process::exit(2);
    }
    let channel = Channel::inherited(inherited(from.channel));
    // Lives as long as the process: so do the tasks.
    let channel: &'static Channel = Box::leak(Box::new(channel));
    let code = match serve(setting, from.area, channel) {
        Ok(()) => 0,
        Err(packet) => {
            channel.send(&packet);
            1
        }
    };
    // As at the end of a C program, for the test case's exit handlers and output.
    // SAFETY: no destructor of Rust's is needed any more.
    unsafe { libc::exit(code) }
}

/// The tasks' work.
enum Work {
    Testcase(Testcase),
    Repeat(Repeat),
}

/// All that the tasks need.
struct Host {
    work: Work,
    area: Area,
    gate: Gate,
    channel: &'static Channel,
}

fn serve(setting: &Setting<'_>, area: RawFd, channel: &'static Channel) -> Result<(), Packet> {
    name_process(setting.body);
    let work = Work::load(setting.body).map_err(|why| Packet::new(Kind::Refused, why))?;
    channel.send(&Packet::new(Kind::Loaded, work.description()));
    if !is_wanted(channel) {
        return Ok(());
    }
    let area = inherited(area);
    let host: &'static Host = Box::leak(Box::new(Host {
        work,
        area: Area::of_file(setting.tasks, &area).map_err(broken("shared memory"))?,
        gate: Gate::new().map_err(broken("pipe"))?,
        channel,
    }));
    drop(area);
    let places = places::places(setting.affinity).map_err(broken("CPU affinity"))?;
    if setting.threads {
        threads::name_the_dying(channel);
    }
    new_task::choose(setting.threads);
    host.work.prepare(setting.tasks);
    channel.send(&Packet::new(Kind::Prepared, ""));
    if setting.threads {
        threads::run(host, &places).map_err(broken("pthread_create"))?
    } else {
        processes::run(host, &places).map_err(broken("fork"))?
    }
    host.work.cleanup();
    if setting.threads {
        threads::leave()
    } else {
        Ok(())
    }
}

/// Returns true if scalevm wants the tasks to run; it goes away if it only wanted the test case's
/// description.
fn is_wanted(channel: &Channel) -> bool {
    loop {
        match channel.receive(None, None) {
            Received::Packet(packet) => return packet.kind == Kind::Begin,
            Received::Nothing => {}
            Received::Closed => return false,
        }
    }
}

fn broken(what: &'static str) -> impl FnOnce(io::Error) -> Packet {
    move |error| Packet::new(Kind::Broken, format!("{what}: {error}"))
}

/// Gives the process the workload's name, for process lists.
fn name_process(body: &Body) {
    let stem = match body {
        Body::Object(file) => file.file_stem(),
        Body::Command(_) => None,
    };
    let stem = stem.unwrap_or(OsStr::new("scalevm"));
    if let Ok(name) = CString::new(stem.as_bytes()) {
        // SAFETY: a string that ends in zero; a long one is cut.
        unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    }
}

/// Takes over a descriptor, and keeps it from programs that a test case executes.
fn inherited(number: RawFd) -> OwnedFd {
    // SAFETY: the parent opened it for this process, which takes it over once.
    unsafe {
        libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC);
        OwnedFd::from_raw_fd(number)
    }
}

impl Work {
    fn load(body: &Body) -> Result<Self, String> {
        match body {
            Body::Object(file) => Testcase::load(file).map(Work::Testcase),
            Body::Command(text) => Ok(Work::Repeat(Repeat::new(text))),
        }
    }

    fn description(&self) -> &str {
        match self {
            Work::Testcase(testcase) => &testcase.description,
            Work::Repeat(_) => "",
        }
    }

    fn prepare(&self, tasks: usize) {
        if let Work::Testcase(testcase) = self {
            testcase.prepare(tasks);
        }
        // Otherwise each task would write the buffers' contents again.
        // SAFETY: all streams.
        unsafe { libc::fflush(std::ptr::null_mut()) };
    }

    fn cleanup(&self) {
        if let Work::Testcase(testcase) = self {
            testcase.cleanup();
        }
    }
}

impl Host {
    /// A task's work. If it ends, that is reported.
    fn work(&self, task: usize) {
        let slot = &self.area.slots()[task];
        slot.ready();
        self.gate.pass();
        let mut packet = match &self.work {
            Work::Testcase(testcase) => {
                testcase.run(&slot.counter, task);
                Packet::new(Kind::Returned, "")
            }
            Work::Repeat(repeat) => repeat.run(&slot.counter),
        };
        packet.task = task as u32;
        self.channel.send(&packet);
    }

    /// Waits until all tasks are at the gate, or `lost` returns true as one never will be; then
    /// opens it.
    fn open(&self, mut lost: impl FnMut() -> bool) -> io::Result<()> {
        while !self.area.slots().iter().all(Slot::is_ready) && !lost() {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.gate.open()?;
        self.channel.send(&Packet::new(Kind::Running, ""));
        Ok(())
    }
}
