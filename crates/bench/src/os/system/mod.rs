//! Linux as a [`System`].

mod children;
mod common;
mod files;
mod ipc;
mod memory;
mod parts;
mod prepared;
mod signals;
mod time;

pub use children::spare_cancellation;
pub use prepared::Prepared;

use crate::harness::Mode;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::ptr;
use std::sync::Arc;
use workloads::replay::{Part, Start, Treatment};
use workloads::{Backing, Call, Child, Daemon, Descriptor, Error, Forked, Program, Prot, System};

/// One task's handle of the kernel.
pub struct Linux {
    page: usize,
    directory: PathBuf,
    mode: Mode,
    task: usize,
    prepared: Arc<Prepared>,
    threads: children::Threads,
    /// This process's smaps, once it is read.
    smaps: Option<File>,
}

impl Linux {
    /// The handle of task 0, whose files lie in `directory`, and which starts tasks of the
    /// kind of `mode`.
    pub fn new(directory: PathBuf, mode: Mode, prepared: Prepared) -> Self {
        Linux {
            page: page_size(),
            directory,
            mode,
            task: 0,
            prepared: Arc::new(prepared),
            threads: children::Threads::default(),
            smaps: None,
        }
    }

    /// The tasks' kind.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// A handle for another task. The prepared files are removed with the last handle.
    pub fn of_task(&self, task: usize) -> Self {
        Linux {
            page: self.page,
            directory: self.directory.clone(),
            mode: self.mode,
            task,
            prepared: Arc::clone(&self.prepared),
            threads: children::Threads::default(),
            smaps: None,
        }
    }
}

impl Linux {
    /// The steps of recorded programs.
    fn steps(&self) -> Result<&parts::Steps, Error> {
        let steps = self.prepared.steps();
        steps.ok_or(Error::Unsupported(Call::Replay))
    }
}

fn page_size() -> usize {
    // SAFETY: no arguments in memory.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(page).expect("every kernel has a page size")
}

/// The error number of the call that has just failed.
fn failed(call: Call) -> Error {
    failed_with(call, &io::Error::last_os_error())
}

fn failed_with(call: Call, error: &io::Error) -> Error {
    Error::Failed(call, error.raw_os_error().unwrap_or(libc::EIO))
}

/// Turns the answer of a call that returns 0 into a result.
#[inline]
fn answered(call: Call, result: libc::c_int) -> Result<(), Error> {
    match result {
        0 => Ok(()),
        _ => Err(failed(call)),
    }
}

impl System for Linux {
    type File = File;

    fn page_size(&self) -> usize {
        self.page
    }

    #[inline]
    fn map(&mut self, len: usize, prot: Prot, backing: Backing<'_, File>) -> Result<usize, Error> {
        memory::map(len, prot, backing)
    }

    #[inline]
    fn unmap(&mut self, start: usize, len: usize) -> Result<(), Error> {
        memory::unmap(start, len)
    }

    #[inline]
    fn protect(&mut self, start: usize, len: usize, prot: Prot) -> Result<(), Error> {
        memory::protect(start, len, prot)
    }

    #[inline]
    fn discard(&mut self, start: usize, len: usize) -> Result<(), Error> {
        memory::discard(start, len)
    }

    fn program_break(&mut self) -> Result<usize, Error> {
        memory::program_break(self.page)
    }

    #[inline]
    fn set_program_break(&mut self, to: usize) -> Result<(), Error> {
        memory::set_program_break(to)
    }

    fn file(&mut self, len: usize) -> Result<File, Error> {
        files::unnamed(&self.directory, len)
    }

    #[inline]
    fn write(&mut self, address: usize, value: u8) -> Result<(), Error> {
        // SAFETY: the workload writes only where it has mapped for writing.
        unsafe { ptr::with_exposed_provenance_mut::<u8>(address).write_volatile(value) };
        Ok(())
    }

    #[inline]
    fn read(&mut self, address: usize) -> Result<u8, Error> {
        // SAFETY: the workload reads only where it has mapped for reading.
        Ok(unsafe { ptr::with_exposed_provenance::<u8>(address).read_volatile() })
    }

    #[inline]
    fn remap(&mut self, start: usize, len: usize, new_len: usize) -> Result<usize, Error> {
        memory::remap(start, len, new_len)
    }

    fn map_over(
        &mut self,
        start: usize,
        len: usize,
        prot: Prot,
        backing: Backing<'_, File>,
    ) -> Result<(), Error> {
        memory::map_over(start, len, prot, backing)
    }

    fn treat(&mut self, start: usize, len: usize, how: Treatment) -> Result<(), Error> {
        parts::treat(start, len, how)
    }

    #[inline]
    fn page_out(&mut self, start: usize, len: usize) -> Result<(), Error> {
        memory::page_out(start, len)
    }

    fn scan(&mut self) -> Result<bool, Error> {
        files::scan(&mut self.smaps)
    }

    fn descriptor(&mut self, file: &File) -> Result<Descriptor, Error> {
        Ok(Descriptor(file.as_raw_fd()))
    }

    #[inline]
    fn open(&mut self) -> Result<Descriptor, Error> {
        let name = self.prepared.name(self.task);
        files::open(name.ok_or(Error::Failed(Call::Open, libc::ENOENT))?)
    }

    #[inline]
    fn poll_readable(&mut self, from: &[Descriptor]) -> Result<u64, Error> {
        files::poll_readable(from)
    }

