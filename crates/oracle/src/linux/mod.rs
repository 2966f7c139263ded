//! The kernel of this computer.
//!
//! Each process of a sequence is a real one, forked off its parent as the sequence says; the
//! first off a *keeper*, which is forked off this program and plays no part. They are asked
//! through shared memory ([`area`]) to make one system call or one access, and survive the
//! signals that accesses raise ([`access`]). What is mapped is read from `/proc/PID/maps`.
//!
//! Transparent huge pages are switched off for them, since with them pages come in that nobody has touched.

mod access;
mod area;
mod calls;
mod files;
mod maps;
mod worker;

use crate::address::{Address, HEAP_PAGES, PAGE, Range, WINDOW, WINDOW_PAGES};
use crate::outcome::{Content, Core, Outcome};
use crate::places::Places;
use crate::step::{Call, PROCESSES, ProcessId, Step};
use crate::system::{Broken, System};
use area::{Area, Command, Reply, Slot};
use calls::Terms;
use files::Files;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::slice;
use std::time::{Duration, Instant};

/// How long a call may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often one looks whether the process still lives.
const LOOK: Duration = Duration::from_millis(200);
/// The keeper's slot; those of the processes follow.
const KEEPER: usize = 0;

/// The kernel of this computer, with processes to try it with.
///
/// Dropping it ends them; they also end if this process does.
pub struct Linux {
    area: Area,
    files: Files,
    /// The process that all others are forked off.
    keeper: libc::pid_t,
    /// Where a process's heap begins, page-aligned.
    heap: u64,
    alive: BTreeMap<ProcessId, libc::pid_t>,
    places: Places,
    locks: bool,
}

impl Linux {
    /// Starts the keeper. Best while this program is small: the processes are copies of it.
    ///
    /// # Errors
    /// Something that is needed is not there.
    pub fn new() -> Result<Self, Broken> {
        let maps = fs::read_to_string("/proc/self/maps").map_err(Broken::host("/proc/self/maps"))?;
        if !maps::is_free(&maps, WINDOW..WINDOW + WINDOW_PAGES * PAGE) {
            return Err(Broken::Own(format!("{WINDOW:#x} is taken in this process")));
        }
        let area = Area::new(1 + usize::from(PROCESSES))?;
        let files = Files::new()?;
        let driver = this_process().map_err(Broken::host("pidfd_open"))?;
        let mut kept: Vec<_> = files.descriptors().collect();
        kept.push(driver.as_raw_fd());
        // SAFETY: the child sets itself up by system calls, and serves until it exits.
        let keeper = match unsafe { libc::fork() } {
            0 => {
                worker::settle(&kept);
                worker::serve(&area, KEEPER, driver.as_raw_fd())
            }
            -1 => return Err(Broken::host("fork")(io::Error::last_os_error())),
            keeper => keeper,
        };
        let mut linux = Linux {
            area,
            files,
            keeper,
            heap: 0,
            alive: BTreeMap::new(),
            places: Places::default(),
            locks: may_lock(),
        };
        linux.heap = linux.align_heap()?;
        Ok(linux)
    }

    /// Moves the keeper's break to a page's end: there the sequences' heaps begin.
    fn align_heap(&mut self) -> Result<u64, Broken> {
        let brk = |to| Command::Call(libc::SYS_brk, [to, 0, 0, 0, 0, 0]);
        let now = self.ask(KEEPER, brk(0), "brk")?;
        let Reply::Value(now) = now else {
            return Err(Broken::Own("brk raised a signal".into()));
        };
        let aligned = now.cast_unsigned().next_multiple_of(PAGE);
        match self.ask(KEEPER, brk(aligned), "brk")? {
            Reply::Value(end) if end.cast_unsigned() == aligned => Ok(aligned),
            other => Err(Broken::Own(format!("brk to {aligned:#x}: {other:?}"))),
        }
    }

