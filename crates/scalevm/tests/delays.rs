//! `scalevm whatif` by delays, as a user runs it.

mod support;

use support::command::{exits, json, scalevm};

/// The lines of a short run by two tasks.
fn ask(arguments: &str) -> Vec<serde_json::Value> {
    let line = format!("whatif mmap1 -t 2 {arguments} --json");
    let (out, _) = exits(0, &mut scalevm(&line));
    json(&out)
}

#[test]
fn each_delay_has_a_line_and_the_gain_the_last() {
    let simulated = "--delays --machine arm64-16 --vm openbsd-biglock --duration 0.001";
    for arguments in ["--on hosted --duration 0.02", simulated] {
        let lines = ask(arguments);
        let (last, delays) = lines.split_last().expect("lines");
        assert!(delays.iter().all(|line| line["kind"] == "delay"));
        let of = |name: &str| -> Vec<f64> {
            let values = delays.iter().map(|line| line[name].as_f64());
            values.map(|value| value.expect("a number")).collect()
        };
        let (times, rates) = (of("delay"), of("rate"));
        assert!(times.is_sorted() && times[0] == 0.0, "{times:?}");
        assert!(rates[5] < rates[0] / 2.0, "{rates:?}");
        assert_eq!(last["kind"], "delays");
        assert!(last["alone"].as_f64() > Some(0.0), "{last}");
    }
    let lines = ask(simulated);
    assert_eq!(lines, ask(simulated), "virtual time");
    let gain = lines[6]["gain"]["median"].as_f64().expect("clear rates");
    assert!((1.3..3.0).contains(&gain), "two tasks and one lock: {gain}");
}

#[test]
fn a_system_that_cannot_be_asked_says_why() {
    for (arguments, why) in [
        ("--on os -t 1", "one task waits for nobody"),
        ("--on hosted -t 2000", "2000 tasks on "),
        (
            "--on os -t 2 --without flushes",
            "--without applies only to",
        ),
        ("--on os -t 2 --vm scalevm", "--vm selects a build"),
        ("--command true --on os -t 2", "cannot be delayed"),
    ] {
        let workload = if arguments.contains("--command") {
            ""
        } else {
            "mmap1 "
        };
        let (_, err) = exits(2, &mut scalevm(&format!("whatif {workload}{arguments}")));
        assert!(err.contains(why), "{arguments}: {err}");
    }
}
