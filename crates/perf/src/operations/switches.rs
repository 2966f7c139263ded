//! A check that nothing is missing: the kernel counts how often it takes a thread off a CPU, and
//! each time has a record.

use super::program::Program;
use std::fs;

/// The share of a thread's switches, and their number, that may be missing: a thread that is looked
/// at may be taken off its CPU meanwhile.
const SHARE: f64 = 0.03;
const FEW: u64 = 8;

/// A thread's switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Switches {
    /// Those that records tell of.
    pub seen: u64,
    /// Those that the kernel had counted before; none if that is not known yet.
    before: Option<u64>,
    /// Those found to be missing.
    missing: u64,
}

impl Switches {
    /// Those of a thread that has just been born.
    pub const NONE: Switches = Switches {
        seen: 0,
        before: Some(0),
        missing: 0,
    };

    /// Compares them with what the kernel has `counted` so far; returns how many more are missing
    /// than the last time.
    fn compare(&mut self, counted: u64) -> u64 {
        let before = *self.before.get_or_insert(counted.saturating_sub(self.seen));
        let all = counted.saturating_sub(before);
        let missing = all.saturating_sub(self.seen);
        if missing <= FEW.max((all as f64 * SHARE) as u64) {
            return 0;
        }
        let more = missing.saturating_sub(self.missing);
        self.missing += more;
        more
    }
}

impl Program {
    /// Reads what the kernel has counted for each thread, to be compared when all records up to
    /// `now` have been taken.
    pub(super) fn count_switches(&mut self, now: impl Fn() -> u64) {
        for (&tid, task) in self.tasks.iter().filter(|(_, task)| !task.ends) {
            if let Some(counted) = counted(task.pid, tid) {
                self.counted.push_back((now(), tid, counted));
            }
        }
    }

    /// Compares the counts that were read before `time`.
    pub(super) fn compare_switches(&mut self, time: u64) {
        while let Some((_, tid, counted)) = self.counted.pop_front_if(|(at, ..)| *at < time) {
            if let Some(task) = self.tasks.get_mut(&tid) {
                self.recording.lost.switches += task.switches.compare(counted);
            }
        }
    }
}

/// How often the kernel has taken a thread off a CPU; none if it has ended.
fn counted(pid: u32, tid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).ok()?;
    let counts = status.lines().filter_map(|line| {
        let (name, count) = line.split_once(':')?;
        let is_count = name.ends_with("voluntary_ctxt_switches");
        is_count.then(|| count.trim().parse::<u64>().ok()).flatten()
    });
    Some(counts.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_record_tells_of_is_missing() {
        let mut born = Switches::NONE;
        born.seen = 100;
        assert_eq!(born.compare(108), 0, "they may be on their way");
        assert_eq!(born.compare(150), 50);
        assert_eq!(born.compare(150), 0, "they are known");
        born.seen = 200;
        assert_eq!(born.compare(260), 10);
        let mut met = Switches::default();
        assert_eq!(met.compare(5000), 0, "before it was recorded");
        met.seen = 1000;
        assert_eq!(met.compare(6025), 0, "a few of many");
        assert_eq!(met.compare(6100), 100);
    }

    #[test]
    fn the_kernel_counts() {
        let tid = crate::session::own_thread();
        let before = counted(std::process::id(), tid).expect("it lives");
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(counted(std::process::id(), tid) > Some(before));
        assert_eq!(counted(std::process::id(), u32::MAX), None);
    }
}
