//! Recorded programs as workloads of the command.

#[path = "../../recording/tests/support/mod.rs"]
mod recorded;
mod support;

use recording::Recording;
use std::fs;
use support::command::{json, number};
use support::sample::{run, sample};
use support::scratch::Scratch;

fn write(folder: &Scratch, name: &str, recording: &Recording) -> String {
    let path = folder.inside(name);
    let to = fs::File::create(&path).expect("a file");
    recording.write(to).expect("written");
    path
}

#[test]
fn a_program_is_a_workload_on_each_system() {
    let folder = Scratch::folder("recorded");
    let program = write(&folder, "program.vmrec", &recorded::everything());
    for on in [
        "os",
        "hosted",
        "hosted --vm freebsd-di",
        "sim",
        "sim --machine freebsd-96",
    ] {
        for (tasks, mode) in [(1, "processes"), (2, "processes"), (3, "threads")] {
            let line = format!("run {program} -t {tasks} --{mode} --on {on}");
            let sample = sample(&folder, &line);
            assert_eq!(sample["workload"], "program", "{sample}");
            assert_eq!(
                (&sample["tasks"], &sample["mode"]),
                (&tasks.into(), &mode.into())
            );
        }
    }
}

#[test]
fn threads_of_a_role_are_multiplied() {
    let folder = Scratch::folder("roles");
    let pool = write(&folder, "pool.vmrec", &recorded::pool());
    let curve = "--threads --on sim --topology 1x8x1 -s 1 --warmup 0 --json";
    let rates = |role: &str| -> Vec<f64> {
        let line = format!("sweep {pool} --cpus 2,8 {curve}{role}");
        let lines = json(&run(&folder, 0, &line).0);
        let summaries = lines.iter().filter(|line| line["kind"] == "summary");
        summaries.map(|line| number(&line["average"])).collect()
    };
    let busiest = rates("");
    assert!(busiest[1] > 1.5 * busiest[0], "{busiest:?}");
    assert_eq!(busiest, rates(" --role worker"));
    assert_ne!(busiest, rates(" --role main"));
    let (_, error) = run(
        &folder,
        2,
        &format!("run {pool} --threads --role nobody --on sim"),
    );
    assert!(
        error.ends_with("--role nobody: no such threads; expected one of worker, main\n"),
        "{error}"
    );
}

#[test]
fn two_programs_run_at_the_same_time() {
    let folder = Scratch::folder("beside");
    let pool = write(&folder, "pool.vmrec", &recorded::pool());
    let other = write(&folder, "other.vmrec", &recorded::everything());
    let both = sample(&folder, &format!("run {pool} --beside {other} --on sim"));
    assert_eq!(both["workload"], "pool+other");
    let (_, error) = run(&folder, 2, "run mmap1 --beside pool.vmrec --on sim");
    assert!(
        error.ends_with("--beside applies only to a recorded program (.vmrec)\n"),
        "{error}"
    );
}

#[test]
fn a_replay_is_profiled() {
    let folder = Scratch::folder("profiled");
    let program = write(&folder, "program.vmrec", &recorded::everything());
    for on in ["os", "sim", "hosted"] {
        let line = format!("profile {program} --on {on} --duration 0.2 --json");
        let profile = &json(&run(&folder, 0, &line).0)[0];
        assert_eq!(profile["kind"], "profile");
        assert!(number(&profile["rate"]) > 0.0, "{profile}");
    }
}

#[test]
fn a_file_that_is_no_recording_is_refused() {
    let folder = Scratch::folder("refused");
    let text = folder.write("text.vmrec", "no recording");
    let missing = folder.inside("missing.vmrec");
    for file in [text, missing] {
        let (out, error) = run(&folder, 2, &format!("run {file}"));
        assert_eq!((out.as_str(), error.lines().count()), ("", 1), "{error}");
        assert!(error.contains(&file), "{error}");
    }
}

/// A recorded program is predicted from its rates as it was measured.
#[test]
fn a_recorded_program_is_predicted() {
    let folder = Scratch::folder("recorded-predict");
    let pool = write(&folder, "pool.vmrec", &recorded::pool());
    let system = "--vm linux-6.12 --topology 1x4x1";
    let measured = |tasks| {
        let line = format!("run {pool} --threads -t {tasks} {system} --seeds 1 --json");
        run(&folder, 0, &line).0
    };
    let results = folder.write("results.jsonl", &[2, 4].map(measured).concat());
    let predict = |of: &str, exit| {
        let line = format!("predict {of} --measured {results} {system} --json");
        json(&run(&folder, exit, &line).0)
    };
    // It is its own prediction, in another window.
    let found = predict(&pool, 0);
    assert_eq!(found[0]["curve"], "pool-threads");
    assert!(number(&found[0]["error"]) < 0.15, "{found:?}");
    let unnamed = predict("", 3);
    let why = unnamed[0]["not_predicted"].as_str().expect("a reason");
    assert!(
        why.contains("if it is a recorded program, name its file"),
        "{why}"
    );
}
