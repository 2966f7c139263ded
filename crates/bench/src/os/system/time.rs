//! The clock, and sleeping until it says so.

use workloads::{Call, Error};

const SECOND: u64 = 1_000_000_000;

/// Nanoseconds of the monotonic clock.
#[inline]
pub fn now() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: room for the time. A clock that is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * SECOND + now.tv_nsec as u64
}

/// Sleeps until that clock says `time`.
pub fn sleep_until(time: u64) -> Result<(), Error> {
    let until = libc::timespec {
        tv_sec: (time / SECOND) as libc::time_t,
        tv_nsec: (time % SECOND) as libc::c_long,
    };
    loop {
        // SAFETY: a valid time; the pointer to the remainder may be null.
        let slept = unsafe {
            libc::clock_nanosleep(
                libc::CLOCK_MONOTONIC,
                libc::TIMER_ABSTIME,
                &until,
                std::ptr::null_mut(),
            )
        };
        match slept {
            0 => return Ok(()),
            libc::EINTR => {}
            errno => return Err(Error::Failed(Call::Sleep, errno)),
        }
    }
}
