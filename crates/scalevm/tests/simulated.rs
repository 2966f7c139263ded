//! Workloads on simulated machines, by the command.

mod support;

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use support::command::{failure, json, number, output, scalevm, success, text};

#[test]
fn the_same_seeds_give_the_same_bytes() {
    let sweep = "sweep mmap1 --machine freebsd-96 --processes --cpus 1,4,12 \
                 --vm freebsd-di,freebsd-epoch,scalevm --seeds 2 --duration 0.001 --json";
    let first = success(sweep);
    assert_eq!(first, success(sweep));
    let other = success(&format!("{sweep} --seed 7"));
    assert_ne!(first, other, "the seed matters");
    let lines = json(&first);
    // Two samples and a summary a point; each curve's shape, and its bottleneck at its end.
    assert_eq!(lines.len(), 3 * 3 * 3 + 3 + 3);
    let summary = &lines[2];
    assert_eq!(summary["kind"], "summary");
    assert_eq!(summary["on"], "sim");
    assert_eq!(summary["profile"], "freebsd-96");
    assert_eq!(summary["topology"], "2x24x2");
    assert!(summary["machine"].is_null(), "nothing of this computer");
}

#[test]
fn the_number_of_machines_at_once_changes_no_byte() {
    for line in [
        "sweep mmap1 page_fault1 --both --machine arm64-16 --cpus 1,3,16 --seeds 2 --duration \
         0.001 --json",
        "sweep fork1 --both --machine arm64-16 --cpus 1,4 --vm scalevm,freebsd-di --duration 0.001",
        "sweep mmap1 --machine arm64-16 --cpus 1,5,16 --vm linux-6.12,scalevm --seeds 2 --duration \
         0.001 --json",
        "sweep brk1 --machine arm64-16 --cpus 1,2 --seeds 2 --duration 0.001",
        "sweep mmap1 --machine arm64-16 --cpus 16,513 --seeds 1 --duration 0.001 --json",
        "locks --on sim --machine arm64-16 --only mutex --threads 1,8 --seeds 2 --json",
    ] {
        let with = |at_once: &str| {
            let output = scalevm(line).env("SCALEVM_JOBS", at_once).output();
            let output = output.expect("the command starts");
            (output.status.code(), text(&output.stdout))
        };
        let one_by_one = with("1");
        assert!(!one_by_one.1.is_empty(), "{line}");
        assert_eq!(with("5"), one_by_one, "{line}");
    }
}

/// What is printed after Ctrl-C would have been printed anyway, but for summaries that say so and
/// the shapes of shorter curves.
#[test]
fn an_interrupted_sweep_has_whole_samples() {
    let sweep = "sweep mmap1 brk1 --machine arm64-16 --cpus 1,2,3,4,5,6,7,8 --seeds 20 --duration \
                 0.001 --json";
    let whole = success(sweep);
    let mut command = scalevm(sweep);
    let mut run = command
        .env("SCALEVM_JOBS", "2")
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut stdout = BufReader::new(run.stdout.take().expect("piped"));
    let mut lines = String::new();
    stdout.read_line(&mut lines).expect("a line");
    // SAFETY: a process that this test has started and not yet reaped.
    assert_eq!(unsafe { libc::kill(run.id() as i32, libc::SIGINT) }, 0);
    stdout.read_to_string(&mut lines).expect("the rest");
    assert_eq!(run.wait().expect("the end").code(), Some(130));
    assert!(
        lines.ends_with('\n') && lines.len() < whole.len(),
        "{lines}"
    );
    let is_whole = |line: &&str| !line.contains("\"curve\"") && !line.contains("interrupted");
    let missing = lines.lines().filter(is_whole);
    let mut missing = missing.filter(|line| !whole.contains(line));
    assert_eq!(missing.next(), None, "{whole}");
}

#[test]
fn the_bottleneck_is_named() {
    let bottleneck = |vm: &str| {
        let run = format!("run mmap1 -t 24 --machine freebsd-96 --vm {vm} --seeds 1 --json");
        let lines = json(&success(&run));
        let last = lines.last().expect("lines").clone();
        assert_eq!(last["kind"], "attribution");
        last["bottleneck"].as_str().expect("a sentence").to_owned()
    };
    // By the lock's name, or by its line's.
    let names = |vm: &str, lock: &str, line: &str| {
        let bottleneck = bottleneck(vm);
        assert!(
            bottleneck.contains(lock) || bottleneck.contains(line),
            "{bottleneck}"
        );
    };
    names("freebsd-di", "invl gen", "Di.mutex");
    names("freebsd-epoch", "swap", "MutexSwap");
}

