//! `scalevm check` as a user meets it.

#[path = "../../oracle/tests/suite/hostile/mod.rs"]
mod hostile;
mod support;

use serde_json::Value;
use std::ffi::CString;
use std::{fs, thread};
use support::command::{failure, json, output, scalevm};
use support::scratch::Scratch;

/// Runs to the exit code `code`; returns stdout.
fn exits(code: i32, arguments: &str) -> String {
    let mut check = scalevm("check");
    let check = check.args(arguments.split_whitespace());
    support::command::exits(code, check).0
}

/// The records of a kind.
fn of_kind<'a>(records: &'a [Value], kind: &str) -> Vec<&'a Value> {
    let of_kind = records.iter().filter(|record| record["record"] == kind);
    of_kind.collect()
}

/// Another beginning is another search, and that of the same seeds.
#[test]
fn a_search_begins_where_it_is_told() {
    let found = |options: &str| -> Value {
        let line = format!("check races --planted load-then-store {options} --json");
        let records = json(&support::command::text(&output(&line).stdout));
        of_kind(&records, "planted")[0].clone()
    };
    let near = found("--seeds 40");
    let far = found("--seeds 40 --from 1000");
    assert_eq!((&near["runs"], &far["runs"]), (&40.into(), &40.into()));
    assert!(near["seed"].as_u64() < Some(40), "{near}");
    assert!(
        (1000..1040).contains(&far["seed"].as_u64().expect("found")),
        "{far}"
    );
    let again = far["again"].as_str().expect("a command");
    assert!(
        again.ends_with(&format!("--seed {}", far["seed"])),
        "{again}"
    );
    let last = 1_u64 << 62;
    assert_eq!(found(&format!("--seeds 2 --from {last}"))["runs"], 2);
    assert_eq!(found(&format!("--seed {last}"))["runs"], 1);
    for wrong in [
        format!("--from {}", last + 1),
        format!("--seed {}", u64::MAX),
    ] {
        failure(&format!("check races {wrong}"), 2);
    }
    failure("check races --seed 1 --from 2", 2);
}

#[test]
fn the_real_code_survives() {
    // In builds with debug assertions this also checks the order of the VM's locks.
    let records = json(&exits(0, "races --seeds 8 --json"));
    let scenarios = of_kind(&records, "scenario");
    assert!(scenarios.len() > 70, "{}", scenarios.len());
    for family in [
        "fork-fault",
        "fork-change",
        "file-truncate",
        "write-out",
        "reclaim",
        "family",
    ] {
        let of_family = format!("{family}.scalevm");
        let mut named = scenarios.iter().filter(|one| one["name"] == of_family);
        assert!(named.next().is_some(), "{of_family}");
    }
    for scenario in scenarios {
        assert_eq!(scenario["runs"], 8, "{scenario}");
        assert_eq!(scenario["failed"], 0, "{scenario}");
    }
    assert_eq!(of_kind(&records, "summary")[0]["good"], true);
}

#[test]
fn planted_bugs_are_found() {
    let few = output("check races --planted all --seeds 50 --json");
    let records = json(&support::command::text(&few.stdout));
    let bugs = of_kind(&records, "planted");
    assert!(bugs.len() >= 11, "{}", bugs.len());
    let found = |bug: &&&Value| bug["failed"].as_u64() > Some(0);
    assert!(bugs.iter().filter(found).count() >= 8, "{bugs:?}");
    // The others take the usual number of seeds.
    for bug in bugs.iter().filter(|bug| !found(bug)) {
        let name = bug["name"].as_str().expect("a name");
        exits(0, &format!("races --planted {name}"));
    }
}

#[test]
fn a_seed_is_a_failure_for_good() {
    let all = json(&exits(
        0,
        "races --planted no-invalidation --seeds 100 --json",
    ));
    let found = of_kind(&all, "planted")[0];
    let seed = found["seed"].as_u64().expect("found");
    let again = format!("races --planted no-invalidation --seed {seed} --json");
    for _ in 0..3 {
        let again = json(&exits(0, &again));
        let again = of_kind(&again, "planted")[0];
        assert_eq!(again["runs"], 1);
        for key in ["seed", "machine", "what", "again"] {
            assert_eq!(again[key], found[key], "{key}");
        }
    }
}

