//! A signal that a task sends itself.

use super::{answered, failed_with};
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use workloads::{Call, Error};

const SIGNAL: libc::c_int = libc::SIGUSR1;

thread_local! {
    /// The number of signals that the handler has seen in this thread. Made at compile time and
    /// never destroyed, so that a handler may use it.
    static SEEN: AtomicU64 = const { AtomicU64::new(0) };
}

/// Installs the handler and lets the signal through to this thread. The handler is the
/// process's and stays: another task may be about to need it.
pub fn handle() -> Result<(), Error> {
    extern "C" fn count(_: libc::c_int) {
        SEEN.with(|seen| seen.fetch_add(1, Relaxed));
    }
    // SAFETY: a zeroed `sigaction` has no flags and blocks nothing meanwhile; the handler
    // touches nothing but its thread's number.
    let installed = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = count as *const () as libc::sighandler_t;
        libc::sigaction(SIGNAL, &action, ptr::null_mut())
    };
    answered(Call::Handle, installed)?;
    // Tasks that are threads leave signals to the main thread, except this one.
    // SAFETY: the set is made before it is used; the pointer to the old one may be null.
    let unblocked = unsafe {
        let mut own: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut own);
        libc::sigaddset(&mut own, SIGNAL);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &own, ptr::null_mut())
    };
    match unblocked {
        0 => Ok(()),
        errno => Err(failed_with(
            Call::Handle,
            &io::Error::from_raw_os_error(errno),
        )),
    }
}

#[inline]
pub fn raise() -> Result<(), Error> {
    // SAFETY: the handler is installed.
    answered(Call::Raise, unsafe { libc::raise(SIGNAL) })
}

#[inline]
pub fn seen() -> u64 {
    SEEN.with(|seen| seen.load(Relaxed))
}
