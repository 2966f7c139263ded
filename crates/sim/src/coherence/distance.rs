//! The times that cache lines take between CPUs.

use crate::engine::Time;
use crate::profile::{Class, MachineProfile};

/// The three legs (one-way latencies) of a transfer: the request to the directory, the snoop to the
/// holder, the data back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Legs {
    pub(crate) request: Time,
    pub(crate) snoop: Time,
    pub(crate) data: Time,
}

impl Legs {
    /// Those of a line that is at hand. The shortest time for the snoop: a CPU that gets the line
    /// can use it once before another takes it.
    pub(crate) const AT_HAND: Legs = Legs {
        request: 0,
        snoop: 1,
        data: 0,
    };

    fn new(total: Time, shares: [f64; 3]) -> Self {
        let request = (total as f64 * shares[0]).round() as Time;
        let snoop = (total as f64 * shares[1]).round() as Time;
        Legs {
            request,
            snoop,
            data: total.saturating_sub(request + snoop),
        }
    }

    pub(crate) fn total(self) -> Time {
        self.request + self.snoop + self.data
    }

    /// The time from the directory on.
    pub(crate) fn served(self) -> Time {
        self.snoop + self.data
    }
}

/// Distance classes between all CPUs, and their costs.
pub(super) struct Distances {
    cpus: usize,
    /// The class from each CPU to each other.
    class: Box<[u8]>,
    /// The legs of each class.
    legs: Box<[Legs]>,
    /// For each class, by how much serving a reader delays the next.
    occupancy: Box<[Time]>,
}

impl Distances {
    pub(super) fn new(profile: &MachineProfile) -> Self {
        let cpus = profile.cpus();
        let transfer = &profile.transfer;
        let near = [0, transfer.sibling, transfer.cluster, transfer.socket];
        let totals = near.iter().chain(&transfer.hops);
        // Threads of a core share its cache, which already has the line, so only reaching it takes
        // time.
        let shares = |class| {
            if class == 1 {
                [0.5, 0.5, 0.0]
            } else {
                transfer.legs
            }
        };
        let legs = totals.enumerate();
        let legs = legs.map(|(class, &total)| Legs::new(total, shares(class)));
        let readers = &transfer.read_occupancy;
        let near = [0, readers.sibling, readers.cluster, readers.socket];
        let occupancy = near.iter().chain(&readers.hops).copied();
        let pairs = (0..cpus * cpus).map(|pair| profile.distance(pair / cpus, pair % cpus));
        let legs: Box<[Legs]> = legs.collect();
        Distances {
            cpus,
            class: pairs.map(number).collect(),
            occupancy: occupancy.collect(),
            legs,
        }
    }

    #[inline]
    fn class(&self, from: u16, to: u16) -> usize {
        self.class[usize::from(from) * self.cpus + usize::from(to)] as usize
    }

    /// The cost of a transfer to `to` from `from`.
    #[inline]
    pub(super) fn legs(&self, from: u16, to: u16) -> Legs {
        self.legs[self.class(from, to)]
    }

    /// The time for which serving a reader at this distance keeps the line busy.
    pub(super) fn occupancy(&self, from: u16, to: u16) -> Time {
        self.occupancy[self.class(from, to)]
    }

    /// The shortest time from a request to the moment a CPU of another core loses the line.
    pub(super) fn warning(&self) -> Time {
        let others = self.legs[2..].iter().filter(|legs| legs.total() > 0);
        others
            .map(|legs| legs.request + legs.snoop)
            .min()
            .unwrap_or(0)
    }

    /// The shortest time from a request to the moment the other thread of the core loses the line.
    pub(super) fn sibling_warning(&self) -> Time {
        self.legs[1].request + self.legs[1].snoop
    }
}

fn number(class: Class) -> u8 {
    match class {
        Class::SameThread => 0,
        Class::Sibling => 1,
        Class::Cluster => 2,
        Class::Socket => 3,
        Class::Hops(hops) => 3 + hops,
    }
}