    /// Asks whoever has the slot, and waits for the answer.
    fn ask(&self, slot: usize, command: Command, step: impl ToString) -> Result<Reply, Broken> {
        let pid = match slot {
            KEEPER => self.keeper,
            slot => self.alive[&(slot as ProcessId - 1)],
        };
        let mailbox = self.area.slot(slot);
        mailbox.ask(command);
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(reply) = mailbox.answer(LOOK) {
                return Ok(reply);
            }
            // SAFETY: signal 0 does nothing.
            let lives = unsafe { libc::kill(pid, 0) } == 0;
            if !lives || Instant::now() >= deadline {
                let process = (slot as u8).saturating_sub(1);
                let step = step.to_string();
                return Err(Broken::Silent { process, step });
            }
        }
    }

    /// Makes the process of slot `parent` fork process `child`.
    fn spawn(&mut self, parent: usize, child: ProcessId) -> Result<(), Broken> {
        let slot = slot_of(child);
        self.area.slot(slot).reset();
        match self.ask(parent, Command::Fork(slot), "fork")? {
            Reply::Value(pid) if pid > 0 => {
                self.alive.insert(child, pid as libc::pid_t);
                Ok(())
            }
            Reply::Value(errno) => {
                let errno = io::Error::from_raw_os_error(-errno as i32);
                Err(Broken::host("fork")(errno))
            }
            Reply::Signal(_) => Err(Broken::Own("fork raised a signal".into())),
        }
    }

    fn end(&mut self, process: ProcessId) -> Result<(), Broken> {
        self.ask(slot_of(process), Command::Exit, "exit")?;
        self.alive.remove(&process);
        self.places.forget(process);
        Ok(())
    }

    /// Takes away all that the process has.
    fn replace(&mut self, process: ProcessId) -> Result<(), Broken> {
        let slot = slot_of(process);
        let call = |number, [a, b]: [u64; 2]| Command::Call(number, [a, b, 0, 0, 0, 0]);
        let brk = |to| self.ask(slot, call(libc::SYS_brk, [to, 0]), "replace");
        self.ask(slot, call(libc::SYS_munlockall, [0, 0]), "replace")?;
        let end = brk(self.heap)?;
        if let Reply::Value(end) = end
            && end.cast_unsigned() > self.heap
        {
            // A heap of which nothing is mapped can not shrink, but then it can grow.
            brk(end.cast_unsigned().next_multiple_of(PAGE) + PAGE)?;
            brk(self.heap)?;
        }
        let heap = self.heap..self.heap + HEAP_PAGES * PAGE;
        let (maps, keeper) = (self.maps(process)?, read_maps(self.keeper)?);
        for range in maps::foreign(&maps, &keeper, &heap) {
            let bytes = range.end - range.start;
            self.ask(slot, call(libc::SYS_munmap, [range.start, bytes]), "replace")?;
        }
        self.places.forget(process);
        Ok(())
    }

    fn maps(&self, process: ProcessId) -> Result<String, Broken> {
        read_maps(self.alive[&process])
    }

    fn regions(&self, process: ProcessId, range: Range) -> Result<Outcome, Broken> {
        let first = self.places.resolve(process, range.start);
        let from = first & !(PAGE - 1);
        let to = (first + range.bytes).next_multiple_of(PAGE);
        let start = Address {
            offset: range.start.offset - (first - from),
            ..range.start
        };
        let maps = self.maps(process)?;
        Ok(Outcome::Regions(maps::regions(&maps, from..to, start)))
    }

    /// What a reply to a system call or an access means.
    fn outcome(&mut self, step: &Step, reply: Reply) -> Outcome {
        let value = match reply {
            Reply::Signal(libc::SIGBUS) => return Outcome::Bus,
            Reply::Signal(_) => return Outcome::Segv,
            Reply::Value(value) => value,
        };
        let slot = self.area.slot(slot_of(step.process));
        if let Call::Load(..) = step.call {
            return Outcome::Value(value.cast_unsigned());
        }
        if (-4095..0).contains(&value) {
            return Outcome::Errno(-value as i32);
        }
        let value = value.cast_unsigned();
        match step.call {
            Call::Map(_) | Call::Remap(_) => self.places.placed(step.process, &step.call, value),
            Call::Break(_) => Outcome::Value(value.wrapping_sub(self.heap)),
            Call::Write(..) => Outcome::Value(value),
            Call::Read(_) => Outcome::Bytes(buffer(slot, value as usize).to_vec()),
            Call::InCore(range) => {
                let pages = range.bytes.div_ceil(PAGE) as usize;
                let core = |byte: &u8| if byte & 1 == 1 { Core::In } else { Core::Out };
                Outcome::Core(buffer(slot, pages).iter().map(core).collect())
            }
            Call::Dump(range) => Outcome::Pages(dumped(slot, range.bytes / PAGE)),
            _ => Outcome::Done,
        }
    }
}

