//! Ctrl-C: finish early and keep what was measured.
//!
//! The first SIGINT or SIGTERM is noted and cuts the running sample short; a second
//! one ends the command at once (the kernel then ends its child processes, see
//! [`crate::os`]).

use super::Failure;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

static PENDING: OnceLock<Arc<AtomicUsize>> = OnceLock::new();

/// The longest nap: how late a signal that arrives between the question and the
/// nap is seen.
const NAP: Duration = Duration::from_secs(1);

/// Starts listening.
pub fn install() -> io::Result<()> {
    let pending = PENDING.get_or_init(Arc::default);
    let armed = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag down and raises it.
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&armed))?;
        flag::register(signal, Arc::clone(&armed))?;
        flag::register_usize(signal, Arc::clone(pending), signal as usize)?;
    }
    Ok(())
}

/// The signal that asks the command to finish, if one has come.
pub fn pending() -> Option<u8> {
    match PENDING.get()?.load(Relaxed) {
        0 => None,
        signal => u8::try_from(signal).ok(),
    }
}

/// An error if a signal has come.
pub fn check() -> Result<(), Failure> {
    pending().map_or(Ok(()), |signal| Err(Failure::Interrupted(signal)))
}

/// Sleeps for `span`, or until a signal asks to finish.
pub fn sleep(span: Duration) {
    let end = Instant::now() + span;
    while pending().is_none() {
        let left = end.saturating_duration_since(Instant::now()).min(NAP);
        if left.is_zero() {
            return;
        }
        let request = libc::timespec {
            tv_sec: left.as_secs() as libc::time_t,
            tv_nsec: left.subsec_nanos().into(),
        };
        // std's sleep goes back to sleep after a signal; this one returns.
        // SAFETY: `request` is a valid time; the remainder is not asked for.
        unsafe { libc::nanosleep(&request, std::ptr::null_mut()) };
    }
}
