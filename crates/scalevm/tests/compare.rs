//! `scalevm compare` as a user meets it.

mod support;

use serde_json::Value;
use stats::record::{self, Record};
use std::path::Path;
use support::command::{output, run, success, text};
use support::scratch::Scratch;

/// Sample files of the statistics.
fn data(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../stats/tests/data");
    folder.join(name).to_str().expect("UTF-8").to_owned()
}

#[test]
fn seed_000_gives_the_figures_of_ministat() {
    let (before, after) = (data("before.txt"), data("after.txt"));
    let (stdout, stderr) = run(0, &["compare", &before, &after]);
    for figure in [
        "Difference at 95.0% confidence",
        "2.54218e+06 +/- 3652.34",
        "252.018% +/- 1.06257%",
        "(Student's t, pooled s = 2504.28)",
    ] {
        assert!(stdout.contains(figure), "{figure}:\n{stdout}");
    }
    assert!(stdout.contains(&format!("x {before}\n+ {after}\n+---")));
    assert_eq!(stderr, "");
    // -n: the table only; -A: all but the plot; three files: two differences.
    let (table, _) = run(0, &["compare", "-n", &before, &after]);
    assert!(!table.contains("Difference") && !table.contains("+---"));
    let (no_plot, _) = run(0, &["compare", "-A", &before, &after, &before]);
    assert_eq!(no_plot.matches("at 95.0% confidence").count(), 2);
    assert!(!no_plot.contains("+---"));
    for level in ["80", "90", "98", "99", "99.5"] {
        let (stdout, _) = run(
            0,
            &["compare", "-c", level, "-w", "40", "-s", &before, &after],
        );
        let level: f64 = level.parse().expect("a number");
        assert!(
            stdout.contains(&format!("at {level:.1}% confidence")),
            "{stdout}"
        );
    }
}

#[test]
fn numbers_are_judged_where_asked() {
    let (before, after) = (data("before.txt"), data("after.txt"));
    let (stdout, _) = run(0, &["compare", "--verdict", &before, &after]);
    assert!(stdout.contains("verdict: faster: ") && stdout.contains("p = 0.0079, exact"));
    assert!(stdout.contains("not known to be interleaved"), "{stdout}");
    let (stdout, _) = run(1, &["compare", "--verdict", &after, &before]);
    assert!(stdout.contains("verdict: slower: "), "{stdout}");
    let (stdout, _) = run(0, &["compare", "--json", &before, &after]);
    let found: Value = serde_json::from_str(&stdout).expect("JSON");
    let percent = found["sets"][1]["difference"]["percent"].as_f64();
    assert!(
        (percent.expect("a number") - 252.018).abs() < 1e-3,
        "{stdout}"
    );
}

#[test]
fn columns_and_delimiters_are_chosen() {
    let csv = Scratch::file("columns.csv", "a,1\nb,2\nc,3\nd,4\n");
    let (stdout, _) = run(
        0,
        &["compare", "-C", "2", "-d", ",", csv.path(), csv.path()],
    );
    assert!(stdout.contains("No difference proven"), "{stdout}");
    let (_, stderr) = run(2, &["compare", "-d", ",", csv.path(), csv.path()]);
    assert!(stderr.contains(":1: `a` is not a number"), "{stderr}");
}

#[test]
fn a_damaged_file_is_named_with_line_and_reason() {
    let good = data("before.txt");
    let numbers = Scratch::file("damaged.txt", "1\n2\nthree\n");
    let (stdout, stderr) = run(2, &["compare", &good, numbers.path()]);
    let expected = format!("scalevm: {}:3: `three` is not a number\n", numbers.path());
    assert_eq!((stdout.as_str(), stderr.as_str()), ("", expected.as_str()));

    let results = Scratch::file("damaged.json", "\n{\"kind\":\"sample\",\"workload\":7}\n");
    let (_, stderr) = run(2, &["compare", results.path(), results.path()]);
    assert!(stderr.contains("damaged.json:2: missing field"), "{stderr}");
    let (_, stderr) = run(2, &["compare", results.path(), &good]);
    assert!(stderr.contains("files of one kind"), "{stderr}");
    let (_, stderr) = run(2, &["compare", &good, "/nonexistent/file"]);
    assert!(
        stderr.contains("/nonexistent/file: No such file"),
        "{stderr}"
    );
}

