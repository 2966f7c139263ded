//! Where simulated rates have been compared with measured ones.
//!
//! `compared.csv` has a line for each published curve that was predicted and scored: what ran, and
//! how far the prediction was off. No error is expected of a rate that resembles none of them.

use super::{Attribution, Band, Mechanism, Simulated};
use crate::harness::{Mode, Plan};
use sim::profile::MachineProfile;
use stats::count;
use std::fmt::{self, Display, Formatter};

/// The file. Its first line names the columns.
const FILE: &str = include_str!("../../compared.csv");

/// A curve that was compared with measurements.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The name of the workload.
    pub workload: String,
    /// Its tasks.
    pub mode: Mode,
    /// The preset or the lock that represented the kernel.
    pub system: String,
    /// The name of the profile that the machine's costs are from.
    pub costs: String,
    /// What held most tasks up.
    pub mechanism: Mechanism,
    /// The most tasks.
    pub tasks: usize,
    /// The median of |ln(predicted/measured)|.
    pub error: f64,
}

impl Compared {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Compared> {
        let lines = FILE.lines().skip(1);
        // A test reads each of them.
        lines.map(|line| Self::read(line).unwrap_or_else(|| panic!("compared.csv: {line}")))
    }

    /// A line of the file.
    fn read(line: &str) -> Option<Self> {
        let [workload, mode, system, costs, mechanism, tasks, error] =
            <[&str; 7]>::try_from(Vec::from_iter(line.split(','))).ok()?;
        Some(Compared {
            workload: workload.into(),
            mode: Mode::BOTH.into_iter().find(|one| one.name() == mode)?,
            system: system.into(),
            costs: costs.into(),
            mechanism: Mechanism::ALL
                .into_iter()
                .find(|one| one.name() == mechanism)?,
            tasks: tasks.parse().ok()?,
            error: error.parse().ok()?,
        })
    }
}

/// The error to expect of a simulated rate, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// The measured curves with which such rates have been compared.
    pub curves: usize,
    /// The error of the worst of these comparisons, as a factor.
    pub worst: f64,
    /// The band of such a prediction, if there was a comparison and it has one.
    pub band: Option<Band>,
}

impl Expected {
    /// The error to expect of `tasks` tasks of a workload on a system, a preset or a lock, where a
    /// mechanism holds most of them up.
    pub fn of(
        (workload, mode): (&str, Mode),
        system: &str,
        machine: &MachineProfile,
        tasks: usize,
        mechanism: Mechanism,
    ) -> Self {
        let resembles = |one: &Compared| {
            (&*one.workload, one.mode) == (workload, mode)
                && (&*one.system, &*one.costs) == (system, &*machine.costs)
                && one.mechanism == mechanism
                && tasks <= one.tasks
        };
        let errors = Compared::all().filter(resembles).map(|one| one.error);
        let (curves, worst) = errors.fold((0, 0.0), |(curves, worst), error| {
            (curves + 1, f64::max(worst, error))
        });
        let band = mechanism.band(machine, tasks);
        Expected {
            curves,
            worst: worst.exp(),
            band: band.filter(|_| curves > 0),
        }
    }
}

impl Display for Expected {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.curves == 0 {
            return f.write_str("never compared with a measurement");
        }
        match self.band {
            Some(band) => write!(f, "expected error: {}; ", band.kind)?,
            None => f.write_str("no error is known for this; ")?,
        }
        let curves = count(self.curves, "measured curve");
        write!(
            f,
            "off by a factor of {:.2} at most from {curves}",
            self.worst
        )
    }
}

impl Simulated {
    /// The error to expect of the rate of `plan`, whose time `seen` attributes.
    pub fn expected(&self, plan: &Plan, seen: &Attribution) -> Expected {
        Expected::of(
            (plan.workload.name(), plan.mode),
            self.preset.name,
            &self.profile,
            plan.width(),
            Mechanism::of(seen),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baselines::Preset;

    #[test]
    fn each_line_names_what_exists() {
        let mut all = 0;
        for one in Compared::all() {
            all += 1;
            assert!(MachineProfile::named(&one.costs).is_ok(), "{one:?}");
            assert!(one.tasks > 0 && one.error.is_finite(), "{one:?}");
            let is_preset = one.system.parse::<Preset>().is_ok();
            assert!(
                !is_preset || workloads::find(&one.workload).is_some(),
                "{one:?}"
            );
        }
        assert!(all > 20, "{all} curves");
    }

    #[test]
    fn an_error_is_expected_of_what_was_compared() {
        let machine = |name| MachineProfile::named(name).expect("built in");
        let (xeon, other) = (machine("freebsd-96"), machine("opteron-48"));
        let small = xeon.with_topology(1, 4, 2).expect("possible");
        let lines = Mechanism::Lines;
        let expected = |mode, system, machine: &MachineProfile, tasks, mechanism| {
            Expected::of(("mmap1", mode), system, machine, tasks, mechanism)
        };
        let processes = Mode::Processes;
        let known = expected(processes, "freebsd-di", &xeon, 96, lines);
        assert!(known.curves >= 1 && known.worst > 1.0, "{known:?}");
        assert_eq!(known.band, Some(Band::SATURATED));
        let said = known.to_string();
        assert!(
            said.starts_with("expected error: a saturated lock, ±35 %; off by"),
            "{said}"
        );
        let fewer = expected(processes, "freebsd-di", &small, 8, lines);
        assert!(
            fewer.curves >= known.curves,
            "another shape, fewer tasks: {fewer:?}"
        );
        for unknown in [
            expected(Mode::Threads, "freebsd-di", &xeon, 96, lines),
            expected(processes, "scalevm", &xeon, 96, lines),
            expected(processes, "freebsd-di", &other, 48, lines),
            expected(processes, "freebsd-di", &xeon, 97, lines),
            expected(processes, "freebsd-di", &xeon, 96, Mechanism::OwnWork),
        ] {
            assert_eq!((unknown.curves, unknown.band), (0, None));
            assert_eq!(unknown.to_string(), "never compared with a measurement");
        }
    }
}
