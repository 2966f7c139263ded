//! The curves, and that broken locks are noticed here, too.

use super::run::{Sums, contended};
use super::*;
use crate::registry::ROWS;
use crate::subject::free;
use machine::CpuRange;
use sim::profile::Clocks;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

fn machine(sockets: usize, cores: usize) -> MachineProfile {
    let profile = MachineProfile::named("freebsd-96").expect("built in");
    profile.with_topology(sockets, cores, 1).expect("possible")
}

fn lock(name: &str) -> &'static Row {
    let row = ROWS.iter().find(|row| row.name == name);
    row.expect("there is one")
}

fn curve_of(name: &str, counts: &[usize]) -> Vec<Point> {
    curve_under(&Load::default(), name, counts)
}

fn curve_under(load: &Load, name: &str, counts: &[usize]) -> Vec<Point> {
    curve(&machine(2, 4), lock(name), load, counts, &(1..3)).expect("it works")
}

/// A saturated lock is as slow as its section, one CPU alone as all it does.
#[test]
fn each_size_of_a_load_matters() {
    let rates = |load: &Load| {
        let curve = curve_under(load, "mcs", &[1, 8]);
        [0, 1].map(|point| curve[point].throughput.median)
    };
    let usual = Load::default();
    let [alone, all] = rates(&usual);
    let lines = rates(&Load { lines: 6, ..usual });
    assert!(lines[0] > 0.9 * alone && lines[1] < 0.7 * all, "{lines:?}");
    let section = Load {
        section: 600.0,
        ..usual
    };
    let section = rates(&section);
    assert!(section[0] < 0.6 * alone && section[1] < 0.6 * all);
    let private = Load {
        private: 100.0,
        ..usual
    };
    let private = rates(&private);
    assert!(private[0] > 3.0 * alone && private[1] < 1.2 * all);
}

/// A section of 5 ns is over before the next request arrives: no CPU finds the lock held, until one
/// is delayed.
#[test]
fn a_disturbed_lock_has_the_queue_that_it_may_have() {
    let load = |disturbed| Load {
        lines: 0,
        section: 5.0,
        private: 375.0,
        disturbed,
        ..Load::default()
    };
    let rate = |disturbed| {
        let mut fast = machine(1, 16);
        fast.core.clocks = Clocks(vec![(8, 3.5), (16, 2.8)]);
        let curve = curve(&fast, lock("qspinlock"), &load(disturbed), &[1, 8], &(1..3));
        curve.expect("it works")
    };
    let (calm, disturbed) = (rate(false), rate(true));
    let ratio = |point: usize| disturbed[point].throughput.median / calm[point].throughput.median;
    assert!(
        (ratio(0) - 1.0).abs() < 0.05 && ratio(1) < 0.5,
        "{disturbed:?}"
    );
}

#[test]
fn a_curve_repeats() {
    let curve = curve_of("k42", &[1, 8]);
    assert_eq!(curve, curve_of("k42", &[1, 8]));
    assert!(curve[0].throughput.median > 1e6 && curve[1].throughput.median > 1e6);
}

#[test]
fn a_point_is_consistent() {
    for name in ["ticket", "adaptive", "spin-park-rw-read"] {
        for point in curve_of(name, &[2, 8]) {
            let Throughput { median, low, high } = point.throughput;
            assert!(low <= median && median <= high, "{name}: {point:?}");
            let average = point.operations as f64 / point.seconds / point.cpus as f64;
            let (min, max) = point.per_cpu;
            assert!(min <= average && average <= max, "{name}: {point:?}");
            assert!(point.operations >= 2 * ENOUGH, "{name}: {point:?}");
            let Fairness { extremes, jain } = point.fairness;
            assert!((0.0..=1.0).contains(&extremes), "{name}: {point:?}");
            assert!(
                jain > 1.0 / point.cpus as f64 && jain <= 1.0,
                "{name}: {point:?}"
            );
        }
    }
}

#[test]
fn fifo_locks_are_fair() {
    for name in ["ticket", "conbo", "mcs", "clh", "k42", "hapax", "qspinlock"] {
        let fairness = curve_of(name, &[8])[0].fairness;
        assert!(
            fairness.extremes > 0.9 && fairness.jain > 0.99,
            "{name}: {fairness:?}"
        );
    }
}

#[test]
fn counts_go_up_by_powers_of_two_and_then_by_sockets() {
    assert_eq!(counts(&machine(1, 1)), [1]);
    assert_eq!(counts(&machine(2, 4)), [1, 2, 4, 8]);
    let eight = MachineProfile::named("xeon-8s").expect("built in");
    assert_eq!(counts(&eight), [1, 2, 4, 8, 10, 20, 40, 80, 160]);
}

#[test]
fn what_can_not_be_simulated_is_refused() {
    let refused = curve(
        &machine(1, 2),
        lock("parking_lot"),
        &Load::default(),
        &[1],
        &(1..2),
    );
    let refused = refused.expect_err("it is not ours").to_string();
    assert!(refused.contains("parking_lot"), "{refused}");
    for cpus in [0, 3] {
        let refused = curve(
            &machine(1, 2),
            lock("ticket"),
            &Load::default(),
            &[cpus],
            &(1..2),
        );
        let refused = refused.expect_err("no such CPUs");
        assert!(matches!(refused, Failure::Unavailable(_)), "{refused:?}");
        assert!(refused.to_string().contains("has 2 CPUs"), "{refused}");
    }
}

#[test]
fn fairness_is_one_if_all_have_as_many_and_less_else() {
    assert_eq!((extremes(&[5, 5]), jain(&[5, 5])), (1.0, 1.0));
    assert_eq!((extremes(&[0, 6]), jain(&[0, 6])), (0.0, 0.5));
    assert_eq!((extremes(&[0, 0]), jain(&[0, 0])), (0.0, 0.0));
}

/// Loses an update now and then.
struct Loses(AtomicU64);

impl Subject for Loses {
    const EXCLUSIVE: bool = true;
    type Own<'a> = ();

    fn new(_: CpuRange) -> Self {
        Loses(AtomicU64::new(0))
    }

    fn own(&self) {}

    fn operate(&self, (): &mut (), section: impl FnOnce()) {
        if !self.0.fetch_add(1, Relaxed).is_multiple_of(100) {
            section();
        }
    }

    fn verify(&self, _: u64) -> Result<(), String> {
        free(true)
    }
}

/// Stays locked forever after a while.
struct Stays(AtomicU64);

impl Subject for Stays {
    const EXCLUSIVE: bool = true;
    type Own<'a> = ();

    fn new(_: CpuRange) -> Self {
        Stays(AtomicU64::new(0))
    }

    fn own(&self) {}

    fn operate(&self, (): &mut (), section: impl FnOnce()) {
        use machine::Tasks;
        while self.0.fetch_add(1, Relaxed) > 100 {
            sim::Sim::park();
        }
        section();
    }

    fn verify(&self, _: u64) -> Result<(), String> {
        free(true)
    }
}

#[test]
fn a_lost_update_is_found() {
    let run: Result<Sums, String> = contended::<Loses>(&machine(1, 2), &Load::default(), 2, 1);
    assert!(
        run.expect_err("it is wrong")
            .contains("critical sections left")
    );
}

#[test]
fn a_lock_that_is_never_free_is_found() {
    let run: Result<Sums, String> = contended::<Stays>(&machine(1, 2), &Load::default(), 2, 1);
    assert!(run.expect_err("it is stuck").contains("is blocked"));
}
