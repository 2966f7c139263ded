//! Control groups and the processes in them.

mod container;

use crate::Error;
use std::collections::BTreeMap;
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
    /// root; or the one whose last name this is, with or without `.service`, `.scope` or `.slice`;
    /// or that of the container of this name.
    pub fn find(path: &Path) -> Result<Cgroup, Error> {
        let below = Path::new(MOUNTED).join(path.strip_prefix("/").unwrap_or(path));
        let is_group = |path: &&Path| path.join(PROCESSES).is_file();
        if let Some(found) = [&below, path].into_iter().find(is_group) {
            return Ok(Cgroup(found.to_owned()));
        }
        let unknown = || Error::NoGroup(path.to_owned());
        let name = path.to_str().filter(|name| !name.contains('/'));
        let name = name.ok_or_else(unknown)?;
        let named = |group: &str| stem(group) == name;
        if let Some(found) = Cgroup::named(name, named)? {
            return Ok(found);
        }
        // Runtimes name groups by the container's number: `docker-0123….scope`, `docker/0123…`.
        let number = container::number(name).ok_or_else(unknown)?;
        let found = Cgroup::named(name, |group| stem(group).ends_with(&number))?;
        found.ok_or_else(unknown)
    }

    /// The one group whose last name is right; none if there is none. Version 1 of control groups
    /// has each once for every controller; one of these that has processes will do.
    fn named(name: &str, is_right: impl Fn(&str) -> bool) -> Result<Option<Cgroup>, Error> {
        let mut found: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
        let mut open = vec![PathBuf::from(MOUNTED)];
        while let Some(group) = open.pop() {
            let last = group.file_name().and_then(|name| name.to_str());
            if last.is_some_and(&is_right) && group.join(PROCESSES).is_file() {
                let below = group.strip_prefix(MOUNTED).unwrap_or(&group);
                let mut names = below.components();
                if is_controller(names.clone().next()) {
                    names.next();
                }
                let known = found.entry(names.as_path().to_owned());
                let known = known.or_insert_with(|| group.clone());
                let is_empty = |path: &PathBuf| {
                    let processes = Cgroup(path.clone()).processes();
                    processes.is_ok_and(|processes| processes.is_empty())
                };
                if is_empty(known) {
                    known.clone_from(&group);
                }
            }
            open.extend(below(&group));
        }
        let several = found.len() > 1;
        let paths: Vec<String> = found
            .keys()
            .map(|path| path.display().to_string())
            .collect();
        match found.into_values().next() {
            Some(_) if several => Err(Error::Groups(name.to_owned(), paths.join(", "))),
            first => Ok(first.map(Cgroup)),
        }
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

/// A group's last name without the suffix that systemd gives it.
fn stem(name: &str) -> &str {
    let suffixes = [".service", ".scope", ".slice"];
    let stem = suffixes.iter().find_map(|suffix| name.strip_suffix(suffix));
    stem.unwrap_or(name)
}

/// Returns true if this is where a controller of version 1 is mounted.
fn is_controller(name: Option<std::path::Component<'_>>) -> bool {
    let below = name.map(|name| Path::new(MOUNTED).join(name));
    // The root of version 2 has this file too, and then there are no such mounts.
    below.is_some_and(|path| {
        path.join(PROCESSES).is_file() && !Path::new(MOUNTED).join("cgroup.controllers").is_file()
    })
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
