//! The command as a user meets it.

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::command::{exits, failure, json, output, scalevm, success, text};

/// The numbers of a line with `min:`, `max:` and `total:`.
fn numbers(line: &str) -> [u64; 3] {
    let mut words = line.split(' ');
    let numbers = ["min:", "max:", "total:"].map(|name| {
        let word = words.next().unwrap_or_default();
        let digits = word.strip_prefix(name);
        let digits = digits.unwrap_or_else(|| panic!("no {name} in {line:?}"));
        digits.parse().expect("a number")
    });
    assert_eq!(words.next(), None, "{line}");
    numbers
}

#[test]
fn run_prints_the_lines_of_will_it_scale() {
    for mode in ["--processes", "--threads"] {
        let arguments = format!("run mmap1 -t 2 -s 2 --duration 0.2 --warmup 1 --on os {mode}");
        let stdout = success(&arguments);
        let lines: Vec<&str> = stdout.lines().collect();
        assert_eq!(lines.len(), 7, "{stdout}");
        assert_eq!(lines[0], "testcase:Anonymous memory mmap/munmap of 128MB");
        assert_eq!((lines[1], lines[3]), ("warmup", "measurement"));
        let mut sum = 0;
        for index in [2, 4, 5] {
            let [min, max, total] = numbers(lines[index]);
            assert!(min <= max && max <= total && total > 0, "{stdout}");
            assert!((min + max).abs_diff(total) <= 2, "two tasks: {stdout}");
            sum += if index > 2 { total } else { 0 };
        }
        let average = lines[6].strip_prefix("average:").expect("the last line");
        let average: u64 = average.parse().expect("a number");
        assert!((2 * average).abs_diff(sum) <= 3, "{stdout}");
    }
}

#[test]
fn run_prints_json_lines() {
    let stdout = success("run brk1 -t 2 -s 2 --duration 0.2 --warmup 1 --threads --json");
    let records = json(&stdout);
    assert_eq!(records.len(), 3);
    for (index, record) in records.iter().enumerate() {
        let kind = if index < 2 { "sample" } else { "summary" };
        assert_eq!(record["kind"], kind);
        assert_eq!(record["workload"], "brk1");
        assert_eq!(
            (&record["on"], &record["vm"]),
            (&"os".into(), &serde_json::Value::Null)
        );
        assert_eq!(
            (&record["tasks"], &record["mode"]),
            (&2.into(), &"threads".into())
        );
    }
    let total = |index: usize| records[index]["total"].as_f64().expect("a number");
    let average = records[2]["average"].as_f64().expect("a number");
    assert!((average - (total(0) + total(1)) / 2.0).abs() < 1e-3 * average);
    assert!(records[2]["stddev"].is_number());
}

#[test]
fn sweep_draws_and_names_the_peak() {
    let stdout = success("sweep mmap1 --cpus 2,1,2 -s 1 --duration 0.2 --warmup 1");
    assert!(stdout.contains("per task"), "{stdout}");
    assert!(stdout.contains("os: peak "), "{stdout}");
    assert!(stdout.contains("0 tasks"), "no plot: {stdout}");
    assert!(
        !stdout.contains('\u{1b}'),
        "colour off a terminal: {stdout}"
    );
    let json = success("sweep mmap1 --cpus 1,2 -s 1 --duration 0.05 --warmup 0 --json");
    let kinds: Vec<_> = json
        .lines()
        .map(|line| line.contains("\"summary\""))
        .collect();
    assert_eq!(kinds, [false, true, false, true, false], "{json}");
    let curve: serde_json::Value =
        serde_json::from_str(json.lines().last().expect("a line")).expect("JSON");
    assert_eq!(
        (&curve["kind"], &curve["system"]),
        (&"curve".into(), &"os".into())
    );
    assert!(curve["peak"]["rate"].as_f64() > Some(0.0), "{curve}");
}

#[test]
fn list_has_all_sections() {
    let stdout = success("list");
    for section in [
        "workloads",
        "systems",
        "presets",
        "locks",
        "machines",
        "topologies",
    ] {
        assert!(stdout.lines().any(|line| line == section), "{stdout}");
    }
    assert!(stdout.contains("tlb_flush1"));
    assert!(
        stdout.contains("  freebsd-96           2x24x2: "),
        "{stdout}"
    );
    for record in json(&success("list --json")) {
        assert!(record["kind"].is_string() && record["name"].is_string());
        assert_eq!(record["kind"] == "machine", record["shape"].is_string());
    }
}

#[test]
fn bad_usage_is_told_and_exits_with_2() {
    let errors = failure("run mmpa1", 2);
    assert!(
        errors.contains("similar") && errors.contains("'mmap1'"),
        "{errors}"
    );
    let errors = failure("run mmap1 --vm freebsd-epcoh", 2);
    assert!(errors.contains("'freebsd-epoch'"), "{errors}");
    for arguments in [
        "run mmap1 -t 0",
        "run mmap1 -t 2049",
        "run mmap1 -t two",
        "run mmap1 --duration 0",
        "run mmap1 --threads --processes",
        "run mmap1 --smt --no-affinity",
        "run mmap1 --on os --vm freebsd-di",
        "run mmap1 --seed 3",
        "run mmap1 --seeds 3 --vm scalevm",
        "sweep mmap1 --on os --seed 3",
        "latency --seed 3",
        "locks --seed 3",
        "sweep mmap1 --cpus 0",
        "sweep mmap1 --cpus 1,,2",
        "sweep mmap1 -s 0",
        "run",
    ] {
        assert!(!failure(arguments, 2).is_empty(), "{arguments}");
    }
}

