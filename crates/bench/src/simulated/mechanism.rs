//! The mechanism that holds tasks up in a simulated run, and the error to expect of such a
//! prediction.

use super::{Attribution, Band};
use sim::profile::MachineProfile;

/// What takes most of the tasks' time other than their own work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mechanism {
    /// Nothing much.
    OwnWork,
    /// Spin locks, and lines that several CPUs write.
    Lines,
    /// Locks for which tasks sleep.
    Sleeping,
    /// Interrupts that flush translations.
    Interrupts,
    /// The bandwidth of memory.
    Bandwidth,
}

/// A smaller part of the time holds nobody up.
const ENOUGH: f64 = 0.1;

impl Mechanism {
    /// All of them.
    pub const ALL: [Mechanism; 5] = [
        Mechanism::OwnWork,
        Mechanism::Lines,
        Mechanism::Sleeping,
        Mechanism::Interrupts,
        Mechanism::Bandwidth,
    ];

    /// The mechanism of a watched run.
    pub fn of(seen: &Attribution) -> Self {
        let parts = [
            (Mechanism::Lines, seen.lines_wait + seen.spinning),
            (Mechanism::Sleeping, seen.blocked),
            (Mechanism::Interrupts, seen.interrupts),
            (Mechanism::Bandwidth, seen.memory),
        ];
        let most = parts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let most = most.filter(|(_, part)| *part >= ENOUGH);
        most.map_or(Mechanism::OwnWork, |(mechanism, _)| mechanism)
    }

    /// In a few words.
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::OwnWork => "own work",
            Mechanism::Lines => "contended lines",
            Mechanism::Sleeping => "sleeping locks",
            Mechanism::Interrupts => "interrupts",
            Mechanism::Bandwidth => "memory bandwidth",
        }
    }

    /// The band of such a prediction for `tasks` tasks on a machine, if there is one. Tasks that do
    /// their own work on several sockets have none: such predictions were several times too high.
    pub(super) fn band(self, machine: &MachineProfile, tasks: usize) -> Option<Band> {
        let topology = &machine.topology;
        match self {
            Mechanism::OwnWork if tasks <= topology.cores => Some(Band::DISJOINT),
            Mechanism::Lines if topology.sockets <= MOST_SOCKETS => Some(Band::SATURATED),
            Mechanism::Bandwidth => Some(Band::BANDWIDTH),
            _ => None,
        }
    }
}

/// Beyond this number of sockets only the shape of a curve is predicted.
const MOST_SOCKETS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_part_is_the_mechanism_and_has_its_band() {
        let nothing = Attribution {
            whole: 1.0,
            lines_wait: 0.0,
            spinning: 0.0,
            interrupts: 0.0,
            memory: 0.0,
            blocked: 0.0,
            queued: 0.0,
            own: 1.0,
            locks: Vec::new(),
            callers: Vec::new(),
            lines: Vec::new(),
            objects: Vec::new(),
        };
        let lines = Attribution {
            lines_wait: 0.06,
            spinning: 0.05,
            blocked: 0.1,
            ..nothing.clone()
        };
        let asleep = Attribution {
            blocked: 0.12,
            ..lines.clone()
        };
        let machine = MachineProfile::named("freebsd-96").expect("a machine");
        let eight = MachineProfile::named("xeon-8s").expect("a machine");
        for (seen, mechanism, machine, tasks, band) in [
            (
                &nothing,
                Mechanism::OwnWork,
                &machine,
                24,
                Some(Band::DISJOINT),
            ),
            (&nothing, Mechanism::OwnWork, &machine, 25, None),
            (
                &lines,
                Mechanism::Lines,
                &machine,
                96,
                Some(Band::SATURATED),
            ),
            (&lines, Mechanism::Lines, &eight, 96, None),
            (&asleep, Mechanism::Sleeping, &machine, 96, None),
        ] {
            assert_eq!(Mechanism::of(seen), mechanism, "{seen:?}");
            assert_eq!(mechanism.band(machine, tasks), band, "{mechanism:?}");
        }
    }
}