    #[inline]
    fn futex_wait(&mut self, address: usize, value: u32) -> Result<bool, Error> {
        ipc::futex_wait(address, value)
    }

    fn tasks(&self) -> usize {
        self.prepared.tasks()
    }

    fn companions(&self) -> usize {
        self.mode.companions(self.tasks())
    }

    fn pipe_of(&mut self, task: usize) -> Result<[Descriptor; 2], Error> {
        let pipe = self.prepared.pipe(task);
        pipe.ok_or(Error::Failed(Call::Common, libc::ENOENT))
    }

    fn common_memory(&mut self) -> Result<usize, Error> {
        let memory = self.prepared.memory();
        memory.ok_or(Error::Failed(Call::Common, libc::ENOENT))
    }

    #[inline]
    fn now(&mut self) -> Result<u64, Error> {
        Ok(time::now())
    }

    fn sleep_until(&mut self, time: u64) -> Result<(), Error> {
        time::sleep_until(time)
    }

    #[inline]
    fn close(&mut self, descriptor: Descriptor) -> Result<(), Error> {
        files::close(descriptor)
    }

    #[inline]
    fn lock_record(&mut self, file: Descriptor) -> Result<(), Error> {
        files::set_lock(file, libc::F_WRLCK)
    }

    #[inline]
    fn unlock_record(&mut self, file: Descriptor) -> Result<(), Error> {
        files::set_lock(file, libc::F_UNLCK)
    }

    #[inline]
    fn poll_writable(&mut self, descriptor: Descriptor) -> Result<bool, Error> {
        files::poll_writable(descriptor)
    }

    fn pipe(&mut self) -> Result<[Descriptor; 2], Error> {
        ipc::pipe()
    }

    fn socket_pair(&mut self) -> Result<[Descriptor; 2], Error> {
        ipc::socket_pair()
    }

    #[inline]
    fn write_to(&mut self, to: Descriptor, bytes: &[u8]) -> Result<usize, Error> {
        ipc::write(to, bytes)
    }

    #[inline]
    fn read_from(&mut self, from: Descriptor, bytes: &mut [u8]) -> Result<usize, Error> {
        ipc::read(from, bytes)
    }

    #[inline]
    fn futex_wake(&mut self, address: usize, count: u32) -> Result<u32, Error> {
        ipc::futex_wake(address, count)
    }

    fn handle_signals(&mut self) -> Result<(), Error> {
        signals::handle()
    }

    #[inline]
    fn raise(&mut self) -> Result<(), Error> {
        signals::raise()
    }

    #[inline]
    fn signals(&mut self) -> Result<u64, Error> {
        Ok(signals::seen())
    }

    #[inline]
    fn fork(&mut self, then: Forked) -> Result<Child, Error> {
        children::fork(then, self.prepared.program())
    }

    #[inline]
    fn wait(&mut self, child: Child) -> Result<u8, Error> {
        children::wait(child, &mut self.threads)
    }

    fn start(&mut self, program: Program<'_, File>) -> Result<Child, Error> {
        match program {
            Program::Compiler { unit, output } => {
                let inputs = self.prepared.inputs();
                let inputs = inputs.ok_or(Error::Unsupported(Call::Exec))?;
                children::start_compiler(unit, output, inputs)
            }
            Program::Mail(mail) => children::start_copy(|| mail.run(self)),
        }
    }

    fn daemon(&self) -> Option<Daemon> {
        self.prepared.daemon()
    }

    #[inline]
    fn write_file(&mut self, file: &File, at: u64, bytes: &[u8]) -> Result<usize, Error> {
        files::write_at(file, at, bytes)
    }

    #[inline]
    fn read_file(&mut self, file: &File, at: u64, bytes: &mut [u8]) -> Result<usize, Error> {
        files::read_at(file, at, bytes)
    }

    fn number(&self) -> usize {
        self.task
    }

    fn recorded_file(&mut self, number: usize, len: usize) -> Result<File, Error> {
        match self.prepared.recorded_file(number) {
            Some(file) => file
                .try_clone()
                .map_err(|error| failed_with(Call::File, &error)),
            None => self.file(len),
        }
    }

    fn spend(&mut self, nanoseconds: u64) {
        match self.prepared.steps() {
            Some(steps) => steps.spend(nanoseconds),
            None => self.compute(nanoseconds),
        }
    }

    fn begin(&mut self, part: Part<File>, start: Start) -> Result<Child, Error> {
        match start {
            Start::Thread => {
                let system = self.of_task(self.task);
                Ok(self.threads.add(parts::spawn(system, part)?))
            }
            Start::Copy | Start::Fresh => {
                // SAFETY: no arguments in memory.
                let parent = unsafe { libc::getpid() };
                let live = || parts::live(&mut self.of_task(self.task), part, parent);
                children::start_process(live)
            }
        }
    }

    fn clear_steps(&mut self) -> Result<(), Error> {
        self.steps()?.clear(self.task);
        Ok(())
    }

    fn announce_steps(&mut self, part: u32, steps: u32) {
        if let Some(announced) = self.prepared.steps() {
            announced.announce(self.task, part, steps);
        }
    }

    fn await_steps(&mut self, part: u32, steps: u32) -> Result<(), Error> {
        self.steps()?.wait(self.task, part, steps)
    }

    fn start_echo(&mut self, from: Descriptor, to: Descriptor) -> Result<Child, Error> {
        children::start_echo(self.mode, &mut self.threads, from, to)
    }
}
