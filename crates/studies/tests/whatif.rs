//! What a system gains without a cause, for published changes that took one away.

use bench::Plan;
use bench::simulated::{Cause, Simulated};
use std::time::Duration;
use studies::predict::score::Sign;
use studies::predict::{Mapping, StandIn};
use studies::published::{Curve, all};

#[global_allocator]
static ALLOCATOR: sim::Allocator = sim::Allocator;

/// A published pair whose change takes a cause away.
struct Pair {
    curve: &'static str,
    tasks: usize,
    cause: &'static str,
    /// The gain that was written down before it was compared with the measured one.
    predicted: f64,
    /// The gain since a task with credit loses what it would have waited for other locks, and by
    /// the VM as it is now.
    now: f64,
}

const PAIRS: [Pair; 5] = [
    Pair {
        curve: "macy-munmap/mmap1-processes",
        tasks: 96,
        cause: "lock invl gen",
        predicted: 1.27,
        now: 1.412,
    },
    Pair {
        curve: "macy-ebr/page_fault1-processes",
        tasks: 96,
        cause: "lock invl gen",
        predicted: 1.0,
        now: 1.0,
    },
    Pair {
        curve: "robot-fault3-vma/page_fault3-threads",
        tasks: 16,
        cause: "lock mmap_lock",
        predicted: 1.489,
        now: 1.489,
    },
    Pair {
        curve: "riel-invlpgb/tlb_flush2-threads",
        tasks: 72,
        cause: "flushes",
        predicted: 3.234,
        now: 3.234,
    },
    Pair {
        curve: "song-spf/page_fault1-threads",
        tasks: 192,
        cause: "lock mmap_lock",
        predicted: 3.587,
        now: 3.665,
    },
];

/// The length of a run.
const SPAN: Duration = Duration::from_millis(2);

impl Pair {
    fn published(&self) -> Curve {
        let curves = all().expect("published");
        let found = curves.into_iter().find(|curve| curve.id == self.curve);
        found.expect(self.curve)
    }

    /// The gain without the cause, on the machine and the preset that stand in for the curve's.
    fn gain(&self) -> f64 {
        let curve = self.published();
        let mapping = Mapping::built_in().expect("built in");
        // No preset is for this version; that of the nearest is.
        let kernel = curve.kernel.replace("4.16-mmotm", "4.15");
        let system = mapping.stand_in(&kernel, &curve.workload, curve.mode);
        let Ok(StandIn::Vm(preset, _)) = system else {
            panic!("{}: {system:?}", self.curve);
        };
        let machine = mapping.machine(&curve.machine).expect("a machine");
        let base = Simulated::new(preset, machine, 1);
        let plan = Plan {
            workload: workloads::find(&curve.workload).expect("a workload").into(),
            tasks: self.tasks,
            mode: curve.mode,
            count: None,
        };
        let cause: Cause = self.cause.parse().expect("a cause");
        let without = Simulated {
            without: vec![cause],
            ..base.clone()
        };
        let rate = |system: &Simulated| system.sample(&plan, SPAN).expect("runs").rate();
        rate(&without) / rate(&base)
    }
}

/// The gains are those that were written down, and those of the rule for locks inside of others.
#[test]
fn gains_are_as_predicted() {
    for pair in &PAIRS {
        let gain = pair.gain();
        let apart = (gain / pair.now - 1.0).abs();
        assert!(apart < 0.01, "{}: {gain:.3}", pair.curve);
    }
}

/// Each published change helps or does not as predicted. How much is within a factor of two for
/// three of the five. FreeBSD's gain on a machine that nobody knows is larger, as all figures of
/// that source are (`docs/predict.md`); speculative faults gain less than a fault without the lock,
/// as they still count readers and give up where they meet a change.
#[test]
fn signs_are_right_and_sizes_are_near() {
    let mut far = Vec::new();
    for pair in &PAIRS {
        let curve = pair.published();
        let measured = curve.change().expect("a pair").1;
        let signs = [pair.predicted, measured].map(Sign::of);
        assert_eq!(signs[0], signs[1], "{}: {measured:.2}", pair.curve);
        if !(0.5..=2.0).contains(&(pair.predicted / measured)) {
            far.push(pair.curve);
        }
    }
    let known = [
        "macy-munmap/mmap1-processes",
        "song-spf/page_fault1-threads",
    ];
    assert_eq!(far, known);
}