#[test]
fn what_only_preemption_shows_is_found_and_stays() {
    let all = json(&exits(0, "races --planted unpin-early --seeds 100 --json"));
    let found = of_kind(&all, "planted")[0];
    let preempted = found["preempted"]["runs"].as_u64().expect("a number");
    assert!(0 < preempted && preempted < 100, "{found}");
    assert_eq!(found["failed"], found["preempted"]["failed"], "{found}");
    let machine = found["machine"].as_str().expect("a machine");
    assert!(machine.ends_with(" tasks, preempted"), "{machine}");
    let seed = found["seed"].as_u64().expect("found");
    let again = format!("races --planted unpin-early --seed {seed} --json");
    let again = json(&exits(0, &again));
    let again = of_kind(&again, "planted")[0];
    assert_eq!(again["preempted"]["runs"], 1);
    for key in ["seed", "machine", "what", "again"] {
        assert_eq!(again[key], found[key], "{key}");
    }
}

#[test]
fn what_is_not_found_is_said() {
    let stdout = exits(1, "races --planted lost-wake-up --seed 0");
    assert!(stdout.contains("NOT FOUND in 1 run:"), "{stdout}");
    assert!(
        stdout.contains("0 of 1 planted bug found; 1 run in "),
        "{stdout}"
    );
}

#[test]
fn scenarios_are_chosen_by_name_and_family() {
    let stdout = exits(0, "races --seeds 2 --only rwlock,mutex.clh");
    let names = stdout
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let names: Vec<_> = names.collect();
    assert_eq!(
        names,
        [
            "mutex.clh",
            "rwlock.spin-park",
            "rwlock.parking",
            "rwlock.freebsd",
            "rwlock.freebsd-parking",
            "rwlock.rwsem",
            "rwlock.rwsem-handed",
            "7"
        ]
    );
    let errors = failure("check races --only rw", 2);
    assert!(errors.contains("mutex.clh"), "{errors}");
}

#[test]
fn operations_take_locks_and_meet_in_lines() {
    let records = json(&exits(0, "locks --vm scalevm,freebsd-di --json"));
    assert_eq!(records.len(), 2 * 11);
    let of = |vm: &str, operation: &str| {
        let mut records = records.iter();
        let found = records.find(|one| one["vm"] == vm && one["operation"] == operation);
        found.expect("a record").clone()
    };
    let map = of("scalevm", "map");
    assert_eq!(
        map["locks"],
        serde_json::json!([{ "class": "slot", "count": 1 }])
    );
    assert_eq!(map["threads"], serde_json::json!([]));
    let first = |vm: &str| of(vm, "scan")["locks"][0].clone();
    let once = |class: &str| serde_json::json!({ "class": class, "count": 1 });
    assert_eq!(first("scalevm"), once("slot"));
    assert_eq!(first("freebsd-di"), once("space map"));
    let unmap = of("freebsd-di", "unmap");
    let locks = unmap["locks"].as_array().expect("a list");
    let place = |class: &str| locks.iter().position(|one| one["class"] == class);
    assert_eq!(locks[place("invl gen").expect("taken")]["count"], 2);
    // In the order in which they nest.
    assert!(place("space map") < place("invl gen") && place("pmap") < place("slot"));
    let meets = |by: &str, line: &str| {
        let lines = unmap[by].as_array().expect("a list");
        lines.iter().any(|one| one == line)
    };
    assert!(meets("threads", "OneLock.map") && !meets("processes", "OneLock.map"));
    assert!(meets("processes", "Di.mutex"));
    let text = exits(0, "locks --vm scalevm");
    assert!(
        text.contains("| map | slot | nothing | nothing |"),
        "{text}"
    );
    assert!(text.starts_with("### `scalevm`"), "{text}");
}

