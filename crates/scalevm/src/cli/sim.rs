//! Which machine is simulated, and how often.

use bench::Failure;
use bench::simulated::Placement;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use sim::profile::MachineProfile;
use std::path::Path;

/// The simulated machine by default: case study 000's.
const MACHINE: &str = "freebsd-96";

/// A machine to simulate, and how often.
#[derive(Args, Clone, Debug, Default)]
pub struct SimArgs {
    /// The machine.
    #[command(flatten)]
    pub machine: MachineArgs,
    /// Simulated runs per measurement, each with the next seed [default: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: Option<u32>,
}

/// A machine to simulate.
#[derive(Args, Clone, Debug, Default)]
pub struct MachineArgs {
    /// The simulated machine, a name (see `scalevm list`) or a file; implies `--on sim` [default:
    /// freebsd-96]
    #[arg(long, value_name = "NAME|FILE")]
    pub machine: Option<String>,
    /// Sockets, cores per socket and threads per core, e.g. 2x24x2; implies `--on sim`
    #[arg(long, value_name = "SxCxT", value_parser = shape)]
    pub topology: Option<[usize; 3]>,
    /// Flush the TLBs of other CPUs by broadcast, as with AMD's INVLPGB, which takes NS nanoseconds
    /// and interrupts no CPU; with 0, flush by interrupts. Implies `--on sim`
    #[arg(long, value_name = "NS")]
    pub broadcast: Option<f64>,
    /// Simulate one of the four combinations of extreme values of the machine's unpublished
    /// properties; implies `--on sim`
    #[arg(long, value_name = "1-4", value_parser = clap::value_parser!(u8).range(1..=4))]
    pub corner: Option<u8>,
    /// The first seed [default: 1]
    #[arg(long, value_name = "SEED")]
    pub seed: Option<u64>,
}

/// The conditions of simulated runs.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct ConditionArgs {
    /// The CPUs to use: one socket after the other (`pack`, as will-it-scale pins tasks), or each
    /// socket in turn (`spread`, as kernels place tasks) [default: pack; with --no-affinity:
    /// spread]
    #[arg(long, value_name = "PLACE", value_parser = place())]
    pub place: Option<Placement>,
    /// Fit the simulated time of a call, or of a fault, so that one task makes RATE operations per
    /// second
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub alone: Option<f64>,
    /// Delay accesses at random during the warm-up, so that a lock that is free only while its
    /// tasks run in step becomes contended; for workloads whose iterations have one step
    #[arg(long)]
    pub disturb: bool,
}

impl ConditionArgs {
    /// The first option given.
    pub fn given(&self) -> Option<&'static str> {
        let place = self.place.map(|_| "--place");
        let alone = self.alone.map(|_| "--alone");
        place.or(alone).or(self.disturb.then_some("--disturb"))
    }
}

/// A name of a place.
pub(super) fn place() -> impl TypedValueParser<Value = Placement> {
    let names = Placement::NAMED.map(|(name, _)| name);
    PossibleValuesParser::new(names).map(|name| Placement::named(&name).expect("one of the names"))
}

/// Operations a second.
pub(super) fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate.is_finite() => Ok(rate),
        _ => Err("expected operations per second, e.g. 1605000".into()),
    }
}

impl From<MachineArgs> for SimArgs {
    fn from(machine: MachineArgs) -> Self {
        SimArgs {
            machine,
            seeds: None,
        }
    }
}

impl SimArgs {
    /// The first option given that only a simulated machine has a use for.
    pub fn given(&self) -> Option<&'static str> {
        let machine = self.machine.given();
        machine.or(self.seeds.map(|_| "--seeds"))
    }
}

impl MachineArgs {
    /// The first option given.
    fn given(&self) -> Option<&'static str> {
        let all = [
            ("--machine", self.machine.is_some()),
            ("--topology", self.topology.is_some()),
            ("--broadcast", self.broadcast.is_some()),
            ("--corner", self.corner.is_some()),
            ("--seed", self.seed.is_some()),
        ];
        let mut given = all.into_iter().filter(|(_, given)| *given);
        given.next().map(|(name, _)| name)
    }

    pub fn first_seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }

    /// Returns true if the options choose a simulated machine.
    pub fn is_chosen(&self) -> bool {
        self.machine.is_some()
            || self.topology.is_some()
            || self.broadcast.is_some()
            || self.corner.is_some()
    }

    /// The machine.
    pub fn profile(&self) -> Result<MachineProfile, Failure> {
        let bad = |error: sim::profile::ProfileError| Failure::Unavailable(error.to_string());
        let name = self.machine.as_deref().unwrap_or(MACHINE);
        let is_file = name.contains('/') || Path::new(name).is_file();
        let profile = if is_file && !MachineProfile::names().any(|known| known == name) {
            MachineProfile::load(name)
        } else {
            MachineProfile::named(name)
        };
        let mut profile = profile.map_err(bad)?;
        if let Some([sockets, cores, threads]) = self.topology {
            profile = profile
                .with_topology(sockets, cores, threads)
                .map_err(bad)?;
        }
        if let Some(nanoseconds) = self.broadcast {
            profile = profile.with_broadcast(nanoseconds).map_err(bad)?;
        }
        Ok(match self.corner {
            None => profile,
            Some(corner) => profile.corners()[usize::from(corner) - 1].clone(),
        })
    }
}

/// `2x24x2`.
fn shape(text: &str) -> Result<[usize; 3], String> {
    let parts: Result<Vec<usize>, _> = text.split('x').map(str::parse).collect();
    match parts.as_deref() {
        Ok(&[sockets, cores, threads]) if sockets * cores * threads > 0 => {
            Ok([sockets, cores, threads])
        }
        _ => Err("expected SOCKETSxCORESxTHREADS, e.g. 2x24x2".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::shape;

    #[test]
    fn shapes_have_three_parts() {
        assert_eq!(shape("2x24x2"), Ok([2, 24, 2]));
        for bad in ["", "2x24", "2x24x0", "2x24x2x1", "axbxc", "-1x2x2"] {
            assert!(shape(bad).is_err(), "{bad}");
        }
    }
}
