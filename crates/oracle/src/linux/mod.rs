//! The kernel on which this program runs: Linux, or another that has its calls.
//!
//! Each process of a sequence is a real one, forked as the sequence says; the first is forked from
//! a *keeper*, which is forked from this program and takes no part itself. Commands in shared
//! memory ask a process for one system call or one access; it survives the signals that accesses
//! raise. Mappings are read from `/proc/PID/maps`.
//!
//! Transparent huge pages are switched off for these processes: they would bring in pages that no
//! access has touched.

mod access;
mod area;
mod calls;
mod files;
mod maps;
mod processes;
mod worker;

use crate::address::{Address, HEAP_PAGES, PAGE, Range, WINDOW, WINDOW_PAGES};
use crate::outcome::{Content, Core, Outcome};
use crate::places::Places;
use crate::step::{Call, MapFlag, ProcessId, Step};
use crate::system::{Broken, System};
use area::{Command, Reply, Slot};
use calls::Terms;
use files::Files;
use processes::Processes;
use std::path::Path;
use std::{fs, slice};

/// The kernel, with processes to run sequences in.
///
/// Dropping it ends the processes; they also end when this process does.
pub struct Linux {
    processes: Processes,
    files: Files,
    /// The page-aligned start of a process's heap.
    heap: u64,
    places: Places,
    /// True if memory may be locked without a limit.
    locks: bool,
    /// True if `MAP_NORESERVE` makes a difference.
    reserves: bool,
}

impl Linux {
    /// Starts the keeper. Call it while this program is small: the processes are copies of it.
    ///
    /// # Errors
    /// Something required is not available.
    pub fn new() -> Result<Self, Broken> {
        Linux::with_files(Files::new()?)
    }

    /// Starts the keeper as [`Linux::new`] does, with the sequences' files in `folder`: on a kernel
    /// whose `/proc/PID/maps` names no other files.
    ///
    /// # Errors
    /// Something required is not available.
    pub fn with_files_in(folder: &Path) -> Result<Self, Broken> {
        Linux::with_files(Files::in_folder(folder)?)
    }

    fn with_files(files: Files) -> Result<Self, Broken> {
        let maps = fs::read_to_string("/proc/self/maps");
        let maps = maps.map_err(Broken::host("/proc/self/maps"))?;
        if !maps::is_free(&maps, WINDOW..WINDOW + WINDOW_PAGES * PAGE) {
            return Err(Broken::Own(format!("{WINDOW:#x} is taken in this process")));
        }
        let processes = Processes::new(files.descriptors())?;
        let heap = processes.align_heap()?;
        Ok(Linux {
            processes,
            files,
            heap,
            places: Places::default(),
            locks: may_lock(),
            reserves: !never_overcommits(),
        })
    }

    /// Unmaps everything that the process has.
    fn replace(&mut self, process: ProcessId) -> Result<(), Broken> {
        let call = |number, [a, b]: [u64; 2]| {
            let command = Command::Call(number, [a, b, 0, 0, 0, 0]);
            self.processes.ask(process, command, "replace")
        };
        call(libc::SYS_munlockall, [0, 0])?;
        let end = call(libc::SYS_brk, [self.heap, 0])?;
        if let Reply::Value(end) = end
            && end.cast_unsigned() > self.heap
        {
            // A heap without a mapped page cannot shrink, but it can grow first.
            let more = end.cast_unsigned().next_multiple_of(PAGE) + PAGE;
            call(libc::SYS_brk, [more, 0])?;
            call(libc::SYS_brk, [self.heap, 0])?;
        }
        let heap = self.heap..self.heap + HEAP_PAGES * PAGE;
        let (maps, keeper) = (
            self.processes.maps(process)?,
            self.processes.keepers_maps()?,
        );
        for range in maps::foreign(&maps, &keeper, &heap) {
            call(libc::SYS_munmap, [range.start, range.end - range.start])?;
        }
        self.places.forget(process);
        Ok(())
    }

    fn regions(&self, process: ProcessId, range: Range) -> Result<Outcome, Broken> {
        let first = self.places.resolve(process, range.start);
        let from = first & !(PAGE - 1);
        let to = (first + range.bytes).next_multiple_of(PAGE);
        let start = Address {
            offset: range.start.offset - (first - from),
            ..range.start
        };
        let maps = self.processes.maps(process)?;
        Ok(Outcome::Regions(maps::regions(&maps, from..to, start)))
    }