#[test]
fn the_default_has_the_conflicts_that_are_known_and_no_other() {
    let records = json(&exits(0, "conflicts --vm scalevm --json"));
    let pairs = of_kind(&records, "pair");
    // An operation on a whole process has no pair by two of its threads.
    assert_eq!(pairs.len(), 2 * (25 * 25 + 22 * 22) + 10 * 10 + 4 * 4);
    for pair in pairs {
        let free = pair["conflicts"].as_array().is_some_and(Vec::is_empty);
        let known = pair["known"]
            .as_array()
            .is_some_and(|known| !known.is_empty());
        let of_one_page = pair["by"] == "two processes on one page";
        assert!(
            free || pair["commutes"] == false || (of_one_page && known),
            "{pair}"
        );
        assert_eq!(pair["gone"], serde_json::json!([]), "{pair}");
    }
    let summary = of_kind(&records, "summary")[0];
    assert_eq!(
        summary["apart"],
        serde_json::json!({"commutative": 2216, "free": 2216})
    );
    assert_eq!(summary["one_page"]["commutative"], 98);
    assert_eq!(
        summary["tasks"],
        serde_json::json!({"commutative": 16, "free": 16})
    );
    assert_eq!(summary["as_known"], true, "{summary}");
}

#[test]
fn tasks_of_openbsd_meet_in_the_lock_of_its_scheduler() {
    let records = json(&exits(0, "conflicts --vm openbsd-unlocked --json"));
    let of_tasks = |pair: &&Value| pair["by"] == "tasks of two sockets";
    let pairs = of_kind(&records, "pair");
    let pairs: Vec<_> = pairs.into_iter().filter(of_tasks).collect();
    assert_eq!(pairs.len(), 16);
    for pair in pairs {
        let conflicts = pair["conflicts"].as_array().expect("a list");
        let meets = |line: &str| {
            let mut lines = conflicts.iter().filter_map(|one| one["line"].as_str());
            lines.any(|met| met.split(" + ").next() == Some(line))
        };
        assert!(meets("SCHED_LOCK"), "{pair}");
    }
}

#[test]
fn a_baselines_conflicts_are_named_and_no_failure() {
    let stdout = exits(0, "conflicts --vm freebsd-di");
    assert!(stdout.starts_with("freebsd-di: "), "{stdout}");
    // Each unmap enters the mutex of delayed invalidation, whichever process's memory it is.
    let title = "unmap and unmap, two processes, regions allocated:";
    let pair = stdout.split(title).nth(1).expect("a conflict");
    let pair = pair.split("two processes").next().expect("text");
    assert!(
        pair.contains("crates/baselines/src/freebsd/di.rs:"),
        "{pair}"
    );
    assert!(pair.contains("unmap: "), "{pair}");
}

#[test]
fn the_vm_does_what_the_model_says() {
    for tasks in [1, 4] {
        let records = json(&exits(
            0,
            &format!("model --steps 15000 --tasks {tasks} --json"),
        ));
        let summary = of_kind(&records, "summary")[0];
        assert_eq!(summary["good"], true, "{summary}");
        assert!(summary["compared"].as_u64() >= Some(15_000), "{summary}");
        assert_eq!(summary["systems"], serde_json::json!(["scalevm", "model"]));
    }
}

#[test]
fn the_vm_does_what_the_model_says_while_memory_is_short() {
    let records = json(&exits(0, "fuzz --steps 6000 --json"));
    let summary = of_kind(&records, "summary")[0];
    assert_eq!(summary["good"], true, "{summary}");
    assert!(summary["compared"].as_u64() >= Some(6_000), "{summary}");
    assert!(summary["refused"].as_u64() > Some(50), "{summary}");
}

#[test]
fn systems_that_are_careless_when_memory_is_short_are_found() {
    let records = json(&exits(0, "fuzz --planted all --json"));
    let bugs = of_kind(&records, "planted");
    assert_eq!(bugs.len(), 3);
    for bug in bugs {
        let steps = bug["steps"].as_array().expect("a sequence");
        assert!(steps.len() <= 6, "{bug}");
    }
}

#[test]
fn the_vm_does_what_the_kernel_does() {
    let records = json(&exits(0, "oracle --steps 10000 --seed 500 --json"));
    let summary = of_kind(&records, "summary")[0];
    assert_eq!(summary["good"], true, "{summary}");
    assert!(summary["compared"].as_u64() >= Some(10_000), "{summary}");
    assert!(summary["lacks"].as_array().expect("a list").is_empty());
}

#[test]
fn bugs_planted_in_operations_are_found_with_few_steps() {
    let records = json(&exits(0, "model --planted all --json"));
    let bugs = of_kind(&records, "planted");
    assert!(bugs.len() >= 7, "{}", bugs.len());
    for bug in bugs {
        let steps = bug["steps"].as_array().expect("a sequence");
        assert!(steps.len() <= 6, "{bug}");
    }
    let stdout = exits(0, "model --planted dontneed-keeps");
    assert!(stdout.contains("advise"), "{stdout}");
    assert!(stdout.contains("1 of 1 planted bug found"), "{stdout}");
}

