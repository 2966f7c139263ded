//! Control groups and the processes in them.

use crate::Error;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Where the groups are mounted.
const MOUNTED: &str = "/sys/fs/cgroup";
/// The file of a group that lists its processes.
const PROCESSES: &str = "cgroup.procs";

/// A control group, with all groups below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup(PathBuf);

impl Cgroup {
    /// The group at `path`, which begins below `/sys/fs/cgroup` as in `/proc/PID/cgroup`, or at the
    /// root.
    pub fn find(path: &Path) -> Result<Cgroup, Error> {
        let below = Path::new(MOUNTED).join(path.strip_prefix("/").unwrap_or(path));
        let is_group = |path: &&Path| path.join(PROCESSES).is_file();
        let found = [&below, path].into_iter().find(is_group);
        found
            .map(|path| Cgroup(path.to_owned()))
            .ok_or_else(|| Error::NoGroup(path.to_owned()))
    }

    /// Its path below the mount.
    pub fn name(&self) -> String {
        let Cgroup(path) = self;
        let name = path.strip_prefix(MOUNTED).unwrap_or(path);
        stats::printable(&name.to_string_lossy()).into_owned()
    }

    /// The processes in it now.
    pub(crate) fn processes(&self) -> io::Result<Vec<u32>> {
        let mut found = listed(&self.0)?;
        let mut open = below(&self.0);
        while let Some(group) = open.pop() {
            // A group below may be gone by now, or have threads of the upper group's processes.
            found.extend(listed(&group).unwrap_or_default());
            open.extend(below(&group));
        }
        Ok(found)
    }
}

/// The processes in the group at `path` itself. Those of other PID namespaces have no number here.
fn listed(path: &Path) -> io::Result<Vec<u32>> {
    let text = fs::read_to_string(path.join(PROCESSES))?;
    let numbers = text.lines().filter_map(|line| line.parse().ok());
    Ok(numbers.filter(|&pid| pid != 0).collect())
}

fn below(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let groups = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    groups.map(|group| group.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_the_processes_of_groups_below() {
        let root = std::env::temp_dir().join(format!("scalevm-cgroup-{}", std::process::id()));
        let inner = root.join("a/b");
        fs::create_dir_all(&inner).expect("folders");
        fs::write(root.join(PROCESSES), "7\n0\n").expect("written");
        fs::write(inner.join(PROCESSES), "8\n").expect("written");
        let group = Cgroup::find(&root).expect("a group");
        assert_eq!(group.processes().expect("a list"), [7, 8]);
        let error = Cgroup::find(&root.join("a"))
            .expect_err("no group")
            .to_string();
        assert!(
            error.starts_with("cgroup /") && error.contains("a: "),
            "{error}"
        );
        fs::remove_dir_all(&root).expect("removed");
    }
}