    /// Makes a system call or an access.
    fn call(&mut self, step: &Step) -> Result<Outcome, Broken> {
        let slot = self.processes.slot(step.process);
        if let Call::Write(transfer, byte) = step.call {
            fill(slot, transfer.bytes as usize, byte);
        }
        let terms = Terms {
            places: &self.places,
            files: &self.files,
            slot,
            process: step.process,
        };
        let Some(command) = terms.command(step) else {
            return Err(Broken::Own(format!("`{step}` is not a call")));
        };
        let reply = self.processes.ask(step.process, command, step)?;
        Ok(self.outcome(step, reply))
    }

    /// Translates the reply to a system call or an access.
    fn outcome(&mut self, step: &Step, reply: Reply) -> Outcome {
        let value = match reply {
            Reply::Signal(libc::SIGBUS) => return Outcome::Bus,
            Reply::Signal(_) => return Outcome::Segv,
            Reply::Value(value) => value,
        };
        if let Call::Load(..) = step.call {
            return Outcome::Value(value.cast_unsigned());
        }
        if (-4095..0).contains(&value) {
            return Outcome::Errno(-value as i32);
        }
        let value = value.cast_unsigned();
        let slot = self.processes.slot(step.process);
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

    /// Supports locking only without a limit, since the effect of a limit depends on the process's
    /// other memory, and `MAP_NORESERVE` only if the kernel honours it, as the model does.
    fn supports(&self, step: &Step) -> bool {
        let unreserved = match step.call {
            Call::Map(map) => map.flags.has(MapFlag::NoReserve),
            _ => false,
        };
        let locks = match step.call {
            Call::Lock(_) | Call::LockOnFault(_) | Call::LockAll(_) => true,
            Call::Map(map) => map.flags.has(MapFlag::Locked),
            Call::Scarce(_) => return false,
            _ => false,
        };
        (self.locks || !locks) && (self.reserves || !unreserved)
    }

    fn reset(&mut self) -> Result<(), Broken> {
        self.processes.begin()?;
        self.places = Places::new(self.heap);
        self.files.clear()
    }

    fn perform(&mut self, step: &Step) -> Result<Outcome, Broken> {
        let process = step.process;
        match step.call {
            Call::Fork(child) => {
                self.processes.fork(process, child)?;
                self.places.fork(process, child);
                Ok(Outcome::Done)
            }
            Call::Exit => {
                self.processes.end(process)?;
                self.places.forget(process);
                Ok(Outcome::Done)
            }
            Call::Replace => self.replace(process).map(|()| Outcome::Done),
            Call::Regions(range) => self.regions(process, range),
            _ => self.call(step),
        }
    }
}

/// The first bytes of a slot's buffer.
fn buffer(slot: &Slot, bytes: usize) -> &[u8] {
    assert!(bytes <= area::BUFFER);
    // SAFETY: within the buffer; the process has replied, so the driver owns the slot until the
    // next command.
    unsafe { slice::from_raw_parts(slot.buffer(), bytes) }
}

fn fill(slot: &Slot, bytes: usize, byte: u8) {
    assert!(bytes <= area::BUFFER);
    // SAFETY: within the buffer; the driver owns the slot until the next command, and asks for none
    // before this returns.
    unsafe { slot.buffer().write_bytes(byte, bytes) };
}

fn dumped(slot: &Slot, pages: u64) -> Vec<Content> {
    let bytes = buffer(slot, (pages * PAGE) as usize);
    let contents = bytes.chunks(PAGE as usize).enumerate();
    let contents = contents.map(|(index, page)| {
        // SAFETY: a dump has at most `DUMP_PAGES` pages, so the index is within the signals; the
        // process has replied, so the driver owns them.
        match i32::from(unsafe { *slot.signals().add(index) }) {
            0 => Content::Bytes(Content::of_page(page)),
            libc::SIGBUS => Content::Bus,
            _ => Content::Segv,
        }
    });
    contents.collect()
}

/// Returns true if a process may lock any amount of memory.
fn may_lock() -> bool {
    // SAFETY: `limit` is a valid structure that the call fills; zeroes are valid for it.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit);
        limit.rlim_cur == libc::RLIM_INFINITY || libc::geteuid() == 0
    }
}

/// Returns true if the kernel never overcommits memory (mode 2).
fn never_overcommits() -> bool {
    let mode = fs::read_to_string("/proc/sys/vm/overcommit_memory");
    mode.is_ok_and(|mode| mode.trim() == "2")
}