/// Sequences in which systems once differed.
const SEQUENCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../oracle/tests/sequences");

#[test]
fn a_sequence_in_a_file_is_played_again() {
    let good = "# two processes\n0: map fixed w10 1p rw- private anonymous\n\
                0: store word w10 0x5\n0: fork 1\n1: store word w10 0x6\n0: load word w10\n";
    let good = Scratch::file("good.txt", good);
    for command in ["model", "oracle", "fuzz"] {
        let stdout = exits(0, &format!("{command} --replay {}", good.path()));
        assert!(stdout.contains("5 operations in 1 sequence,"), "{stdout}");
    }
    for sequence in fs::read_dir(SEQUENCES).expect("sequences") {
        let file = sequence.expect("a file").path();
        let stdout = exits(0, &format!("oracle --replay {}", file.display()));
        assert!(stdout.contains(" 0 left out"), "{stdout}");
    }
    let bad = Scratch::file("bad.txt", "0: exit\n0: jump\n");
    let errors = failure(&format!("check model --replay {}", bad.path()), 2);
    assert!(
        errors.contains("bad.txt: line 2: `jump` is not a call"),
        "{errors}"
    );
}

/// Absurd numbers in a sequence show no difference, and break nothing.
#[test]
fn sequences_may_have_any_numbers() {
    let scripts = hostile::scripts();
    let mut good = 0;
    for seed in 0..60 {
        let script = Scratch::file("hostile.txt", &hostile::mutated(seed, &scripts));
        let command = format!("check oracle --replay {}", script.path());
        let output = output(&command);
        let stderr = support::command::text(&output.stderr);
        match output.status.code() {
            Some(0) => good += 1,
            Some(2) => assert!(stderr.contains(": line "), "seed {seed}: {stderr}"),
            other => panic!("seed {seed}: {other:?}: {stderr}"),
        }
    }
    assert!(good >= 20, "{good}");
}

/// Sequences with such numbers in which systems once differed.
#[test]
fn edges_of_the_address_space_are_the_kernels() {
    for step in [
        "remap 0x0 1p 1p maymove dontunmap as h27",
        "in-core 0x8000000000000000 0",
    ] {
        let script = Scratch::file("edge.txt", &format!("0: {step}\n"));
        exits(0, &format!("oracle --replay {}", script.path()));
    }
}

#[test]
fn a_sequence_that_takes_too_long_is_named() {
    // No sequence of 200 steps is done so soon.
    let stdout = exits(1, "fuzz --steps 1 --seed 170 --limit 0.001");
    assert!(
        stdout.starts_with("# seed 170 hangs; --replay FILE"),
        "{stdout}"
    );
    assert!(
        stdout.contains("# scalevm: the sequence did not end in time"),
        "{stdout}"
    );
    let records = json(&exits(1, "fuzz --steps 1 --seed 170 --limit 0.001 --json"));
    assert_eq!(of_kind(&records, "divergence")[0]["seed"], 170);
    failure("check fuzz --limit 0", 2);
}

/// A check that hangs ends at a signal: here it waits for a writer of the pipe.
#[test]
fn a_signal_ends_what_hangs() {
    let scratch = Scratch::folder("hangs");
    let fifo = scratch.inside("sequence");
    let name = CString::new(fifo.clone()).expect("a name");
    // SAFETY: the name is a C string.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    for (signal, command) in [(libc::SIGTERM, "model"), (libc::SIGINT, "fuzz")] {
        let mut child = scalevm(&format!("check {command} --replay {fifo}"));
        let mut child = child.spawn().expect("the command starts");
        let pid = child.id();
        let catches = |status: String| {
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
            caught.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
        };
        while !fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(catches) {
            thread::yield_now();
        }
        // SAFETY: this process's child, which has not been waited for.
        assert_eq!(unsafe { libc::kill(pid.cast_signed(), signal) }, 0);
        let status = child.wait().expect("it ends");
        assert_eq!(status.code(), Some(128 + signal));
    }
}
