//! Which processes are watched.

use crate::Error;
use crate::tasks::{self, Cgroup};
use std::io;

/// The processes to watch. What they start is watched too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whom {
    /// These, with all their descendants. A thread's number stands for its process.
    Processes(Vec<u32>),
    /// Those in a control group, and all that join it.
    Group(Cgroup),
    /// All, without the one that records.
    All,
}

impl Whom {
    /// The processes that are there now. It is an error if there are none, or if one that is given
    /// by its number does not exist.
    pub(crate) fn roots(&self) -> Result<Vec<u32>, Error> {
        match self {
            Whom::Processes(numbers) => {
                let leader = |&number| tasks::leader(number).ok_or(Error::NoProcess(number));
                let mut found = numbers
                    .iter()
                    .map(leader)
                    .collect::<Result<Vec<u32>, _>>()?;
                found.sort_unstable();
                found.dedup();
                Ok(found)
            }
            Whom::Group(group) => {
                let found = others(group.processes()).map_err(Error::Proc)?;
                match found.is_empty() {
                    true => Err(Error::EmptyGroup(group.name())),
                    false => Ok(found),
                }
            }
            Whom::All => others(tasks::processes()).map_err(Error::Proc),
        }
    }

    /// Returns true if the processes are given by their numbers.
    pub(crate) fn is_given(&self) -> bool {
        matches!(self, Whom::Processes(_))
    }

    /// The group to look at for processes that join it.
    pub(crate) fn group(&self) -> Option<Cgroup> {
        match self {
            Whom::Group(group) => Some(group.clone()),
            Whom::Processes(_) | Whom::All => None,
        }
    }

    /// The processes to begin with: `roots`, and what they have started if that is watched too.
    pub(crate) fn family(&self, roots: &[u32]) -> Vec<u32> {
        match self {
            // What a member has started may have been moved to another group.
            Whom::Group(_) => roots.to_vec(),
            Whom::Processes(_) | Whom::All => tasks::descendants(roots),
        }
    }
}

/// Without this process, which records.
fn others(found: io::Result<Vec<u32>>) -> io::Result<Vec<u32>> {
    let own = std::process::id();
    Ok(found?.into_iter().filter(|&pid| pid != own).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorder_is_not_watched_unless_it_is_named() {
        let own = std::process::id();
        let parent = std::os::unix::process::parent_id();
        let watched = |whom: Whom| whom.family(&whom.roots().expect("processes"));
        let all = watched(Whom::All);
        assert!(all.contains(&parent) && !all.contains(&own), "{all:?}");
        assert!(!watched(Whom::Processes(vec![parent])).contains(&own));
        assert!(watched(Whom::Processes(vec![own, own])).contains(&own));
    }

    #[test]
    fn a_thread_stands_for_its_process() {
        // SAFETY: the call takes no arguments.
        let tid = unsafe { libc::gettid() } as u32;
        let own = std::process::id();
        assert_eq!(
            Whom::Processes(vec![tid, own]).roots().expect("it runs"),
            [own]
        );
    }
}
