//! The function that will-it-scale's harness offers its test cases: `new_task`.

use super::threads::Function;
use super::{death, threads};
use crate::harness::say;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// True if tasks are threads.
static THREADS: AtomicBool = AtomicBool::new(false);

/// Before a test case runs: chooses threads or processes as its tasks.
pub fn choose(threads: bool) {
    THREADS.store(threads, Relaxed);
    // The symbol is there for shared objects; the linker keeps used symbols.
    std::hint::black_box(new_task as *const ());
}

/// Starts an additional task for the calling one: a process or a thread, as the others are. It is
/// placed where the caller is and ends with it.
///
/// # Safety
/// `function` may be called with `argument` in that task.
#[unsafe(no_mangle)]
unsafe extern "C" fn new_task(function: Function, argument: *mut c_void) {
    let started = if THREADS.load(Relaxed) {
        threads::spawn_beside(function, argument)
    } else {
        // SAFETY: the caller's promise.
        fork(|| unsafe {
            function(argument);
        })
    };
    if let Err(error) = started {
        say(format_args!("new_task: {error}"));
        // SAFETY: the caller has no way to learn of it: the task ends, which is reported.
        unsafe { libc::exit(1) };
    }
}

/// Runs `work` in a child, which ends with it.
fn fork(work: impl FnOnce()) -> std::io::Result<()> {
    // SAFETY: no arguments in memory.
    let parent = unsafe { libc::getpid() };
    // SAFETY: test cases fork from processes of one thread; the child ends here.
    match unsafe { libc::fork() } {
        0 => {
            death::follow_in_child(parent);
            work();
            // SAFETY: ends the process.
            unsafe { libc::_exit(0) }
        }
        pid if pid < 0 => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    }
}