#[test]
fn tasks_are_placed_and_fitted() {
    let sweep = "run mmap1 --vm freebsd-di --topology 2x2x1 --seeds 1 --duration 0.001 --json -t 2";
    let pack = lines_average(&format!("{sweep} --place pack"));
    assert_eq!(lines_average(sweep), pack);
    let spread = lines_average(&format!("{sweep} --place spread"));
    assert!(spread < 0.8 * pack, "{spread} and {pack}");
    assert_eq!(lines_average(&format!("{sweep} --no-affinity")), spread);
    let alone = "run mmap1 --machine freebsd-96 --seeds 1 --duration 0.001 --json --alone 500e3";
    let alone = lines_average(alone);
    assert!((0.98..1.02).contains(&(alone / 500e3)), "{alone}");
}

#[test]
fn short_windows_say_so_and_interrupts_are_told() {
    let run = "run page_fault1 --topology 1x2x1 --seeds 1 --duration 0.001";
    assert!(text(&output(run).stderr).contains("shorter than an iteration of page_fault1"));
    let run = "run tlb_flush1 -t 4 --threads --topology 1x4x1 --seeds 1 --duration 0.001 --json";
    let lines = json(&success(run));
    let last = lines.last().expect("lines");
    assert!(number(&last["interrupts"]) > 0.2, "{last}");
    assert!(number(&last["waiting_for_memory"]) < 0.1, "{last}");
}

#[test]
fn nothing_holds_the_default_up() {
    let run = "run mmap1 -t 24 --machine freebsd-96 --seeds 1 --duration 0.001 --json";
    let lines = json(&success(run));
    let bottleneck = lines[lines.len() - 1]["bottleneck"].clone();
    assert!(
        bottleneck
            .as_str()
            .is_some_and(|b| b.starts_with("nothing"))
    );
    let one = "run mmap1 -t 1 --machine freebsd-96 --seeds 1 --duration 0.001 --json";
    let one = lines_average(one);
    assert!(lines_average(run) > 0.95 * 24.0 * one);
}

fn lines_average(run: &str) -> f64 {
    let lines = json(&success(run));
    let summary = lines.iter().find(|line| line["kind"] == "summary");
    summary.expect("a summary")["average"]
        .as_f64()
        .expect("a rate")
}

const QUICK: &str = "--seeds 1 --duration 0.001";

#[test]
fn several_workloads_are_told_to_scale_or_what_is_in_their_way() {
    let sweep = format!("sweep mmap1 brk1 --both --machine pc-16c32t --cpus 1,2,8 {QUICK}");
    let lines = json(&success(&format!("{sweep} --json")));
    // A sample and a summary for each point, and each curve's shape.
    assert_eq!(lines.len(), 2 * 2 * (3 * 2 + 1));
    let at = |workload: &str, mode: &str, tasks: u32| {
        let mut summaries = lines.iter().filter(|line| line["kind"] == "summary");
        let found = summaries.find(|line| {
            line["workload"] == workload && line["mode"] == mode && line["tasks"] == tasks
        });
        found.unwrap_or_else(|| panic!("{workload} {mode} {tasks}"))
    };
    let rate = |workload, mode, tasks| number(&at(workload, mode, tasks)["average"]);
    let ratio = |workload, mode| rate(workload, mode, 8) / rate(workload, mode, 1);
    assert!((7.6..8.4).contains(&ratio("mmap1", "threads")));
    assert!((7.6..8.4).contains(&ratio("brk1", "processes")));
    // All threads move one break.
    assert!(ratio("brk1", "threads") < 5.0);
    let bottleneck = at("brk1", "threads", 8)["bottleneck"].to_string();
    assert!(bottleneck.contains("heap_end"), "{bottleneck}");
    let text = success(&sweep);
    assert!(text.contains("- mmap1, threads, sim: scales"), "{text}");
    let (_, line) = text.split_once("- brk1, threads, sim: 0.").expect("a line");
    assert!(line.contains("heap_end"), "{text}");
    let csv = success(&format!("{sweep} --format csv"));
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 1 + 4 + 1 + 1 + 4, "{csv}");
    assert_eq!(rows[1][..4], ["rate", "mmap1", "processes", "sim"]);
    assert_eq!(
        rows[7][..5],
        ["over one task's", "mmap1", "processes", "sim", "1.0"]
    );
}

