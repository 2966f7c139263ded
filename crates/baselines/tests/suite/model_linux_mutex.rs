//! Linux's mutex under the checker.

#[path = "../../../sync/tests/suite/parking/mod.rs"]
mod parking;

use baselines::linux::LinuxMutex;
use loomed::Loomed;
use parking::{exclusion, explore};

#[test]
fn two() {
    explore(Some(3), || exclusion::<LinuxMutex<Loomed>>(2));
}

/// All schedules of three CPUs with at most one preemption.
#[test]
fn three() {
    explore(Some(1), || exclusion::<LinuxMutex<Loomed>>(3));
}
