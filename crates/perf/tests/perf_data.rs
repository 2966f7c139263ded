//! Files of the program perf, which must be installed. Without root, perf records less; where a
//! container forbids recording, the tests say that they are skipped.

use perf::script;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Counts in a shell.
const COUNT: &str = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done; sleep 0.1; :";

/// Records a shell into `file`; returns false if that is not allowed.
fn record(file: &Path) -> bool {
    let mut all = vec![
        "-a",
        "-e",
        "lock:contention_begin",
        "-e",
        "lock:contention_end",
    ];
    all.extend(["-e", "sched:sched_switch"]);
    let own: [&[&str]; 2] = [&all, &[]];
    own.into_iter().any(|events| {
        let mut perf = Command::new("perf");
        perf.args(["record", "-q", "-g", "-e", "cpu-clock", "-o"]);
        let perf = perf.arg(file).args(events).args(["--", "sh", "-c", COUNT]);
        let run = perf.output().expect("perf is installed");
        let errors = String::from_utf8_lossy(&run.stderr);
        if !run.status.success() {
            eprintln!("skipped: perf record {}: {errors}", events.join(" "));
        }
        run.status.success()
    })
}

#[test]
fn a_recording_is_read_and_a_damaged_one_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("perf.data");
    if !record(&file) {
        return;
    }
    let name = file.to_string_lossy();
    let bytes = fs::read(&file).expect("the recording");
    let profile = script::parse(&name, &bytes).expect("it is read");
    let profile = profile.expect("a recording");
    let shell = profile
        .busy
        .iter()
        .filter(|(stack, _)| stack.starts_with("sh;"));
    let shell: f64 = shell.map(|(_, seconds)| seconds).sum();
    // The shell counts for some tenths of a second.
    assert!(shell > 0.02, "{shell} s of {}", profile.busy.folded());
    if !profile.hidden.waits {
        // It then waits for `sleep`.
        let waits = profile.waits.iter().any(|(stack, time)| {
            stack.contains("idle;sh;") && stack.contains("wait") && time > 0.05
        });
        assert!(waits, "{}", profile.waits.folded());
    }
    let damaged = folder.path().join("damaged.data");
    let check = |bytes: &[u8]| {
        fs::write(&damaged, bytes).expect("a file");
        match script::parse(&damaged.to_string_lossy(), bytes) {
            Ok(profile) => assert!(profile.is_none_or(|one| !one.bottleneck.is_empty())),
            Err(error) => {
                let line = error.to_string();
                assert!(
                    line.contains("damaged.data") && !line.contains('\n'),
                    "{line}"
                );
            }
        }
    };
    for end in (0..bytes.len()).step_by(bytes.len() / 10) {
        check(&bytes[..end]);
    }
    // The header and the attributes of events are most of what can be wrong.
    for at in (8..400)
        .step_by(37)
        .chain((400..bytes.len()).step_by(bytes.len() / 10))
    {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x41;
        check(&flipped);
    }
}
