//! `--store` and `scalevm history` as a user meets them.

mod support;

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use support::command::{json, run, scalevm, text};
use support::scratch::Scratch;

/// Keeps a short run of brk1 with `label` in `store`.
fn keep(store: &Scratch, label: &str, more: &[&str]) -> (String, String) {
    let arguments = "run brk1 -s 2 --duration 0.02 --warmup 0 --label";
    let mut arguments: Vec<&str> = arguments.split(' ').collect();
    arguments.extend([label, "--store", store.path()]);
    arguments.extend(more);
    run(0, &arguments)
}

#[test]
fn runs_are_kept_and_told_as_a_history() {
    let store = Scratch::new("two");
    let (stdout, stderr) = keep(&store, "first", &[]);
    assert!(stdout.contains("average:"), "{stdout}");
    assert!(stderr.contains("scalevm: kept in "), "{stderr}");
    let (printed, _) = keep(&store, "second", &["--json"]);
    let files = store.files();
    assert_eq!(files.len(), 2);
    let kept = fs::read_to_string(&files[1]).expect("a file");
    assert_eq!(printed, kept, "what is printed is what is kept");
    let lines = json(&kept);
    assert_eq!(lines.len(), 3);
    assert!(lines.iter().all(|line| {
        line["time"]
            .as_str()
            .is_some_and(|time| time.ends_with('Z'))
    }));
    assert_eq!(lines[2]["label"], "second");
    assert!(lines[2]["machine"]["kernel"].is_string() && lines[0]["label"].is_null());

    let (shown, stderr) = run(0, &["history", store.path()]);
    assert_eq!(stderr, "");
    for part in [
        "brk1, os, 1 process, on ",
        " first ",
        " second ",
        "2 samples of 1 run",
        "inconclusive",
    ] {
        assert!(shown.contains(part), "{part}:\n{shown}");
    }
    assert!(!shown.contains('\u{1b}'), "colour off a terminal");
    let found = json(&run(0, &["history", "--json", store.path()]).0);
    assert_eq!(found.len(), 2);
    assert!(
        found
            .iter()
            .all(|line| line["kind"] == "history" && line["workload"] == "brk1")
    );
    assert_eq!(
        (&found[0]["label"], &found[1]["label"]),
        (&"first".into(), &"second".into())
    );
    assert_eq!(found[1]["change"]["against"], "first");
    assert_eq!(found[1]["runs"][0]["average"], lines[2]["average"]);
    let last = json(&run(0, &["history", "--json", "--last", "1", store.path()]).0);
    assert_eq!(last, found[1..]);
    // Files are as good as the directory.
    let by_file: Vec<&str> = files.iter().filter_map(|file| file.to_str()).collect();
    let arguments = [&["history", "--json"][..], &by_file].concat();
    assert_eq!(json(&run(0, &arguments).0), found);
}

