//! Variants of a machine: another shape with the same costs, or another way to flush TLBs.

use super::{MachineProfile, ProfileError, Topology};

impl MachineProfile {
    /// This machine with another number of sockets, cores per socket and threads per core
    /// (`--topology 8x10x2`), named after its shape. Clusters keep the largest size that divides
    /// the cores. Sockets beyond those of the machine are linked as in large machines: up to four,
    /// each with each; with more, each with both neighbours and the opposite one. The others are
    /// two hops away, or one if the profile has no cost for two.
    ///
    /// # Errors
    /// If no machine can have this shape, or the profile of one socket has no cost of a hop.
    pub fn with_topology(
        &self,
        sockets: usize,
        cores: usize,
        threads: usize,
    ) -> Result<MachineProfile, ProfileError> {
        let old = &self.topology;
        let mut reshaped = self.clone();
        let whole = old.cluster == old.cores;
        let mut topology = Topology {
            sockets,
            cores,
            threads,
            cluster: if whole {
                cores
            } else {
                divisor(cores, old.cluster)
            },
            hops: Vec::new(),
        };
        reshaped.name = topology.shape();
        reshaped.about = format!("the costs of {}, another shape", self.name);
        // Checked before a table of that many sockets is built.
        let invalid = |reason: String| ProfileError::Invalid {
            file: format!("{} as {}", self.name, topology.shape()),
            reason,
        };
        if topology.cpus_within_limit().is_none() {
            let limit = machine::MAX_CPUS;
            return Err(invalid(format!("a machine must have 1 to {limit} CPUs")));
        }
        let known = self.transfer.hops.len();
        if sockets > 1 && known == 0 {
            return Err(invalid(
                "a profile of one socket has no cost of a hop".into(),
            ));
        }
        topology.hops = if sockets <= old.sockets {
            corner(&old.hops, sockets)
        } else {
            links(sockets, u8::try_from(known).unwrap_or(u8::MAX))
        };
        reshaped.topology = topology;
        for key in ["sockets", "cores", "threads", "cluster", "hops"] {
            let source = format!("asked for; {} is {}", self.name, old.shape());
            reshaped.sources.insert(format!("topology.{key}"), source);
        }
        reshaped.check()?;
        Ok(reshaped)
    }

    /// This machine with a broadcast flush ([`super::Ipi::broadcast`]): it flushes the TLBs of
    /// other CPUs in `nanoseconds`, and interrupts none.
    ///
    /// # Errors
    /// If a broadcast cannot take that time.
    pub fn with_broadcast(&self, nanoseconds: f64) -> Result<MachineProfile, ProfileError> {
        let mut other = self.clone();
        other.ipi.broadcast = nanoseconds;
        let source = "asked for".to_owned();
        other.sources.insert("ipi.broadcast".to_owned(), source);
        other.check()?;
        Ok(other)
    }
}

/// The hops between the first `sockets` of a larger machine.
fn corner(hops: &[Vec<u8>], sockets: usize) -> Vec<Vec<u8>> {
    let rows = hops.iter().take(sockets);
    rows.map(|row| row[..sockets].to_vec()).collect()
}

/// The hops between `sockets`; a cost is known for at most `known` hops.
fn links(sockets: usize, known: u8) -> Vec<Vec<u8>> {
    let hops = |from: usize, to: usize| match from.abs_diff(to) {
        0 => 0,
        apart if sockets <= 4 || apart == 1 || apart == sockets - 1 => 1,
        apart if apart == sockets / 2 || apart == sockets.div_ceil(2) => 1,
        _ => known.min(2),
    };
    let row = |from| (0..sockets).map(|to| hops(from, to)).collect();
    (0..sockets).map(row).collect()
}

/// The greatest common divisor.
fn divisor(a: usize, b: usize) -> usize {
    match b {
        0 => a,
        _ => divisor(b, a % b),
    }
}