#[test]
fn bad_usage_exits_with_2() {
    let good = data("before.txt");
    for arguments in [
        &["compare"][..],
        &["compare", "os", "os"],
        &["compare", "--workload", "mmap1", "os"],
        &["compare", "--workload", "mmap1", "os", "sloaris"],
        &[
            "compare",
            "--workload",
            "mmap1",
            "--on",
            "os",
            "os",
            "freebsd-di",
        ],
        &["compare", "--command", "true"],
        &["compare", "--command", "-t", "2", "true", "true"],
        &["compare", "--workload", "mmap1", "--seeds", "3", "os", "os"],
        &["compare", "--workload", "mmap1", "--seed", "3", "os", "os"],
        &["compare", "--command", "--seed", "3", "true", "true"],
        &["compare", "--command", "--lower-is-better", "true", "true"],
        &["compare", "--prepare", "true", &good, &good],
        &["compare", "--minimum-effect", "-1%", &good, &good],
        &["compare", "--self-test", "os", "os"],
        &["compare", "--comparisons", "3", &good, &good],
        &["compare", "--minimum-effect", "0.01", &good, &good],
        &["compare", "-c", "96", &good, &good],
        &[&["compare"][..], &[good.as_str(); 8]].concat(),
    ] {
        let (stdout, stderr) = run(2, arguments);
        assert!(stdout.is_empty() && !stderr.is_empty(), "{arguments:?}");
    }
}

/// Commands six times apart: no load of the machine reverses that.
const SHORT: &str = "sleep 0.01";
const LONG: &str = "sleep 0.06";

#[test]
fn a_slower_command_is_found_out() {
    let common = ["compare", "--command", "--runs", "6", "--duration", "0.1"];
    let (stdout, _) = run(1, &[&common[..], &[SHORT, LONG]].concat());
    assert!(stdout.contains("verdict: slower: sleep 0.06 against sleep 0.01"));
    assert!(stdout.contains("Stddev") && stdout.contains("A and B in turn"));

    let (stdout, _) = run(0, &[&common[..], &["--json", LONG, SHORT]].concat());
    let found: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(
        (&found["kind"], &found["word"]),
        (&"verdict".into(), &"faster".into())
    );
    assert_eq!(
        (&found["exit_code"], &found["interleaved"]),
        (&0.into(), &true.into())
    );
    assert!(found["ratio"]["low"].as_f64() > Some(1.0), "{stdout}");
    let runs = found["a"]["runs"].as_array().map(Vec::len);
    assert_eq!(runs, Some(6));
    assert!(found["machine"]["kernel"].is_string(), "{stdout}");
}

#[test]
fn too_few_runs_are_inconclusive() {
    let arguments = ["compare", "--command", "--runs", "3", "--duration", "0.02"];
    let (stdout, _) = run(3, &[&arguments[..], &[SHORT, LONG]].concat());
    let expected = "verdict: inconclusive (need about ";
    assert!(stdout.contains(expected), "{stdout}");
}

#[test]
fn a_failing_command_exits_with_4() {
    let (stdout, stderr) = run(4, &["compare", "--command", "true", "exit 7"]);
    assert_eq!(stdout, "");
    assert!(stderr.contains("`exit 7`: exit status: 7"), "{stderr}");
}

#[test]
fn systems_are_run_in_turn() {
    let arguments = "compare --workload brk1 -t 2 --threads --runs 4 --duration 0.1 --warmup 1 \
                     --minimum-effect 1000% os os";
    // Within a factor of eleven of itself, whatever the load.
    let stdout = success(arguments);
    assert!(stdout.starts_with("brk1 ("), "{stdout}");
    assert!(stdout.contains("2 threads, 0.1 s a run, A and B in turn"));
    assert!(stdout.contains("verdict: no difference shown: os against os"));
}

