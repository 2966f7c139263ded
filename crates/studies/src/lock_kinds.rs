//! S19: ticket lock, CONBO and K42 (case study 004's lock experiment).

use super::lab::World;
use super::{Aim, Lab, Point, Row, System};
use bench::Failure;
use lockbench::simulated::counts;

pub const SYSTEM: System = System {
    name: "S19",
    about: "ticket lock, CONBO, MCS and K42: the lock micro-benchmark",
    machines: &["xeon-4s", "xeon-8s"],
    rows,
    beyond: &[],
};

const COLLAPSE: &str = "aim: the ticket lock keeps no more than 20 % of its peak at all CPUs";
const KEPT: &str = "aim: a queue lock keeps 60 % of its peak at all CPUs";
const QUEUES: &str =
    "case study 004: K42 \"performs much better than ticket locks on 4-8S\"; 1.5× at least";
const HARM: &str = "case study 004: CONBO \"does no harm\"; below 1.2× is no difference";
const MANY: &str =
    "case study 004: CONBO has \"nice improvements with many threads\"; 1.2× at least";
const SOCKET: &str = "case study 004: \"not much difference on 1S/2S\"; 1.5× at most";
const ALONE: &str =
    "case study 004: K42 \"uncontended slightly slower (cmpxchg in unlock)\"; 1.5× at most";

const WHY_TICKET: &str = "how fast the line of the turn can be read by all, which is assumed of \
     the machine, decides: with twice `read_occupancy` it keeps 14 % on xeon-4s, with half 30 %";
const WHY_KEPT: &str = "its peak is reached within a socket, where a line moves about 3 times as \
     fast as between two; from one socket on it keeps level (with one core a socket K42 keeps 73 \
     %, MCS 86 %)";

/// Words for no less than this.
const fn at_least(low: f64, quote: &'static str) -> Aim {
    let high = f64::INFINITY;
    Aim::Words { quote, low, high }
}

/// Words for no more than this.
const fn at_most(high: f64, quote: &'static str) -> Aim {
    let low = 0.0;
    Aim::Words { quote, low, high }
}

fn rows(lab: &Lab) -> Result<Vec<Row>, Failure> {
    let machine = lab.machine();
    let (counts, socket, all) = (counts(machine), machine.topology.cores, machine.cpus());
    let kept = |lock| {
        let counts = counts.clone();
        move |world: &World| kept(world, lock, &counts)
    };
    let against = |lock, cpus| {
        move |world: &World| {
            world.ratio(
                Point::Lock { lock, cpus },
                Point::Lock {
                    lock: "ticket",
                    cpus,
                },
            )
        }
    };
    let row = |what: &str, aim, quantity: &dyn Fn(&World) -> Option<Vec<f64>>| {
        Row::new(lab, what, aim, quantity)
    };
    let why = |why| move |row: Row| row.why(why);
    let rows = [
        row(
            "ticket, kept of its peak",
            Aim::AtMost(0.2, COLLAPSE),
            &kept("ticket"),
        )
        .map(why(WHY_TICKET)),
        row(
            "mcs, kept of its peak",
            Aim::AtLeast(0.6, KEPT),
            &kept("mcs"),
        )
        .map(why(WHY_KEPT)),
        row(
            "k42, kept of its peak",
            Aim::AtLeast(0.6, KEPT),
            &kept("k42"),
        )
        .map(why(WHY_KEPT)),
        row(
            &format!("k42 over ticket, {all} CPUs"),
            at_least(1.5, QUEUES),
            &against("k42", all),
        ),
        row(
            &format!("k42 over ticket, {socket} CPUs"),
            at_most(1.5, SOCKET),
            &against("k42", socket),
        ),
        row(
            "conbo over ticket, least of all counts",
            at_least(1.0 / 1.2, HARM),
            &|world| harm(world, &counts),
        ),
        row(
            &format!("conbo over ticket, {all} CPUs"),
            at_least(1.2, MANY),
            &against("conbo", all),
        ),
        row("k42 over ticket, ns alone", at_most(1.5, ALONE), &|world| {
            world.ratio(
                Point::Uncontended { lock: "k42" },
                Point::Uncontended { lock: "ticket" },
            )
        }),
    ];
    Ok(rows.into_iter().flatten().collect())
}

/// A lock's rate at the last of `counts`, as a part of its peak.
fn kept(world: &World, lock: &'static str, counts: &[usize]) -> Option<Vec<f64>> {
    let curve = counts
        .iter()
        .map(|&cpus| world.of(Point::Lock { lock, cpus }));
    let curve: Vec<Vec<f64>> = curve.collect::<Option<_>>()?;
    let last = curve.last()?;
    let peak = |seed: usize| curve.iter().map(|rates| rates[seed]).fold(0.0, f64::max);
    Some(
        last.iter()
            .enumerate()
            .map(|(seed, rate)| rate / peak(seed))
            .collect(),
    )
}

/// The least that CONBO has of the ticket lock's rate.
fn harm(world: &World, counts: &[usize]) -> Option<Vec<f64>> {
    let ratio = |cpus| {
        world.ratio(
            Point::Lock {
                lock: "conbo",
                cpus,
            },
            Point::Lock {
                lock: "ticket",
                cpus,
            },
        )
    };
    let ratios: Vec<Vec<f64>> = counts
        .iter()
        .map(|&cpus| ratio(cpus))
        .collect::<Option<_>>()?;
    let least = |a: Vec<f64>, b: Vec<f64>| a.into_iter().zip(b).map(|(a, b)| a.min(b)).collect();
    ratios.into_iter().reduce(least)
}
