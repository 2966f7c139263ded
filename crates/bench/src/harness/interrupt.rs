//! Ctrl-C: finish early and keep what was measured.
//!
//! The first SIGINT, SIGTERM or SIGHUP is noted and cuts the running sample short; a second
//! one ends the command at once (the kernel then ends its child processes, see
//! [`crate::os`]). A signal within half a second of the first is the first, sent twice: to
//! the process and to its group, as timeout(1), systemd and job schedulers do.

use super::Failure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level;
use std::io;
use std::sync::Once;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The first signal; 0 before there is one.
static PENDING: AtomicI32 = AtomicI32::new(0);
/// When it came, in nanoseconds of the monotonic clock; 0 before.
static FIRST: AtomicU64 = AtomicU64::new(0);
static INSTALLED: Once = Once::new();

/// The time after the first signal within which another one counts as the same.
const SAME: Duration = Duration::from_millis(500);
/// The longest nap: a signal that arrives between the check and the nap is seen this late.
const NAP: Duration = Duration::from_secs(1);

/// Starts listening.
pub fn install() -> io::Result<()> {
    let mut result = Ok(());
    INSTALLED.call_once(|| result = listen());
    result
}

fn listen() -> io::Result<()> {
    // A process that nohup(1) starts goes on when its terminal is gone.
    let hang_up = (!is_ignored(SIGHUP)).then_some(SIGHUP);
    for signal in [SIGINT, SIGTERM].into_iter().chain(hang_up) {
        // SAFETY: `note` does nothing that a handler may not.
        unsafe { low_level::register(signal, move || note(signal)) }?;
    }
    Ok(())
}

fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: a zeroed action is valid, and filled by the call.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}

/// Runs in a handler.
fn note(signal: libc::c_int) {
    let now = now();
    match FIRST.compare_exchange(0, now, Relaxed, Relaxed) {
        Ok(_) => PENDING.store(signal, Relaxed),
        Err(first) if now.saturating_sub(first) < SAME.as_nanos() as u64 => {}
        Err(_) => low_level::exit(128 + signal),
    }
}

/// Nanoseconds of the monotonic clock; at least 1. May be called in a handler.
fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes to `time`, and may be called in a handler.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    (time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64).max(1)
}

/// The signal that asks the command to finish, if one has come.
pub fn pending() -> Option<u8> {
    match PENDING.load(Relaxed) {
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
        // SAFETY: `request` is a valid time; the pointer to the remainder may be null.
        unsafe { libc::nanosleep(&request, std::ptr::null_mut()) };
    }
}
