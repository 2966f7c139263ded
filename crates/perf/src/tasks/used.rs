//! CPU time of processes and threads, by the kernel's own clocks.
//!
//! What was recorded is compared with it: these clocks depend neither on events nor on lists of
//! CPUs, nor on /proc.

use std::time::Duration;

/// The clocks of some processes, less those of some threads of this process, at a moment.
#[derive(Clone, Debug)]
pub(crate) struct Used {
    processes: Vec<(u32, Duration)>,
    threads: Vec<(u32, Duration)>,
}

impl Used {
    /// The clocks now. Processes that are gone, and threads of other processes, have no clock here.
    pub fn now(processes: &[u32], threads: &[u32]) -> Used {
        let read = |numbers: &[u32], kind: i32| {
            let one = |&number: &u32| Some((number, clock(number, kind)?));
            numbers.iter().filter_map(one).collect()
        };
        Used {
            processes: read(processes, PROCESS),
            threads: read(threads, THREAD),
        }
    }

    /// The CPU time since then, of what still has a clock.
    pub fn since(&self) -> Duration {
        let grown = |clocks: &[(u32, Duration)], kind: i32| -> Duration {
            let one =
                |&(number, then): &(u32, Duration)| Some(clock(number, kind)?.saturating_sub(then));
            clocks.iter().filter_map(one).sum()
        };
        grown(&self.processes, PROCESS).saturating_sub(grown(&self.threads, THREAD))
    }
}

/// The kernel's numbers of clocks have the process or thread in the upper bits, inverted:
/// `CPUCLOCK_SCHED`.
const PROCESS: i32 = 2;
/// The clock of a thread: with `CPUCLOCK_PERTHREAD_MASK`.
const THREAD: i32 = 6;

fn clock(number: u32, kind: i32) -> Option<Duration> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes to `time`, a local variable.
    let result = unsafe { libc::clock_gettime(!(number as i32) << 3 | kind, &mut time) };
    (result == 0).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn work(span: Duration) {
        let begun = Instant::now();
        while begun.elapsed() < span {
            std::hint::black_box(1);
        }
    }

    #[test]
    fn work_is_used_and_that_of_excluded_threads_is_not() {
        // SAFETY: the call takes no arguments.
        let own_thread = unsafe { libc::gettid() } as u32;
        let process = [std::process::id()];
        let (all, others) = (Used::now(&process, &[]), Used::now(&process, &[own_thread]));
        work(Duration::from_millis(100));
        let (all, others) = (all.since(), others.since());
        // The computer may be busy: at least some of it is this thread's.
        assert!(all > Duration::from_millis(10), "{all:?}");
        assert!(
            others + Duration::from_millis(5) < all,
            "{others:?} {all:?}"
        );
        let none = Used::now(&[u32::MAX >> 4], &[u32::MAX >> 4]);
        assert_eq!(none.since(), Duration::ZERO);
    }
}
