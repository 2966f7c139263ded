//! The topology of a machine's CPUs, and their numbering.

use machine::MAX_CPUS;

/// Sockets × cores × threads, and the hops between sockets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// Sockets (dies, if a package has several).
    pub sockets: usize,
    /// Cores of a socket.
    pub cores: usize,
    /// Hardware threads of a core.
    pub threads: usize,
    /// Cores that share a last-level slice; all cores of a socket if it has only one.
    pub cluster: usize,
    /// The number of links between two sockets; 0 on the diagonal.
    pub hops: Vec<Vec<u8>>,
}

/// The place of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// The socket.
    pub socket: usize,
    /// The cluster, counted within the socket.
    pub cluster: usize,
    /// The core, counted within the socket.
    pub core: usize,
    /// The hardware thread, counted within the core.
    pub thread: usize,
}

/// The distance of two CPUs; nearer is less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// One CPU and itself.
    SameThread,
    /// Threads of one core.
    Sibling,
    /// Cores of one cluster.
    Cluster,
    /// Clusters of one socket.
    Socket,
    /// Sockets this many hops apart (1 or more).
    Hops(u8),
}

impl Topology {
    /// The number of CPUs (hardware threads).
    pub fn cpus(&self) -> usize {
        self.sockets * self.cores * self.threads
    }

    /// Sockets × cores × threads, as `2x24x2`.
    pub fn shape(&self) -> String {
        format!("{}x{}x{}", self.sockets, self.cores, self.threads)
    }

    /// The place of a CPU. CPUs are numbered as in Linux: the first threads of socket 0's cores,
    /// then of socket 1's and so on, then all second threads.
    ///
    /// # Panics
    /// If there is no such CPU.
    pub fn place(&self, cpu: usize) -> Location {
        assert!(cpu < self.cpus(), "CPU {cpu} of {}", self.cpus());
        let (thread, rest) = (
            cpu / (self.sockets * self.cores),
            cpu % (self.sockets * self.cores),
        );
        let (socket, core) = (rest / self.cores, rest % self.cores);
        Location {
            socket,
            cluster: core / self.cluster,
            core,
            thread,
        }
    }

    /// The distance of two CPUs.
    ///
    /// # Panics
    /// If there is no such CPU.
    pub fn distance(&self, a: usize, b: usize) -> Class {
        let (one, other) = (self.place(a), self.place(b));
        if a == b {
            Class::SameThread
        } else if one.socket != other.socket {
            Class::Hops(self.hops[one.socket][other.socket])
        } else if one.core == other.core {
            Class::Sibling
        } else if one.cluster == other.cluster {
            Class::Cluster
        } else {
            Class::Socket
        }
    }

    /// The number of CPUs, if a machine can have that many; accepts any sizes.
    pub(super) fn cpus_within_limit(&self) -> Option<usize> {
        let cores = self.sockets.checked_mul(self.cores)?;
        let cpus = cores.checked_mul(self.threads)?;
        (1..=MAX_CPUS).contains(&cpus).then_some(cpus)
    }

    /// The wrong key and the reason, if no machine can have this topology. `distances` is the
    /// number of hops that have a cost.
    pub(super) fn check(&self, distances: usize) -> Result<(), (&'static str, String)> {
        if self.cpus_within_limit().is_none() {
            let shape = self.shape();
            let reason = format!("a machine must have 1 to {MAX_CPUS} CPUs, not {shape}");
            return Err(("topology.sockets", reason));
        }
        if self.cluster == 0 || !self.cores.is_multiple_of(self.cluster) {
            let reason = format!(
                "clusters of {} do not divide {} cores",
                self.cluster, self.cores
            );
            return Err(("topology.cluster", reason));
        }
        self.check_hops(distances)
            .map_err(|reason| ("topology.hops", reason))
    }

    fn check_hops(&self, distances: usize) -> Result<(), String> {
        let sockets = self.sockets;
        let square = self.hops.len() == sockets && self.hops.iter().all(|row| row.len() == sockets);
        if !square {
            return Err(format!("not a table of {sockets} × {sockets} sockets"));
        }
        for (from, row) in self.hops.iter().enumerate() {
            for (to, &hops) in row.iter().enumerate() {
                if (from == to) != (hops == 0) {
                    return Err(format!("{hops} hops from socket {from} to {to}"));
                }
                if hops != self.hops[to][from] {
                    return Err(format!("sockets {from} and {to} disagree"));
                }
                if usize::from(hops) > distances {
                    return Err(format!(
                        "sockets {from} and {to} are {hops} hops apart, \
                         but `transfer.hops` has {distances} costs"
                    ));
                }
            }
        }
        Ok(())
    }
}
