//! This computer: its shape, and which pairs of CPUs show which distance.

use bench::tasks::places::{self, Core};
use std::{fs, io};

/// The CPUs that this process may use, as a profile sees them.
pub struct Computer {
    pub sockets: usize,
    /// Cores a socket; of sockets that differ, the least.
    pub cores: usize,
    /// Threads a core; of cores that differ, the least.
    pub threads: usize,
    /// Cores that share the last-level cache.
    pub cluster: usize,
    /// Where single-threaded steps run.
    pub first: usize,
    /// Threads of one core.
    pub sibling: Option<(usize, usize)>,
    /// Cores of one cluster.
    pub near: Option<(usize, usize)>,
    /// Clusters of one socket.
    pub far: Option<(usize, usize)>,
    /// The first socket and each other.
    pub remote: Vec<(usize, usize)>,
}

impl Computer {
    /// Reads affinity and sysfs.
    pub fn read() -> io::Result<Self> {
        let cores = places::cores()?;
        Ok(Computer::of(&cores, last_level))
    }

    /// The computer of these cores; `cache` tells a CPU's last-level cache from others, if the
    /// kernel knows.
    fn of(cores: &[Core], cache: impl Fn(usize) -> Option<String>) -> Self {
        let home = &cores[0];
        let cpu = |core: &Core| core.cpus[0];
        let first = cpu(home);
        let mut sockets: Vec<usize> = cores.iter().map(|core| core.package).collect();
        sockets.dedup();
        let sizes = sockets.iter().map(|&socket| {
            let members = cores.iter().filter(|core| core.package == socket);
            members.count()
        });
        let within = |core: &&Core| core.package == home.package;
        let beside = |core: &&Core| cache(cpu(core)) == cache(first);
        let others = || cores[1..].iter().filter(within);
        let pair = |core: &Core| (first, cpu(core));
        let per_socket = sizes.min().unwrap_or(1);
        let cluster = 1 + others().filter(beside).count();
        let remote = |&socket: &usize| cores.iter().find(|core| core.package == socket);
        Computer {
            sockets: sockets.len(),
            cores: per_socket,
            threads: cores.iter().map(|core| core.cpus.len()).min().unwrap_or(1),
            cluster: if per_socket.is_multiple_of(cluster) {
                cluster
            } else {
                per_socket
            },
            first,
            sibling: home.cpus.get(1).map(|&other| (first, other)),
            near: others().find(beside).map(pair),
            far: others().find(|core| !beside(core)).map(pair),
            remote: sockets[1..].iter().filter_map(remote).map(pair).collect(),
        }
    }

    /// Another CPU, as near as there is one that is no thread of the same core.
    pub fn other(&self) -> Option<(usize, usize)> {
        let pairs = [self.near, self.far, self.remote.first().copied()];
        pairs.into_iter().flatten().next().or(self.sibling)
    }
}

/// The CPUs that share the last-level cache of a CPU, as the kernel lists them.
fn last_level(cpu: usize) -> Option<String> {
    let list = |index: usize| {
        let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
        fs::read_to_string(format!("{folder}/shared_cpu_list")).ok()
    };
    (0..8).rev().find_map(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores(packages: &[usize], threads: usize) -> Vec<Core> {
        let core = |(index, &package): (usize, &usize)| Core {
            package,
            cpus: (0..threads).map(|thread| index + 100 * thread).collect(),
        };
        packages.iter().enumerate().map(core).collect()
    }

    #[test]
    fn pairs_show_each_distance() {
        let cores = cores(&[0, 0, 0, 0, 1, 1, 1, 1], 2);
        let computer = Computer::of(&cores, |cpu| Some((cpu % 100 / 2).to_string()));
        let shape = (
            computer.sockets,
            computer.cores,
            computer.threads,
            computer.cluster,
        );
        assert_eq!(shape, (2, 4, 2, 2));
        assert_eq!(computer.sibling, Some((0, 100)));
        assert_eq!((computer.near, computer.far), (Some((0, 1)), Some((0, 2))));
        assert_eq!(computer.remote, [(0, 4)]);
        assert_eq!(computer.other(), Some((0, 1)));
    }

    #[test]
    fn one_cpu_shows_none() {
        let computer = Computer::of(&cores(&[3], 1), |_| None);
        assert_eq!(
            (computer.sockets, computer.cores, computer.cluster),
            (1, 1, 1)
        );
        assert_eq!((computer.other(), computer.remote.len()), (None, 0));
    }

    #[test]
    fn an_uneven_shape_is_the_least_of_each() {
        let computer = Computer::of(&cores(&[0, 0, 0, 1, 1], 1), |_| None);
        assert_eq!(
            (computer.sockets, computer.cores, computer.cluster),
            (2, 2, 2)
        );
    }
}