#[test]
fn simulated_sweeps_have_a_series_for_each_point_and_are_exported() {
    let store = Scratch::new("sweep");
    let sweep = "sweep mmap1 --topology 1x2x1 --cpus 1,2 --vm scalevm,freebsd-di --seeds 2 \
                 --duration 0.001 --store";
    for threads in ["--processes", "--threads"] {
        let arguments: Vec<&str> = sweep.split(' ').chain([store.path(), threads]).collect();
        run(0, &arguments);
    }
    let all = json(&run(0, &["history", "--json", store.path()]).0);
    assert_eq!(all.len(), 8);
    assert!(
        all.iter()
            .all(|line| line["machine"] == "1x2x1" && line["of"] == "seeds")
    );
    assert!(
        all.iter().all(|line| line["label"].is_string()),
        "the tool's commit or version"
    );
    let filters = ["--vm", "scalevm", "--workload", "mmap1", "--on", "sim"];
    let history = |more: &[&'static str]| [&["history", store.path()], &filters[..], more].concat();
    assert_eq!(json(&run(0, &history(&["--json"])).0).len(), 4);

    let (csv, _) = run(0, &history(&["--export", "csv"]));
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(
        rows[0].join(","),
        "tasks,processes,processes_idle,threads,threads_idle,linear"
    );
    assert_eq!(rows.len(), 4);
    assert_eq!((rows[2][0], rows[3][0]), ("1", "2"));
    let number = |row: usize, column: usize| rows[row][column].parse::<u64>().expect("a number");
    assert!(
        number(3, 1) > number(2, 1) && number(3, 5) == 2 * number(2, 5),
        "{csv}"
    );

    let (_, stderr) = run(2, &["history", store.path(), "--export", "csv"]);
    assert!(
        stderr.starts_with("scalevm: several curves found; choose one of: "),
        "{stderr}"
    );
    let (_, stderr) = run(
        2,
        &["history", store.path(), "--export", "csv", "--label", "x"],
    );
    assert!(
        stderr.starts_with("scalevm: no run has the label `x`; found "),
        "{stderr}"
    );
}

#[test]
fn compared_runs_are_kept_one_by_one() {
    let store = Scratch::new("compare");
    let compare = "compare --workload mmap1 --topology 1x2x1 -t 2 --runs 4 --duration 0.001 \
                   --minimum-effect 1% --store";
    let mut compare = scalevm(compare);
    compare.args([store.path(), "freebsd-di", "scalevm"]);
    let output = compare.output().expect("the command starts");
    assert!(
        matches!(output.status.code(), Some(0 | 1 | 3)),
        "{}",
        text(&output.stderr)
    );
    let found = json(&run(0, &["history", "--json", store.path()]).0);
    let runs: Vec<usize> = found
        .iter()
        .filter_map(|line| line["runs"].as_array().map(Vec::len))
        .collect();
    assert_eq!(runs, [4, 4]);
    assert_eq!(found[0]["runs"][3]["seed"], 4);
    let hosted = "compare --workload brk1 --runs 2 --duration 0.02 --label x --store";
    let mut hosted = scalevm(hosted);
    hosted.args([store.path(), "os", "scalevm"]);
    hosted.output().expect("the command starts");
    let found = json(
        &run(
            0,
            &["history", "--json", "--workload", "brk1", store.path()],
        )
        .0,
    );
    assert_eq!(found.len(), 2);
    assert!(
        found
            .iter()
            .all(|line| line["label"] == "x" && line["of"] == "runs")
    );
    let (_, stderr) = run(
        2,
        &[
            "compare",
            "--command",
            "true",
            "true",
            "--store",
            store.path(),
        ],
    );
    assert!(
        stderr.contains("--store and --label require --workload"),
        "{stderr}"
    );
}

#[test]
fn an_interrupted_run_keeps_what_was_finished() {
    let store = Scratch::new("interrupt");
    let mut command = scalevm("run brk1 -s 0 --duration 0.02 --warmup 0 --store");
    let mut child = command
        .arg(&store.0)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command starts");
    // Until two samples are on the disk.
    let lines = || {
        let file = fs::read_dir(&store.0).ok()?.next()?.ok()?.path();
        Some(fs::read_to_string(file).ok()?.lines().count())
    };
    while lines().unwrap_or(0) < 2 {
        assert!(
            child.try_wait().expect("a child").is_none(),
            "it runs until it is told to end"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    // A signal that cannot be caught.
    child.kill().expect("a signal");
    child.wait().expect("a child");
    let (_, stderr) = run(2, &["history", store.path()]);
    assert!(
        stderr.contains("left out 1 run that did not end"),
        "{stderr}"
    );
    assert!(stderr.contains("no complete run found"), "{stderr}");
    keep(&store, "whole", &[]);
    assert_eq!(
        json(&run(0, &["history", "--json", store.path()]).0).len(),
        1
    );
}

#[test]
fn damage_is_told_in_one_line() {
    let store = Scratch::new("damage");
    keep(&store, "whole", &[]);
    let file = &store.files()[0];
    let whole = fs::read_to_string(file).expect("a file");
    let name = file.display();
    fs::write(file, format!("{whole}{}", &whole[..50])).expect("a file");
    let (stdout, stderr) = run(0, &["history", store.path()]);
    assert_eq!(
        stderr,
        format!("scalevm: warning: {name}:4: the last line is incomplete and was ignored\n")
    );
    assert!(stdout.contains(" whole "), "{stdout}");
    // A profile in the directory of the results is no result.
    fs::write(
        file,
        format!("{{\"kind\":\"profile\",\"busy\":{{}}}}\n{whole}"),
    )
    .expect("a file");
    assert_eq!(run(0, &["history", store.path()]).1, "");
    fs::write(file, whole.replacen("\"tasks\":1", "\"tasks\":\"one\"", 1)).expect("a file");
    one_line(
        &run(2, &["history", store.path()]).1,
        &format!("scalevm: {name}:1: invalid type: string \"one\""),
    );
}

fn one_line(stderr: &str, begins: &str) {
    assert!(
        stderr.starts_with(begins) && stderr.lines().count() == 1,
        "{begins}\n{stderr}"
    );
}

#[test]
fn what_can_not_be_read_or_written_is_told_in_one_line() {
    let store = Scratch::new("missing");
    let missing = |end: &str| format!("scalevm: {}{end}: No such file or directory", store.path());
    one_line(&run(2, &["history", store.path()]).1, &missing(""));
    fs::create_dir(&store.0).expect("a directory");
    let empty = format!("scalevm: {}: no results\n", store.path());
    assert_eq!(run(2, &["history", store.path()]).1, empty);
    let nowhere = store.0.join("no/where");
    let nowhere = nowhere.to_str().expect("UTF-8");
    // Told before anything is measured.
    one_line(
        &run(2, &["run", "brk1", "-s", "100000", "--store", nowhere]).1,
        &missing("/no/where"),
    );
    keep(&store, "whole", &[]);
    let error = |more: &[&'static str]| run(2, &[&["history", store.path()], more].concat()).1;
    assert_eq!(
        error(&["--workload", "mmpa1"]),
        "scalevm: no run has the workload `mmpa1`; found brk1\n"
    );
    assert_eq!(
        error(&["--vm", "x"]),
        "scalevm: no run has a build, so none matches `x`\n"
    );
    assert!(error(&["--export", "xml"]).contains("invalid value 'xml'"));
    one_line(
        &run(2, &["run", "brk1", "-s", "1", "--label", "x"]).1,
        "scalevm: --label requires --store",
    );
    assert!(run(2, &["history"]).1.contains("required"));
    assert!(Path::new(store.path()).is_dir());
}
