//! CPU time that tasks did not get: the hypervisor's, and what quotas withheld.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where control groups are mounted: version 2, and the controller of version 1.
const MOUNTED: [(&str, &str); 3] = [
    ("", "/sys/fs/cgroup"),
    ("cpu", "/sys/fs/cgroup/cpu"),
    ("cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct"),
];

/// Accounts of time withheld, at a moment.
#[derive(Clone, Debug)]
pub(crate) struct Withheld {
    stolen: Duration,
    /// The accounts of the groups of some processes and all groups above them.
    groups: Vec<(PathBuf, Duration)>,
}

impl Withheld {
    /// The accounts now.
    pub fn now(processes: &[u32]) -> Withheld {
        let groups = processes.iter().flat_map(|&pid| accounts(pid));
        let groups: BTreeSet<PathBuf> = groups.collect();
        let read = |path: PathBuf| Some((throttled(&path)?, path));
        let groups = groups.into_iter().filter_map(read);
        Withheld {
            stolen: stolen().unwrap_or_default(),
            groups: groups.map(|(time, path)| (path, time)).collect(),
        }
    }

    /// Brings the accounts up to now.
    pub fn go_on(&mut self) {
        self.stolen = stolen().unwrap_or_default();
        for (path, time) in &mut self.groups {
            *time = throttled(path).unwrap_or(*time);
        }
    }

    /// The time that the hypervisor has since taken from all CPUs together.
    pub fn stolen(&self) -> Duration {
        stolen().unwrap_or_default().saturating_sub(self.stolen)
    }

    /// The group whose quota has since kept its tasks off CPUs for the longest time, and that time;
    /// none if no quota was used up.
    pub fn throttled(&self) -> Option<(String, Duration)> {
        let grown = self.groups.iter().filter_map(|(path, then)| {
            let grown = throttled(path)?.saturating_sub(*then);
            Some((grown, path)).filter(|_| !grown.is_zero())
        });
        let (time, path) = grown.max()?;
        let group = path.parent().and_then(Path::file_name)?;
        let group = stats::printable(&group.to_string_lossy()).into_owned();
        Some((group, time))
    }
}

/// The accounts of a process's group and of those above it.
fn accounts(pid: u32) -> Vec<PathBuf> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let mut found = Vec::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let mounted = MOUNTED.iter().filter(|(named, _)| *named == controllers);
        for (_, root) in mounted {
            let path = Path::new(root).join(path.trim_start_matches('/'));
            let above = path.ancestors().take_while(|above| above.starts_with(root));
            found.extend(above.map(|group| group.join("cpu.stat")));
        }
    }
    found
}

/// The time for which a group's tasks were kept off CPUs, by its account.
fn throttled(account: &Path) -> Option<Duration> {
    let text = fs::read_to_string(account).ok()?;
    text.lines().find_map(|line| {
        let (name, number) = line.split_once(' ')?;
        let number = number.parse().ok()?;
        match name {
            "throttled_usec" => Some(Duration::from_micros(number)),
            "throttled_time" => Some(Duration::from_nanos(number)),
            _ => None,
        }
    })
}

/// The time that the hypervisor has taken from all CPUs since the system started.
fn stolen() -> Option<Duration> {
    /// `steal` among the numbers of the first line.
    const STEAL: usize = 7;
    /// `USER_HZ` is 100 on all of Linux's machines that this runs on.
    const TICK: Duration = Duration::from_millis(10);
    let text = fs::read_to_string("/proc/stat").ok()?;
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: u64 = line.split_whitespace().nth(STEAL)?.parse().ok()?;
    Some(TICK * u32::try_from(ticks).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_of_groups_say_how_long_they_were_throttled() {
        let name = format!("scalevm-withheld-{}", std::process::id());
        let root = std::env::temp_dir().join(name);
        fs::create_dir_all(root.join("a")).expect("a folder");
        let account = root.join("a/cpu.stat");
        let write = |text: &str| fs::write(&account, text).expect("written");
        write("usage_usec 9\nnr_throttled 0\nthrottled_usec 0\n");
        let mut before = Withheld::now(&[]);
        before.groups = vec![(account.clone(), Duration::ZERO)];
        assert_eq!(before.throttled(), None);
        write("usage_usec 9\nnr_throttled 3\nthrottled_usec 1500\n");
        let used_up = |time| Some(("a".to_owned(), time));
        assert_eq!(before.throttled(), used_up(Duration::from_micros(1500)));
        write("nr_periods 4\nnr_throttled 3\nthrottled_time 70\n");
        assert_eq!(before.throttled(), used_up(Duration::from_nanos(70)));
        fs::remove_dir_all(&root).expect("removed");
    }

    #[test]
    fn this_system_says_how_much_is_stolen() {
        assert!(stolen().is_some());
        assert!(Withheld::now(&[std::process::id()]).stolen() < Duration::from_secs(60));
    }
}
