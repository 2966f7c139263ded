//! Processes and threads that a task starts itself.

use super::{failed, files, ipc};
use crate::harness::Mode;
use crate::os::{compiler, processes::Exit};
use std::ffi::CStr;
use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr;
use std::thread::{self, JoinHandle};
use workloads::{Call, Child, Descriptor, Error, Files, Forked, LAST};

/// Exit code of a child that could not become the program, as in a shell.
const NO_PROGRAM: libc::c_int = 127;
/// Exit code of a copy whose life failed, and of one that unwound.
const FAILED: libc::c_int = 1;
const PANICKED: libc::c_int = 101;
/// Exit code of an echo that could not read or write.
const BROKEN: u8 = 1;

/// Threads that a task has started and not waited for.
#[derive(Default)]
pub struct Threads(Vec<Option<JoinHandle<u8>>>);

impl Threads {
    /// Adds a thread that has been started.
    pub fn add(&mut self, thread: JoinHandle<u8>) -> Child {
        self.0.push(Some(thread));
        Child::Thread(self.0.len() - 1)
    }
}

/// Forks a child that only does `then`. The program is the one that
/// [`Forked::Execs`] executes.
///
/// The task may be one of several threads; the child has only this one, and locks that
/// others held stay locked. So it makes system calls and nothing else.
pub fn fork(then: Forked, program: Option<&CStr>) -> Result<Child, Error> {
    // SAFETY: the child leaves by `_exit` or `execve` on each way through `become_other`.
    match unsafe { libc::fork() } {
        0 => become_other(then, program),
        -1 => Err(failed(Call::Fork)),
        pid => Ok(Child::Process(pid)),
    }
}

fn become_other(then: Forked, program: Option<&CStr>) -> ! {
    let code = match (then, program) {
        (Forked::Exits(code), _) => libc::c_int::from(code),
        (Forked::Execs, Some(program)) => {
            let arguments = [program.as_ptr(), ptr::null()];
            let environment = [ptr::null()];
            // SAFETY: strings that end in zero bytes, lists that end in a null.
            unsafe { libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
            NO_PROGRAM
        }
        (Forked::Execs, None) => NO_PROGRAM,
    };
    // SAFETY: runs nothing of the parent's.
    unsafe { libc::_exit(code) }
}

/// Forks a child that becomes the compiler of `unit`, with these descriptors.
pub fn start_compiler(unit: u64, output: &File, inputs: &Files<File>) -> Result<Child, Error> {
    // All that the child needs is made before the fork: as in `fork`, it makes system calls only.
    let inputs: Vec<RawFd> = inputs.iter().map(File::as_raw_fd).collect();
    let arguments = compiler::arguments(unit, output.as_raw_fd(), &inputs);
    let mut pointers: Vec<_> = arguments.iter().map(|word| word.as_ptr()).collect();
    pointers.push(ptr::null());
    // SAFETY: the child leaves by `_exit` or `execve` on each way through `become_compiler`.
    match unsafe { libc::fork() } {
        0 => become_compiler(&pointers, output.as_raw_fd(), &inputs),
        -1 => Err(failed(Call::Fork)),
        pid => Ok(Child::Process(pid)),
    }
}

fn become_compiler(arguments: &[*const libc::c_char], output: RawFd, inputs: &[RawFd]) -> ! {
    let environment = [ptr::null()];
    // SAFETY: plain system calls; strings that end in zero bytes, lists that end in a null.
    unsafe {
        for file in inputs {
            libc::fcntl(*file, libc::F_SETFD, 0);
        }
        libc::fcntl(output, libc::F_SETFD, 0);
        // This very program, also if its file has been replaced meanwhile.
        let program = c"/proc/self/exe".as_ptr();
        libc::execve(program, arguments.as_ptr(), environment.as_ptr());
        libc::_exit(NO_PROGRAM)
    }
}

/// Forks a child that does `life` in its copy of the memory, and ends, see [`start_process`].
pub fn start_copy(life: impl FnOnce() -> Result<(), Error>) -> Result<Child, Error> {
    start_process(|| life().map_or(FAILED, |()| 0))
}

/// Forks a child that does `life`, and ends with the code that this returns. It may allocate:
/// libc's `fork` takes care of the allocator's locks. It must not use locks that other threads
/// hold.
pub fn start_process(life: impl FnOnce() -> libc::c_int) -> Result<Child, Error> {
    // SAFETY: the child leaves by `_exit`, also if it unwinds.
    match unsafe { libc::fork() } {
        0 => {
            let mut exit = Exit(PANICKED);
            exit.0 = life();
            drop(exit);
            unreachable!("the child has ended")
        }
        -1 => Err(failed(Call::Fork)),
        pid => Ok(Child::Process(pid)),
    }
}

/// Starts an echo: a thread if tasks are threads, else a process. Either is born where the
/// caller runs and may run nowhere else.
pub fn start_echo(
    mode: Mode,
    threads: &mut Threads,
    from: Descriptor,
    to: Descriptor,
) -> Result<Child, Error> {
    match mode {
        Mode::Processes => echo_process(from, to),
        Mode::Threads => {
            let thread = thread::Builder::new().name("partner".into());
            let thread = thread
                .spawn(move || {
                    spare_cancellation();
                    echo(from, to)
                })
                .map_err(|error| {
                    Error::Failed(Call::Partner, error.raw_os_error().unwrap_or(libc::EAGAIN))
                })?;
            Ok(threads.add(thread))
        }
    }
}

fn echo_process(from: Descriptor, to: Descriptor) -> Result<Child, Error> {
    // SAFETY: no arguments in memory.
    let parent = unsafe { libc::getpid() };
    // SAFETY: the child makes system calls only, and leaves by `_exit`.
    let pid = unsafe { libc::fork() };
    match pid {
        // It goes when its parent is killed: it has the other ends open as well, and would
        // wait for itself.
        // SAFETY: plain system calls.
        0 => unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if libc::getppid() != parent {
                libc::_exit(0);
            }
            libc::_exit(libc::c_int::from(echo(from, to)))
        },
        -1 => Err(failed(Call::Partner)),
        pid => {
            // The child's alone from now on, so that its death is noticed.
            files::close(from)?;
            files::close(to)?;
            Ok(Child::Process(pid))
        }
    }
}

