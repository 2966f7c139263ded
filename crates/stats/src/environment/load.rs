//! CPU time that other users of the machine took.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::sources::text;

/// Load over an interval, in CPUs: 0.5 is half a CPU's time. The kernel counts in ticks of 10 ms,
/// which bounds the precision.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Used by other processes and by interrupts.
    pub foreign: f64,
    /// Taken by the hypervisor while a CPU wanted to run.
    pub steal: f64,
    /// The machine's CPUs.
    pub cpus: u32,
}

impl Load {
    /// Returns true if others leave the machine to this process: they take less than 5 % of a CPU's
    /// time.
    pub fn quiet(&self) -> bool {
        self.foreign + self.steal < 0.05
    }
}

/// A load measurement in progress.
#[derive(Clone, Debug)]
pub struct LoadMeter {
    root: PathBuf,
    start: Ticks,
}

impl LoadMeter {
    /// Starts measuring; `root` is `/` except in tests. Children count as this process once they
    /// have been waited for.
    pub fn start(root: &Path) -> Result<Self, String> {
        Ok(Self {
            start: Ticks::now(root)?,
            root: root.into(),
        })
    }

    /// The load since the start; an error if no tick has passed.
    pub fn finish(&self) -> Result<Load, String> {
        Ticks::now(&self.root)?.since(&self.start)
    }
}

/// Ticks since boot.
#[derive(Clone, Copy, Debug)]
struct Ticks {
    busy: u64,
    steal: u64,
    all: u64,
    own: u64,
    cpus: u32,
}

impl Ticks {
    fn now(root: &Path) -> Result<Self, String> {
        Self::parse(&text(root, "proc/stat")?, &text(root, "proc/self/stat")?)
    }

    /// From /proc/stat (user nice system idle iowait irq softirq steal; user includes guest time)
    /// and /proc/self/stat.
    fn parse(machine: &str, own: &str) -> Result<Self, String> {
        let first = machine
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("cpu "))
            .unwrap_or_default();
        let ticks: Vec<u64> = first
            .split_whitespace()
            .map_while(|word| word.parse().ok())
            .collect();
        let &[user, nice, system, idle, iowait, irq, softirq, steal, ..] = ticks.as_slice() else {
            return Err("/proc/stat: no `cpu` line of eight numbers".into());
        };
        // The name in brackets may contain anything; after it follow field 3 and so on; times are
        // fields 14 to 17.
        let fields = own
            .rsplit_once(')')
            .map_or("", |(_, rest)| rest)
            .split_whitespace();
        let times: Vec<u64> = fields
            .skip(11)
            .take(4)
            .map_while(|word| word.parse().ok())
            .collect();
        if times.len() < 4 {
            return Err("/proc/self/stat: no times".into());
        }
        let is_cpu = |line: &&str| {
            line.strip_prefix("cpu")
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        let busy = user + nice + system + irq + softirq;
        let cpus = machine.lines().filter(is_cpu).count() as u32;
        Ok(Self {
            busy,
            steal,
            all: busy + idle + iowait + steal,
            own: times.iter().sum(),
            cpus,
        })
    }

    fn since(self, start: &Self) -> Result<Load, String> {
        let all = self.all.saturating_sub(start.all);
        if all == 0 {
            return Err("no clock tick passed".into());
        }
        let own = self.own.saturating_sub(start.own);
        let foreign = self.busy.saturating_sub(start.busy).saturating_sub(own);
        let in_cpus = |ticks: u64| ticks as f64 * f64::from(self.cpus) / all as f64;
        Ok(Load {
            foreign: in_cpus(foreign),
            steal: in_cpus(self.steal.saturating_sub(start.steal)),
            cpus: self.cpus,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(user: u64, system: u64) -> String {
        format!("42 (a) b (c) R 1 2 3 4 5 6 7 8 9 10 {user} {system} 3 4 20 0 1")
    }

    #[test]
    fn load_is_what_is_busy_less_what_is_ours() {
        let start = Ticks::parse(
            "cpu  100 0 50 800 0 0 0 10 7 0\ncpu0 1\ncpu1 1\nctxt 5",
            &own(20, 10),
        )
        .unwrap();
        let end = Ticks::parse(
            "cpu  150 0 60 920 10 0 0 20 99 0\ncpu0 1\ncpu1 1\nctxt 5",
            &own(50, 15),
        )
        .unwrap();
        // 60 busy ticks, 35 of them this process's, 10 stolen, of 200: 100 per CPU.
        let load = end.since(&start).unwrap();
        assert_eq!(
            load,
            Load {
                foreign: 0.25,
                steal: 0.1,
                cpus: 2
            }
        );
        assert!(!load.quiet());
        assert_eq!(start.since(&start).unwrap_err(), "no clock tick passed");
    }

    #[test]
    fn damaged_files_are_reasons() {
        assert!(
            Ticks::parse("cpu  1 2 3\n", &own(1, 1))
                .unwrap_err()
                .contains("/proc/stat")
        );
        assert!(
            Ticks::parse("cpu  1 2 3 4 5 6 7 8\n", "42 (a")
                .unwrap_err()
                .contains("/proc/self/stat")
        );
    }
}