#[test]
fn more_tasks_get_more_sockets_where_asked() {
    let sweep = format!("sweep mmap1 brk1 --on sim --cpus 1,48,97 --grow {QUICK}");
    let lines = json(&success(&format!("{sweep} --json")));
    let samples = lines.iter().filter(|line| line["kind"] == "sample");
    let shapes: Vec<&str> = samples
        .filter_map(|line| line["topology"].as_str())
        .collect();
    let [few, more] = ["2x24x2", "3x24x2"];
    assert_eq!(shapes, [few, few, few, few, more, more]);
    // 25 of the 97 tasks share a core with another.
    let text = success(&sweep);
    assert_eq!(text.matches(": scales\n").count(), 2, "{text}");
    let errors = failure("sweep mmap1 --machine pc-16c32t --cpus 33 --grow", 2);
    assert!(errors.contains("no cost of a hop"), "{errors}");
    assert!(failure("sweep mmap1 --grow", 2).contains("--on sim"));
}

#[test]
fn windows_last_for_twenty_operations() {
    let run = "run build --machine arm64-16 --seeds 1 --duration 0.001 --json";
    let lines = json(&success(run));
    let seconds = number(&lines[0]["seconds"]);
    assert_eq!(seconds, 0.04, "a build alone takes milliseconds");
    let run = run.replace("build", "mmap1");
    assert_eq!(number(&json(&success(&run))[0]["seconds"]), 0.001);
}

#[test]
fn what_a_simulated_machine_cannot_do_is_refused_in_one_line() {
    for (arguments, word) in [
        ("run mmap1 --machine no-such", "no-such"),
        ("run mmap1 --machine /no/such.toml", "/no/such.toml"),
        ("run mmap1 --topology 2x24", "2x24"),
        ("run mmap1 --topology 900x9x9", "900x9x9"),
        ("run mmap1 --on hosted --machine freebsd-96", "--on sim"),
        ("run mmap1 --on hosted --place spread", "--on sim"),
        ("run mmap1 --on hosted --disturb", "--on sim"),
        ("run mmap1 --machine freebsd-96 --place there", "spread"),
        ("run mmap1 --machine freebsd-96 --alone 0", "per second"),
        ("run mmap1 --machine pc-16c32t -t 1025", "32 CPUs"),
        ("run signal1 --machine pc-16c32t", "signals"),
        ("profile mmap1 --on sim --seeds 2", "--seeds"),
        ("profile mmap1 --on sim -s 3", "--samples"),
        ("profile mmap1 --on sim --warmup 1", "--warmup"),
    ] {
        let errors = failure(arguments, 2);
        assert!(errors.contains(word), "{arguments}: {errors}");
    }
    let errors = failure(
        "run mmap1 --machine freebsd-96 --alone 1e9 --duration 0.001",
        3,
    );
    assert!(errors.contains("does not reach"), "{errors}");
}

#[test]
fn results_name_the_scheduler_of_tasks_that_outnumber_the_cpus() {
    for (preset, scheduler) in [("scalevm", "best"), ("openbsd-unlocked", "openbsd")] {
        let run =
            format!("run futex1 --machine arm64-16 -t 20 -s 1 --duration 0.002 --vm {preset}");
        let output = output(&format!("{run} --json"));
        assert!(output.status.success(), "{output:?}");
        let errors = text(&output.stderr);
        let note = format!("20 tasks share the CPUs of 1x16x1 under the scheduler \"{scheduler}\"");
        assert!(errors.contains(&note), "{errors}");
        let lines = json(&text(&output.stdout));
        let sample = lines.iter().find(|line| line["kind"] == "sample");
        assert_eq!(sample.expect("a sample")["scheduler"], scheduler);
        let shares = lines.iter().find(|line| line["kind"] == "attribution");
        let queued = shares.expect("shares")["waiting_for_cpu"].as_f64();
        assert!(queued > Some(0.0), "{queued:?}");
        assert!(success(&run).contains(" waiting for a CPU\n"));
    }
    let alone = json(&success(
        "run futex1 --machine arm64-16 -t 2 -s 1 --duration 0.001 --json",
    ));
    assert!(alone.iter().all(|line| line["scheduler"].is_null()));
}

#[test]
fn simulated_sides_differ_by_half_or_not_at_all() {
    let compare = "compare --workload mmap1 --machine freebsd-96 -t 2 --runs 5 --duration 0.001 \
                   scalevm scalevm";
    let said = success(compare);
    let bound = "verdict: no difference shown: scalevm against scalevm; the model cannot tell \
                 rates apart that differ by less than 1.5 times\n";
    assert!(said.contains(bound), "{said}");
    let lines = json(&success(&format!("{compare} --json")));
    let verdict = &lines[lines.len() - 1];
    assert_eq!(verdict["minimum_effect"], 0.5);
    assert_eq!(verdict["simulated"], true);
    assert_eq!(verdict["word"], "no difference shown");
}
