//! Nothing survives scalevm, and nothing of it survives in the host.

use std::io;

/// Undoes inherited and own settings of signals, and from now on ends
/// with `parent`, together with all processes that this one starts.
pub fn follow(parent: libc::pid_t) -> io::Result<()> {
    let last = libc::SIGRTMAX();
    // SAFETY: plain system calls; the handler makes one that is safe in it.
    unsafe {
        // The test case may kill the group it is in, which must not be the user's.
        if libc::getpgrp() != libc::getpid() || libc::getppid() != parent {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        for signal in 1..last {
            libc::signal(signal, libc::SIG_DFL);
        }
        libc::signal(last, kill_all as *const () as libc::sighandler_t);
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
        // Orphans of the tasks become this process's children.
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_PDEATHSIG, last);
        // Between the first question and prctl.
        if libc::getppid() != parent {
            libc::_exit(0);
        }
    }
    Ok(())
}

/// By a child just forked: it dies with `parent`.
pub fn follow_in_child(parent: libc::pid_t) {
    // SAFETY: plain system calls.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != parent {
            libc::_exit(0);
        }
    }
}

/// Handles scalevm's death.
extern "C" fn kill_all(_: libc::c_int) {
    // SAFETY: this process leads the group, see `follow`.
    unsafe { libc::kill(0, libc::SIGKILL) };
}
