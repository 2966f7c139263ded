//! More tasks than threads on hosted: scalevm's scheduler runs them.

mod support;

use support::command::{exits, failure, json, number, output, scalevm, success, text};

#[test]
fn results_name_the_scheduler_of_tasks_that_outnumber_the_threads() {
    for (preset, scheduler) in [
        ("scalevm", "best"),
        ("openbsd-unlocked", "openbsd"),
        ("freebsd-di", "freebsd"),
        ("linux-2.6.39", "linux"),
    ] {
        let run = |tasks: u32, more: &str| {
            let line = format!(
                "run futex1 -t {tasks} --vm {preset} -s 1 --warmup 0 --duration 0.1 --json {more}"
            );
            let output = output(&line);
            assert!(output.status.success(), "{line}: {output:?}");
            let sample = json(&text(&output.stdout))[0].clone();
            assert!(number(&sample["total"]) > 0.0, "{line}: {sample}");
            (sample, text(&output.stderr))
        };
        let (crowded, errors) = run(6, "--hosted-cpus 2");
        assert_eq!(crowded["scheduler"], scheduler);
        assert_eq!(
            (&crowded["on"], &crowded["cpus"]),
            (&"hosted".into(), &2.into())
        );
        let note = format!("6 tasks share 2 threads under the scheduler \"{scheduler}\"");
        assert!(errors.contains(&note), "{errors}");
        // A thread for each.
        let (alone, _) = run(2, "--hosted-cpus 2");
        assert!(alone["scheduler"].is_null());
        assert_eq!(alone["cpus"], 2);
        let (hosts, _) = run(3, "--on hosted");
        assert!(hosts["scheduler"].is_null() && hosts["cpus"].is_null());
    }
}

#[test]
fn what_our_vm_runs_runs_under_its_scheduler() {
    for workload in [
        "brk1",
        "desktop",
        "exec1",
        "fork1",
        "fragment",
        "futex1",
        "mmap1",
        "page_fault1",
        "page_fault3",
        "pipe1",
        "poll1",
        "reclaim1",
        "tlb_flush1",
    ] {
        for more in ["--processes", "--threads", "--vm openbsd-biglock"] {
            let line = format!("run {workload} -t 5 --hosted-cpus 2 -s 1 --count 10 --json {more}");
            let times = json(&success(&line))[0].clone();
            assert_eq!(times["count"], 10, "{line}");
            assert!(number(&times["real"]) > 0.0, "{line}: {times}");
        }
    }
}

/// Jobs of a build fork compilers, which are tasks too, and wait for them.
#[test]
fn time_without_a_cpu_is_nobodys() {
    const CPUS: f64 = 2.0;
    for preset in [
        "scalevm",
        "linux-2.6.39",
        "freebsd-epoch",
        "openbsd-unlocked",
    ] {
        let line = format!("run build -t 6 --hosted-cpus 2 --vm {preset} -s 1 --count 12 --json");
        let times = json(&success(&line))[0].clone();
        let [real, user, sys] = ["real", "user", "sys"].map(|name| number(&times[name]));
        // A lower bound of a job's computation, on any core.
        assert!(user > 12.0 * 0.002, "{times}");
        assert!(sys > 0.0 && user + sys <= CPUS * real + 0.1, "{times}");
    }
}

#[test]
fn a_profile_tells_waiting_for_a_cpu_apart() {
    let line = "profile page_fault1 -t 8 --hosted-cpus 2 --warmup 0 -s 1 --duration 0.5 --json";
    let lines = json(&success(line));
    let profile = lines.last().expect("a profile");
    assert_eq!(profile["scheduler"], "best");
    let waits = profile["waits"].as_object().expect("stacks");
    let queued = |(stack, seconds): (&String, _)| {
        let stands = stack == "preempted;page_fault1;[waits for a CPU]";
        stands.then(|| number(seconds))
    };
    let queued = waits.iter().find_map(queued).expect("tasks that wait");
    // Of eight tasks, six do at any time.
    let share = queued / (8.0 * number(&profile["seconds"]));
    assert!((0.5..=0.8).contains(&share), "{share}");
    let sentence = profile["bottleneck"].as_str().expect("a sentence");
    assert!(sentence.contains("waits for a CPU"), "{sentence}");
}

#[test]
fn a_film_is_played_beside_others_on_few_threads() {
    let line = "latency -t 4 --hosted-cpus 2 --frames 3 --json";
    let (out, _) = exits(0, &mut scalevm(line));
    assert_eq!(json(&out)[0]["frames"], 3);
}

#[test]
fn threads_are_hosteds() {
    for arguments in [
        "run mmap1 --on os --hosted-cpus 2",
        "sweep mmap1 --machine arm64-16 --hosted-cpus 2",
        "compare --workload mmap1 os os --hosted-cpus 2",
    ] {
        let errors = failure(arguments, 2);
        assert!(errors.contains("add --on hosted"), "{arguments}: {errors}");
    }
    failure("run mmap1 --hosted-cpus 0", 2);
    failure("run mmap1 --hosted-cpus 1025", 2);
}
