//! Each figure has its runs: none vanishes because the system does not measure what it is made of.

use super::*;
use bench::Times;
use bench::simulated::Attribution;
use sim::profile::MachineProfile;
use std::time::Duration;

/// The number of each system's figures, on the machines that it is reproduced on.
const FIGURES: [(&str, usize); 21] = [
    ("S1", 5),
    ("S2", 5),
    ("S3", 5),
    ("S4", 3),
    ("S5", 3),
    ("S6", 11),
    ("S7", 3),
    ("S8", 2),
    ("S9", 4),
    ("S10", 3),
    ("S11", 3),
    ("S12", 4),
    ("S13", 2),
    ("S14", 3),
    ("S15", 6),
    ("S16", 15),
    ("S17", 15),
    ("S18", 11),
    ("S19", 16),
    ("S20", 6),
    ("S21", 3),
];

/// A run that has all values that any figure is made of.
fn outcome() -> Outcome {
    const OTHERS: [&str; 13] = [
        "bad", "least", "most", "median", "worst", "dropped", "frames", "munmap", "di", "swap",
        "unlock", "split", "regions",
    ];
    let second = Duration::from_secs(1);
    let times = Times {
        real: second,
        user: second,
        sys: second,
        faults: None,
    };
    let attribution = Attribution {
        whole: 1.0,
        lines_wait: 0.1,
        spinning: 0.1,
        interrupts: 0.1,
        memory: 0.1,
        blocked: 0.1,
        queued: 0.1,
        own: 0.4,
        locks: Vec::new(),
        callers: Vec::new(),
        lines: Vec::new(),
        objects: Vec::new(),
    };
    Outcome {
        times: Some((times, 1)),
        attribution: Some(attribution),
        others: OTHERS.iter().map(|&name| (name, 1.0)).collect(),
        ..Outcome::of(1.0)
    }
}

/// The figures of a system on a machine where all that they ask for has that outcome.
fn figures(system: &System, machine: &str) -> Vec<Row> {
    let machine = MachineProfile::named(machine).expect("a machine");
    let mut lab = Lab::new(machine, Effort::full(3));
    let wanted = |lab: &Lab| lab.wanted(|lab| (system.rows)(lab).map(drop));
    let asked = wanted(&lab).expect("figures");
    lab.pretend(&asked, &outcome());
    let more = wanted(&lab).expect("figures");
    assert!(more.is_empty(), "{}: asked later: {more:?}", system.name);
    (system.rows)(&lab).expect("figures")
}

#[test]
fn all_figures_of_all_systems_have_their_runs() {
    let count = |system: &System| {
        let machines = system.machines.iter();
        machines.map(|machine| figures(system, machine).len()).sum()
    };
    let counts: Vec<(&str, usize)> = SYSTEMS.iter().map(|one| (one.name, count(one))).collect();
    assert_eq!(counts, FIGURES);
}

/// A figure whose runs fail is left out, and its runs are not wanted again.
#[test]
fn runs_are_wanted_once() {
    let system = find("S5").expect("a system");
    let machine = MachineProfile::named("freebsd-96").expect("a machine");
    let mut lab = Lab::new(machine, Effort::full(3));
    let wanted = |lab: &Lab| lab.wanted(|lab| (system.rows)(lab).map(drop));
    let mut asked = wanted(&lab).expect("figures");
    let failed = asked.pop().expect("runs");
    lab.pretend(&asked, &outcome());
    assert_eq!(wanted(&lab).expect("figures"), [failed]);
    lab.fail(failed);
    assert!(wanted(&lab).expect("figures").is_empty());
    assert_eq!((system.rows)(&lab).expect("figures").len(), 2);
}