#[test]
fn all_operands_may_be_put_on_one_system() {
    let timing = "--runs 4 --duration 0.05 --warmup 0 --minimum-effect 1000";
    for (on, a, b) in [("os", "os", "os"), ("hosted", "scalevm", "freebsd-di")] {
        let stdout = success(&format!(
            "compare --workload brk1 --on {on} {timing} {a} {b}"
        ));
        let verdict = format!("verdict: no difference shown: {b} against {a}");
        assert!(stdout.contains(&verdict), "{stdout}");
    }
    let (_, stderr) = run(
        2,
        &[
            "compare",
            "--workload",
            "brk1",
            "--on",
            "os",
            "os",
            "freebsd-di",
        ],
    );
    assert!(
        stderr.contains("--on os conflicts with `freebsd-di`, which runs on hosted"),
        "{stderr}"
    );
}

#[test]
fn less_is_better_of_times() {
    let (slow, fast) = (
        Scratch::file("slow.txt", "20.1ms\n20.2ms\n20.3ms\n20.4ms\n20.5ms\n"),
        Scratch::file("fast.txt", "10.1ms\n10.2ms\n10.3ms\n10.4ms\n10.5ms\n"),
    );
    let (stdout, _) = run(0, &["compare", "--verdict", slow.path(), fast.path()]);
    assert!(stdout.contains("verdict: faster: "), "{stdout}");
    assert!(
        stdout.contains("0.0201        0.0205"),
        "in seconds: {stdout}"
    );
    let (stdout, _) = run(
        1,
        &["compare", "--verdict", "--json", fast.path(), slow.path()],
    );
    let found: Value = serde_json::from_str(stdout.lines().last().expect("a line")).expect("JSON");
    assert_eq!(
        (&found["word"], &found["better"], &found["unit"]),
        (&"slower".into(), &"lower".into(), &"s".into())
    );
    let (before, after) = (data("before.txt"), data("after.txt"));
    let lower = ["compare", "--verdict", "--lower-is-better"];
    run(1, &[&lower[..], &[&before, &after]].concat());
    run(0, &[&lower[..], &[&after, &before]].concat());
    let (_, stderr) = run(2, &["compare", slow.path(), &before]);
    assert!(stderr.contains("numbers with a unit of time"), "{stderr}");
}

#[test]
fn what_is_prepared_is_cleaned_up_and_not_timed() {
    let log = Scratch::new("prepared.log");
    let say = |what: &str| format!("echo {what} >> {}", log.path());
    // Long enough for a thread of a busy machine to get a CPU: a run that counted nothing is
    // refused.
    let timing = ["--duration", "0.05", "--warmup", "0"];
    let common = [&["compare", "--runs", "4"][..], &timing].concat();
    let around = [
        [
            "--prepare".to_owned(),
            format!("{}; sleep 0.2", say("before")),
        ],
        ["--cleanup".to_owned(), say("after-a")],
        ["--cleanup".to_owned(), say("after-b")],
    ];
    let around = around.concat();
    let around: Vec<&str> = around.iter().map(String::as_str).collect();
    let (a, b) = (say("a"), format!("{}; sleep 0.06", say("b")));
    let commands = ["--command", "--json", &a, &b];
    // Were the 0.2 s of the preparation counted, B would be three quarters as fast as A.
    let (stdout, _) = run(1, &[&common[..], &around, &commands].concat());
    let found: Value = serde_json::from_str(&stdout).expect("JSON");
    assert!(found["ratio"]["estimate"].as_f64() < Some(0.7), "{stdout}");
    let lines = std::fs::read_to_string(&log.0).expect("a log");
    let lines: Vec<&str> = lines.lines().collect();
    assert!(lines.len() >= 4 * 2 * 3, "{lines:?}");
    for three in lines.chunks(3) {
        let side = three.get(1).copied().unwrap_or_default();
        assert!(matches!(side, "a" | "b"), "{lines:?}");
        assert_eq!(
            three,
            ["before", side, &format!("after-{side}")],
            "{lines:?}"
        );
    }
    std::fs::remove_file(&log.0).expect("removed");
    let systems = ["--workload", "brk1", "--minimum-effect", "1000", "os", "os"];
    run(0, &[&common[..], &around, &systems].concat());
    let lines = std::fs::read_to_string(&log.0).expect("a log");
    assert_eq!(lines, "before\nafter-a\nbefore\nafter-b\n".repeat(4));
    let (_, stderr) = run(
        4,
        &[
            "compare",
            "--command",
            "--prepare",
            "exit 3",
            "true",
            "true",
        ],
    );
    assert!(stderr.contains("`exit 3`: exit status: 3"), "{stderr}");
}