/// Writes each byte it reads, until the last one; returns its exit code. Allocates nothing.
fn echo(from: Descriptor, to: Descriptor) -> u8 {
    let mut byte = [0];
    let code = loop {
        match ipc::read(from, &mut byte) {
            Ok(1) if byte[0] == LAST => break 0,
            Ok(1) => {}
            _ => break BROKEN,
        }
        if ipc::write(to, &byte) != Ok(1) {
            break BROKEN;
        }
    };
    match (files::close(from), files::close(to)) {
        (Ok(()), Ok(())) => code,
        _ => BROKEN,
    }
}

/// Waits for exactly this child, and returns its exit code; a signal counts as 128 more,
/// as in a shell.
pub fn wait(child: Child, threads: &mut Threads) -> Result<u8, Error> {
    match child {
        Child::Process(pid) => reap(pid),
        Child::Thread(number) => {
            let thread = threads.0.get_mut(number).and_then(Option::take);
            let thread = thread.ok_or(Error::Failed(Call::Wait, libc::ECHILD))?;
            // A panic has been printed by the thread.
            Ok(thread.join().unwrap_or(BROKEN))
        }
    }
}

fn reap(pid: libc::pid_t) -> Result<u8, Error> {
    let mut status = 0;
    // SAFETY: room for the status.
    while unsafe { libc::waitpid(pid, &mut status, 0) } != pid {
        match failed(Call::Wait) {
            Error::Failed(_, libc::EINTR) => {}
            error => return Err(error),
        }
    }
    let code = if libc::WIFEXITED(status) {
        libc::WEXITSTATUS(status)
    } else {
        128 + libc::WTERMSIG(status)
    };
    Ok(code as u8) // both fit: codes are a byte, signals end at 64
}

/// Spares the calling thread the cost of cancellation.
///
/// In a process with several threads, glibc makes a thread cancellable before each call
/// that may block, and not so after it: two atomic instructions, a tenth of a poll or more.
/// It leaves them out if the thread always is, as will-it-scale's threads are. No thread
/// here is ever cancelled, so this has no other effect.
pub fn spare_cancellation() {
    unsafe extern "C" {
        fn pthread_setcanceltype(kind: libc::c_int, old: *mut libc::c_int) -> libc::c_int;
    }
    const ASYNCHRONOUS: libc::c_int = 1; // of glibc and musl
    let mut old = 0;
    // SAFETY: room for the old kind; no thread is ever cancelled. An error would change
    // nothing but the cost.
    unsafe { pthread_setcanceltype(ASYNCHRONOUS, &mut old) };
}
