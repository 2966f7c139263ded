//! S17: anon_vma chains under the lock of the ancestor (case study 004).

mod family;

use super::lab::World;
use super::{Aim, Beyond, Lab, Probe, Row, System, Unit, Work};
use baselines::Preset;
use bench::Failure;
pub use family::{Deed, rate};

pub const SYSTEM: System = System {
    name: "S17",
    about: "anon_vma chains: children of one process fork, move their break, split and merge \
            regions",
    machines: &["opteron-48"],
    rows,
    beyond: &[beyond("fork1"), beyond("brk1")],
};

/// Children of one runner that fork, or move their break.
const fn beyond(workload: &'static str) -> Beyond {
    Beyond {
        after: Work::processes(workload, BATCHED, ALL),
        why: None,
    }
}

/// Children of one parent, on the cores of the machine: as many for each as the mail server has
/// processes.
const ALL: usize = 96;
const CPUS: usize = 48;

const REGRESSION: &str =
    "case study 004: \"spinlock->mutex change in 3.0 caused severe regression again\"";
const BATCHING: &str =
    "case study 004: \"making lock hold time longer increased performance\" (batching)";
const CONTENTION: &str = "case study 004: \"Mmap/munmap/brk … Causes lock contention on the root\"";
const OVERHEAD: &str =
    "case study 004: \"Fork locks the root anon_vma for every VMA … With and without contention\"";
const AIM: &str = "aim: children of one process do not wait for each other";

/// The presets whose root's lock spins, is a mutex, and is kept along a chain; and the default
/// design.
const SPIN: Preset = Preset::LINUX_2_6_39_RA;
const MUTEX: Preset = Preset::LINUX_3_0_RC2;
const BATCHED: Preset = Preset::LINUX_3_0_FIXES;
const OURS: Preset = Preset::SCALEVM;

/// Probes the rate of `children` children of one parent.
const fn probe(deed: Deed, preset: Preset, children: usize) -> Probe {
    let cpus = if children < CPUS { children } else { CPUS };
    let probe = match deed {
        Deed::Fork => Probe::new("children fork", preset, cpus, |probe, on, seed, effort| {
            rate(Deed::Fork, probe.preset, probe.size, on, seed, effort)
        }),
        Deed::Break => Probe::new(
            "children move their break",
            preset,
            cpus,
            |probe, on, seed, effort| rate(Deed::Break, probe.preset, probe.size, on, seed, effort),
        ),
        Deed::Hole => Probe::new(
            "children make holes",
            preset,
            cpus,
            |probe, on, seed, effort| rate(Deed::Hole, probe.preset, probe.size, on, seed, effort),
        ),
    };
    probe.of(children).once()
}

const WHY_MUTEX: &str = "with 96 children the spin lock has collapsed as well: each release of a \
     ticket is read by all that spin. With 8 and 16 children mutexes do 0.46 to 0.51 of the spin \
     locks' (cargo run --release -p scalevm-studies --example family)";
const WHY_ZEROING: &str = "each child zeroes a page a time, and a die of this machine zeroes 11 \
     GB/s for its six cores; and an unmap interrupts the CPUs on which a child ran before it was \
     moved. Without both costs it is 100 % (docs/studies/004.md)";

/// The operations, and their names.
pub const DEEDS: [(Deed, &str); 3] = [
    (Deed::Fork, "fork and exit"),
    (Deed::Break, "brk up and down"),
    (Deed::Hole, "munmap and mmap within a region"),
];

/// The rate of all children as a part of as many times the rate of one.
fn efficiency(deed: Deed, preset: Preset) -> impl Fn(&World) -> Option<Vec<f64>> {
    move |world| {
        let mut parts = world.ratio(probe(deed, preset, ALL), probe(deed, preset, 1))?;
        parts.iter_mut().for_each(|part| *part /= CPUS as f64);
        Some(parts)
    }
}

fn rows(lab: &Lab) -> Result<Vec<Row>, Failure> {
    let words = |quote, low, high| Aim::Words { quote, low, high };
    let mut rows = Vec::new();
    for (deed, what) in DEEDS {
        let of = |preset| probe(deed, preset, ALL);
        let text = format!("{what}, 96 children: mutexes over spin locks");
        let regression = words(REGRESSION, 0.0, 0.9);
        rows.push(
            Row::new(lab, text, regression, |world| {
                world.ratio(of(MUTEX), of(SPIN))
            })
            .map(|row| row.why(WHY_MUTEX)),
        );
        let text = format!("{what}, 96 children: the root locked once a chain over once a node");
        let gain = words(BATCHING, 1.1, 10.0);
        rows.push(Row::new(lab, text, gain, |world| {
            world.ratio(of(BATCHED), of(MUTEX))
        }));
        let quote = match deed {
            Deed::Fork => OVERHEAD,
            Deed::Break | Deed::Hole => CONTENTION,
        };
        let text = format!("linux-2.6.39-ra, {what}: 96 children over 48 times one");
        let collapses = words(quote, 0.0, 0.5);
        rows.push(Row::new(lab, text, collapses, efficiency(deed, SPIN)).map(share));
        let text = format!("scalevm, {what}: 96 children over 48 times one");
        let aim = Aim::AtLeast(0.9, AIM);
        rows.push(
            Row::new(lab, text, aim, efficiency(deed, OURS))
                .map(share)
                .map(|row| row.why(WHY_ZEROING)),
        );
        let text = format!("{what}, 96 children: scalevm over linux-3.0-fixes");
        rows.push(Row::new(lab, text, Aim::AtLeast(1.0, AIM), |world| {
            world.ratio(of(OURS), of(BATCHED))
        }));
    }
    Ok(rows.into_iter().flatten().collect())
}

fn share(row: Row) -> Row {
    row.unit(Unit::Share)
}