impl System for Linux {
    fn name(&self) -> &str {
        "linux"
    }

    /// Locks only if they are not limited: where a limit cuts in depends on what else the
    /// process has.
    fn supports(&self, step: &Step) -> bool {
        let locks = match step.call {
            Call::Lock(_) | Call::LockOnFault(_) | Call::LockAll(_) => true,
            Call::Map(map) => map.flags.has(crate::step::MapFlag::Locked),
            _ => false,
        };
        self.locks || !locks
    }

    fn reset(&mut self) -> Result<(), Broken> {
        let alive: Vec<_> = self.alive.keys().copied().collect();
        alive.into_iter().try_for_each(|process| self.end(process))?;
        self.files.clear()?;
        self.places = Places::new(self.heap);
        self.spawn(KEEPER, 0)
    }

    fn perform(&mut self, step: &Step) -> Result<Outcome, Broken> {
        let process = step.process;
        match step.call {
            Call::Fork(child) => {
                self.spawn(slot_of(process), child)?;
                self.places.fork(process, child);
                return Ok(Outcome::Done);
            }
            Call::Exit => return self.end(process).map(|()| Outcome::Done),
            Call::Replace => return self.replace(process).map(|()| Outcome::Done),
            Call::Regions(range) => return self.regions(process, range),
            _ => {}
        }
        let slot = self.area.slot(slot_of(process));
        if let Call::Write(transfer, byte) = step.call {
            fill(slot, transfer.bytes as usize, byte);
        }
        let terms = Terms {
            places: &self.places,
            files: &self.files,
            slot,
            process,
        };
        let command = terms.command(step).expect("the others are done above");
        let reply = self.ask(slot_of(process), command, step)?;
        Ok(self.outcome(step, reply))
    }
}

impl Drop for Linux {
    fn drop(&mut self) {
        for pid in self.alive.values().chain([&self.keeper]) {
            // SAFETY: ours; they are gone only if something went wrong, and then their
            // numbers are most likely nobody's.
            unsafe { libc::kill(*pid, libc::SIGKILL) };
        }
        // SAFETY: the keeper is a child of this process that nobody else waits for.
        unsafe { libc::waitpid(self.keeper, std::ptr::null_mut(), 0) };
    }
}

fn slot_of(process: ProcessId) -> usize {
    usize::from(process) + 1
}

/// The first bytes of a slot's buffer.
fn buffer(slot: &Slot, bytes: usize) -> &[u8] {
    assert!(bytes <= area::BUFFER);
    // SAFETY: within the buffer; the process has replied, so it is the driver's until the next
    // command.
    unsafe { slice::from_raw_parts(slot.buffer(), bytes) }
}

fn fill(slot: &Slot, bytes: usize, byte: u8) {
    assert!(bytes <= area::BUFFER);
    // SAFETY: as in `buffer`.
    unsafe { slot.buffer().write_bytes(byte, bytes) };
}

fn dumped(slot: &Slot, pages: u64) -> Vec<Content> {
    let bytes = buffer(slot, (pages * PAGE) as usize);
    let contents = bytes.chunks(PAGE as usize).enumerate();
    let contents = contents.map(|(index, page)| {
        // SAFETY: as in `buffer`; a dump has no more pages than signals.
        match i32::from(unsafe { *slot.signals().add(index) }) {
            0 => Content::Bytes(Content::of_page(page)),
            libc::SIGBUS => Content::Bus,
            _ => Content::Segv,
        }
    });
    contents.collect()
}

fn read_maps(pid: libc::pid_t) -> Result<String, Broken> {
    fs::read_to_string(format!("/proc/{pid}/maps")).map_err(Broken::host("/proc/PID/maps"))
}

/// A descriptor that tells when this process has ended.
fn this_process() -> io::Result<OwnedFd> {
    // SAFETY: no arguments in memory.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0) };
    match descriptor {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: just opened, and nobody else knows of it.
        descriptor => Ok(unsafe { OwnedFd::from_raw_fd(descriptor as i32) }),
    }
}

/// Whether a process may lock as much as it likes.
fn may_lock() -> bool {
    // SAFETY: the limit is valid memory.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit);
        limit.rlim_cur == libc::RLIM_INFINITY || libc::geteuid() == 0
    }
}

