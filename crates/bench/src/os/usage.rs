//! The CPU time and the page faults that the kernel has counted.

use std::time::Duration;

/// Those of this process, and of its children that have been waited for, with theirs.
pub struct Usage {
    /// Outside of the kernel.
    pub user: Duration,
    /// In it.
    pub sys: Duration,
    /// Page faults, with and without reading a disk.
    pub faults: u64,
}

impl Usage {
    /// Until now.
    pub fn now() -> Self {
        let [own, children] = [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN].map(usage);
        let faults = |of: libc::rusage| (of.ru_minflt + of.ru_majflt).unsigned_abs();
        Usage {
            faults: faults(own) + faults(children),
            user: time(own.ru_utime) + time(children.ru_utime),
            sys: time(own.ru_stime) + time(children.ru_stime),
        }
    }
}

fn usage(of: libc::c_int) -> libc::rusage {
    // SAFETY: a zeroed rusage is valid, and the call fills it; both sets exist, so it does not
    // fail.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(of, &mut usage);
        usage
    }
}

fn time(value: libc::timeval) -> Duration {
    let seconds = u64::try_from(value.tv_sec).unwrap_or(0);
    let microseconds = u64::try_from(value.tv_usec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(microseconds)
}