#[test]
fn negative_numbers_are_refused_for_what_they_are() {
    for (arguments, option) in [
        ("run mmap1 -t -1", "--tasks <N>"),
        ("run mmap1 --duration -0.5", "--duration <SECONDS>"),
        ("run mmap1 --machine freebsd-96 --seed -1", "--seed <SEED>"),
        (
            "compare --minimum-effect -1% a b",
            "--minimum-effect <PERCENT>",
        ),
        ("check model --steps -4", "--steps <N>"),
    ] {
        let errors = failure(arguments, 2);
        let value = format!("for '{option}'");
        assert!(
            errors.contains("invalid value '-") && errors.contains(&value),
            "{errors}"
        );
    }
}

#[test]
fn too_many_tasks_are_warned_of_and_run() {
    let cpus = std::thread::available_parallelism().expect("a count").get();
    let tasks = 2 * cpus + 1;
    let arguments = format!("run brk1 -t {tasks} -s 1 --duration 0.01 --warmup 0");
    let output = output(&arguments);
    assert_eq!(output.status.code(), Some(0));
    let warning = text(&output.stderr);
    assert!(
        warning.contains(&format!("{tasks} tasks will share ")),
        "{warning}"
    );
}

#[test]
fn a_failing_call_is_reported_with_its_cause() {
    for mode in ["--processes", "--threads"] {
        let mut command = scalevm(&format!("run page_fault2 --duration 0.05 {mode}"));
        let (_, errors) = exits(4, command.env("TMPDIR", "/nonexistent"));
        assert!(
            errors.contains("page_fault2: task 0: temporary file: "),
            "{errors}"
        );
        assert!(
            errors.contains("(os error 2)") && errors.contains("/nonexistent"),
            "{errors}"
        );
    }
    let limited = format!(
        "ulimit -v 100000 && exec {} run mmap1 --duration 0.05",
        env!("CARGO_BIN_EXE_scalevm")
    );
    let (_, errors) = exits(4, Command::new("sh").args(["-c", &limited]));
    assert!(errors.contains("mmap1: task 0: mmap: ") && errors.contains("(os error 12)"));
}

/// A run that goes on until something happens to it, and its child processes.
fn endless(affinity: &[&str]) -> (Child, Vec<i32>) {
    let mut command = scalevm("run mmap1 -t 2 -s 0 --duration 0.05 --warmup 1 --processes");
    command.args(affinity);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut run = command.spawn().expect("the command starts");
    let stdout = run.stdout.as_mut().expect("piped");
    // Two lines behind `measurement`: there are finished samples.
    for _ in 0..6 {
        let mut byte = Vec::new();
        BufReader::with_capacity(1, &mut *stdout)
            .read_until(b'\n', &mut byte)
            .expect("a line");
    }
    let pid = run.id();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.expect("a list of children");
    let children: Vec<i32> = children
        .split_whitespace()
        .map(|child| child.parse().expect("a number"))
        .collect();
    assert_eq!(children.len(), 2);
    (run, children)
}

fn kill(pid: i32, signal: i32) {
    // SAFETY: a process that this test has started and not yet reaped.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

fn assert_gone(children: &[i32]) {
    let deadline = Instant::now() + Duration::from_secs(30);
    // The number may be used again, but not by another scalevm.
    let ours = |pid: &i32| {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "scalevm\n")
            && std::fs::read_to_string(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| line.replace('\0', " ").contains("mmap1 -t 2 -s 0"))
    };
    while children.iter().any(ours) {
        assert!(Instant::now() < deadline, "children outlive the run");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The CPUs a process may use, as the kernel prints them.
fn allowed(pid: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let mut fields = status.lines();
    let field = fields.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    field.expect("a field of every process").trim().to_owned()
}

#[test]
fn tasks_are_dealt_over_the_cpus() {
    let own = allowed("self");
    let several = std::thread::available_parallelism().expect("a count").get() > 1;
    for (option, pinned) in [("--smt", true), ("--no-affinity", false)] {
        let (mut run, children) = endless(&[option]);
        let places = children.iter().map(|child| allowed(&child.to_string()));
        let places: Vec<String> = places.collect();
        if pinned {
            assert!(
                places.iter().all(|cpu| cpu.parse::<usize>().is_ok()),
                "{places:?}"
            );
            assert_eq!(places[0] != places[1], several, "{places:?}");
        } else {
            assert_eq!(places, [own.clone(), own.clone()]);
        }
        assert_eq!(
            allowed(&run.id().to_string()),
            own,
            "the run itself is not pinned"
        );
        run.kill().expect("killed");
        run.wait().expect("reaped");
    }
}

#[test]
fn a_child_that_dies_is_reported() {
    let (run, children) = endless(&[]);
    kill(children[1], libc::SIGKILL);
    let output = run.wait_with_output().expect("the end");
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{errors}");
    let expected = "mmap1: task 1 ended on its own: signal: 9";
    assert!(errors.contains(expected), "{errors}");
    assert_gone(&children);
}

#[test]
fn ctrl_c_keeps_what_is_finished() {
    for (signal, code) in [(libc::SIGINT, 130), (libc::SIGTERM, 143)] {
        let (run, children) = endless(&[]);
        kill(run.id() as i32, signal);
        let output = run.wait_with_output().expect("the end");
        assert_eq!(output.status.code(), Some(code));
        let stdout = text(&output.stdout);
        let last = stdout.lines().last().unwrap_or_default();
        assert!(last.starts_with("average:"), "{stdout}");
        assert_gone(&children);
    }
}

#[test]
fn children_do_not_outlive_a_killed_run() {
    let (mut run, children) = endless(&[]);
    run.kill().expect("killed");
    run.wait().expect("reaped");
    assert_gone(&children);
}
