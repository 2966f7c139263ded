//! The seeds' workloads run on every preset, on threads and simulated.

mod support;

use baselines::Preset;
use support::command::{json, number, success};

/// Runs one iteration of each of two tasks wherever scalevm's VM runs.
fn runs_on_every_preset(workload: &str) {
    for preset in Preset::ALL {
        for on in ["--on hosted", "--machine pc-16c32t"] {
            for mode in ["--processes", "--threads"] {
                let run =
                    format!("run {workload} -t 2 -s 1 --count 2 --vm {preset} {on} {mode} --json");
                let lines = json(&success(&run));
                let [times] = lines.as_slice() else {
                    panic!("{run}: {lines:?}")
                };
                assert_eq!(times["count"], 2, "{run}");
                assert!(number(&times["sys"]) > 0.0, "{run}: {times}");
            }
        }
    }
}

#[test]
fn build_runs_on_every_preset() {
    runs_on_every_preset("build");
}

#[test]
fn desktop_runs_on_every_preset() {
    runs_on_every_preset("desktop");
}

#[test]
fn exim_runs_on_every_preset() {
    runs_on_every_preset("exim");
}

#[test]
fn fragment_runs_on_every_preset() {
    runs_on_every_preset("fragment");
}