#[test]
fn the_self_test_prints_a_rate() {
    let timing = "--comparisons 3 --runs 4 --duration 0.01 --warmup 0";
    // The machine may well be found unsound: 3 of 3 alarms are possible, if hardly likely.
    let own = output(&format!("compare --self-test {timing}"));
    let stdout = text(&own.stdout);
    assert!(matches!(own.status.code(), Some(0 | 3)), "{stdout}");
    assert!(stdout.starts_with("os: mmap1 ("), "{stdout}");
    assert!(stdout.contains("A against A, 3 comparisons of 4 + 4 runs"));
    let line = stdout
        .lines()
        .find(|line| line.contains("interleaved, rank test"));
    let line = line.expect("the rate of the test that decides");
    assert!(line.contains(" of 3)") && line.contains(" % ["), "{stdout}");

    let command = output(&format!(
        "compare --self-test --json --command true {timing}"
    ));
    let found: Value = serde_json::from_slice(&command.stdout).expect("JSON");
    assert_eq!(
        (&found["kind"], &found["rank"]["of"]),
        (&"self-test".into(), &3.into())
    );
    let code = if found["sound"] == true { 0 } else { 3 };
    assert_eq!(command.status.code(), Some(code));
}

/// `times` runs as `run --json` writes them.
fn results(name: &str, arguments: &str, times: usize) -> Scratch {
    let text: String = (0..times).map(|_| success(arguments)).collect();
    Scratch::file(name, &text)
}

#[test]
fn results_are_read_back_and_compared_by_runs() {
    let line = "run brk1 -t 2 -s 2 --duration 0.05 --warmup 0 --threads --json";
    let several = results("several.json", line, 4);
    let records = record::read(several.path()).expect("what was written is sound");
    assert_eq!(records.len(), 4 * 3);
    let runs = record::runs(&records);
    assert!(runs.len() == 4 && runs.iter().all(|run| run.complete && run.totals.len() == 2));
    let summaries = records.iter().filter_map(|record| match record {
        Record::Summary(summary) => Some(&summary.machine),
        Record::Sample(_) => None,
    });
    for machine in summaries {
        let machine = machine.as_ref().expect("it ran here");
        assert!(machine.version.starts_with("scalevm ") && machine.load_after.is_some());
        assert_eq!(machine.arguments[1..].join(" "), line);
    }

    let itself = [
        "compare",
        "--minimum-effect",
        "1000%",
        several.path(),
        several.path(),
    ];
    let (stdout, _) = run(0, &itself);
    assert!(stdout.contains("brk1, 2 threads, operations/s"), "{stdout}");
    assert!(stdout.contains("4 of A, 4 of B") && stdout.contains("not known to be interleaved"));
    assert!(stdout.contains("verdict: no difference shown"), "{stdout}");

    let single = results("single.json", line, 1);
    let (stdout, _) = run(3, &["compare", single.path(), several.path()]);
    assert!(
        stdout.contains("samples of one run are not independent"),
        "{stdout}"
    );

    let other = results(
        "other.json",
        "run brk1 -s 1 --duration 0.02 --warmup 0 --json",
        1,
    );
    let (_, stderr) = run(2, &["compare", other.path(), several.path()]);
    assert!(stderr.contains("no complete run"), "{stderr}");
}

#[test]
fn a_sweep_writes_records_too() {
    let line = "sweep brk1 --cpus 1,2 -s 1 --duration 0.02 --warmup 0 --json";
    let sweep = results("sweep.json", line, 1);
    let runs = record::runs(&record::read(sweep.path()).expect("sound"));
    let tasks: Vec<u32> = runs.iter().map(|run| run.subject.tasks).collect();
    assert_eq!(tasks, [1, 2]);
    assert!(runs.iter().all(|run| run.complete && run.average > 0.0));
}
