//! Tasks as threads of the host.
//!
//! They are libc's, as will-it-scale's are, so that stacks have the usual size. A test
//! case never returns, so at the end its threads are stopped where they are; cancelling
//! them would unwind through frames that do not expect it.

use super::Host;
use crate::own::channel::{Channel, Kind, Received, tell};
use crate::tasks::{Mask, born_at};
use stats::environment::numbers_are_ours;
use std::cell::Cell;
use std::ffi::c_void;
use std::io;
use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

thread_local! {
    /// The task that this thread is, or belongs to.
    static TASK: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The channel, for handlers.
static CHANNEL: AtomicI32 = AtomicI32::new(-1);
/// The number of threads that are stopped.
static STOPPED: AtomicUsize = AtomicUsize::new(0);
/// The longest time that threads may take to stop; one that has blocked all signals never does.
const PATIENCE: Duration = Duration::from_secs(1);

/// Creates a thread for each task, and stops all when told to.
pub fn run(host: &'static Host, places: &[Mask]) -> io::Result<()> {
    for number in 0..host.area.slots().len() {
        let task = Task { host, number };
        born_at(places, number, || spawn(begin, Box::new(task)))?;
    }
    host.open(|| false)?;
    while host.channel.receive(None, None) == Received::Nothing {}
    stop_others()
}

/// The arguments of a thread that is a task.
struct Task {
    host: &'static Host,
    number: usize,
}

extern "C" fn begin(task: *mut c_void) -> *mut c_void {
    // SAFETY: `run` gives it such a thing.
    let task = unsafe { &*task.cast::<Task>() };
    TASK.set(Some(task.number));
    task.host.work(task.number);
    ptr::null_mut()
}

/// The function that will-it-scale's test cases give a new task.
pub type Function = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

/// Starts a thread that belongs to the same task as the one that calls.
pub fn spawn_beside(function: Function, argument: *mut c_void) -> io::Result<()> {
    let beside = Beside {
        function,
        argument,
        task: TASK.get(),
    };
    spawn(begin_beside, Box::new(beside))
}

/// The arguments of an additional thread of a task.
struct Beside {
    function: Function,
    argument: *mut c_void,
    task: Option<usize>,
}

extern "C" fn begin_beside(beside: *mut c_void) -> *mut c_void {
    // SAFETY: `spawn_beside` gives it such a thing.
    let beside = unsafe { &*beside.cast::<Beside>() };
    TASK.set(beside.task);
    // SAFETY: the caller of `new_task` promises that.
    unsafe { (beside.function)(beside.argument) }
}

/// Starts a thread. It must not free its arguments: the first use of malloc or `free`
/// gives a thread a heap of its own, and the kernel then puts a test case's mappings
/// next to it; the test would measure how such neighbours merge.
fn spawn<T: 'static>(
    begin: extern "C" fn(*mut c_void) -> *mut c_void,
    given: Box<T>,
) -> io::Result<()> {
    // SAFETY: a zeroed pthread_t is overwritten; the arguments live as long as the process.
    let error = unsafe {
        let mut thread: libc::pthread_t = std::mem::zeroed();
        let given = ptr::from_mut(Box::leak(given)).cast();
        libc::pthread_create(&mut thread, ptr::null(), begin, given)
    };
    match error {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Makes a task that aborts, faults or exits report its number first: it takes the whole process
/// with it.
pub fn name_the_dying(channel: &Channel) {
    CHANNEL.store(channel.number(), Relaxed);
    let signals = [
        libc::SIGABRT,
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGILL,
        libc::SIGFPE,
        libc::SIGTRAP,
    ];
    for signal in signals {
        // Back to the default first, which then ends the process.
        handle(signal, dying, libc::SA_RESETHAND);
    }
    // SAFETY: the function lives as long as the process.
    unsafe { libc::atexit(leaving) };
}

fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int), flags: libc::c_int) {
    // SAFETY: a zeroed action is valid; the handlers make only calls that are safe in one.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as libc::sighandler_t;
        action.sa_flags = flags;
        libc::sigfillset(&mut action.sa_mask);
        libc::sigaction(signal, &action, ptr::null_mut());
    }
}

extern "C" fn dying(signal: libc::c_int) {
    leaving();
    // Delivered when this returns, also if nothing that happens again has raised it.
    // SAFETY: may be called in a handler.
    unsafe { libc::raise(signal) };
}

/// Runs in a handler, or in `exit`.
extern "C" fn leaving() {
    if let Some(task) = TASK.get() {
        let channel: RawFd = CHANNEL.load(Relaxed);
        tell(channel, Kind::Ending, task, 0);
    }
}

/// Stops all other threads: those of the tasks, and theirs. Locks that they hold stay held, so
/// nothing is allocated here once the first of them has stopped.
fn stop_others() -> io::Result<()> {
    extern "C" fn stop(_: libc::c_int) {
        STOPPED.fetch_add(1, Relaxed);
        loop {
            // SAFETY: waits; all signals are blocked in this handler.
            unsafe { libc::pause() };
        }
    }
    let signal = libc::SIGRTMAX() - 1;
    handle(signal, stop, 0);
    let others = others()?;
    // SAFETY: no arguments in memory.
    let process = unsafe { libc::getpid() };
    let mut expected = 0;
    for &thread in &others {
        // SAFETY: a thread of this process; if it has ended that is said.
        let sent = unsafe { libc::syscall(libc::SYS_tgkill, process, thread, signal) };
        expected += usize::from(sent == 0);
    }
    let deadline = Instant::now() + PATIENCE;
    while STOPPED.load(Relaxed) < expected && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::mem::forget(others);
    Ok(())
}

/// Ends the process, whose other threads stand still: not as `exit` does, which would wait
/// for a stream that one of them holds.
pub fn leave() -> ! {
    unsafe extern "C" {
        static stdout: *mut libc::FILE;
        fn ftrylockfile(stream: *mut libc::FILE) -> libc::c_int;
    }
    // SAFETY: libc's stream, which this thread then has for itself.
    unsafe {
        if ftrylockfile(stdout) == 0 {
            libc::fflush(stdout);
        }
        libc::_exit(0)
    }
}

/// All threads of this process but this one.
fn others() -> io::Result<Vec<libc::pid_t>> {
    // SAFETY: no arguments in memory.
    let own = unsafe { libc::gettid() };
    numbers_are_ours()?;
    let names = std::fs::read_dir("/proc/self/task")?;
    let number =
        |entry: io::Result<std::fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    Ok(names
        .filter_map(number)
        .filter(|&thread| thread != own)
        .collect())
}
