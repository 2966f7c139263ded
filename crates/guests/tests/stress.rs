//! Guests under stress: more memory than there is, on a disk; each preset's policies on real page
//! tables; stale translations.

use baselines::Preset;
use guests::boot::{self, Console};
use guests::{Ended, Files, Guest, Library, Machine, Program, compile, kernel, source};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(400);

/// Runs `words`, a program of `stress/` and its arguments, in a guest; returns how it ends, its
/// output, and the kernel's notes.
fn run(machine: &Machine, kernel: &[&str], words: &[&str]) -> (Ended, String, Vec<String>) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join(words[0]);
    let code = source(&format!("stress/{}.c", words[0]));
    compile(&code, &file, Library::Musl).unwrap_or_else(|error| panic!("{error}"));
    let mut files = Files::bare();
    files.add(&file, words[0]).expect("a file");
    let guest = Guest::Ours {
        kernel: kernel::build().expect("the kernel"),
        words: kernel.iter().map(|word| (*word).to_owned()).collect(),
    };
    let program = Program::new(format!("/{}", words[0]), words);
    let (mut text, mut notes) = (Vec::new(), Vec::new());
    let start = Instant::now();
    let ended = boot::run(
        &guest,
        machine,
        &files,
        &program,
        Console::Into(&mut text),
        &|| start.elapsed() > LIMIT,
        &mut |line| notes.push(line.to_owned()),
    );
    let text = String::from_utf8_lossy(&text).into_owned();
    (ended.expect("QEMU starts"), text, notes)
}

/// Whatever a program makes, in the end the kernel refuses more of it, or ends the program, and
/// goes on.
#[test]
fn what_programs_make_has_a_limit() {
    // With much memory, only the kinds that do not have to fill it.
    const QUICK: [&str; 10] = [
        "exhaust",
        "threads",
        "processes",
        "tree",
        "programs",
        "arguments",
        "descriptors",
        "pipes",
        "sockets",
        "semaphores",
    ];
    const ALL: [&str; 1] = ["exhaust"];
    for (memory, words, kinds) in [(64 << 20, &ALL[..], 23), (512 << 20, &QUICK[..], 9)] {
        for cpus in [1, 2] {
            let machine = Machine {
                cpus,
                memory,
                ..Machine::default()
            };
            let (ended, text, notes) = run(&machine, &[], words);
            let case = format!("{cpus} CPUs, {memory} bytes: {text}{notes:?}");
            assert_eq!(ended, Ended::Exit(0), "{case}");
            assert!(
                text.ends_with(&format!("{kinds} kinds, all refused\n")),
                "{case}"
            );
            for wrong in ["no limit", "nothing works"] {
                assert!(!text.contains(wrong), "{case}");
            }
        }
    }
}

/// Processes fill four times the memory: with a disk all find their data again, and without one
/// some are killed for their memory.
#[test]
fn a_disk_has_what_memory_has_not() {
    const PROCESSES: [&str; 3] = ["swap", "8", "4"];
    let mut machine = Machine {
        cpus: 2,
        memory: 24 << 20,
        swap: Some(64 << 20),
        ..Machine::default()
    };
    let (ended, text, notes) = run(&machine, &[], &PROCESSES);
    assert_eq!(ended, Ended::Exit(0), "{text}{notes:?}");
    assert_eq!(
        text,
        "8 processes have kept 4 times the memory, swap space: 65536 KiB\n"
    );
    assert_eq!(notes, [""; 0]);

    machine.swap = None;
    let (ended, text, notes) = run(&machine, &[], &PROCESSES);
    assert_eq!(ended, Ended::Exit(137), "{text}{notes:?}");
    let short = |line: &String| line.starts_with("memory is short: process ");
    assert!(notes.iter().any(short), "{notes:?}");
}

/// A page that is gone for one CPU is gone for all; without the interrupt to the others, the test
/// fails.
#[test]
fn no_translation_outlives_its_page() {
    let machine = Machine {
        cpus: 2,
        ..Machine::default()
    };
    let (ended, text, notes) = run(&machine, &[], &["stale"]);
    assert_eq!(ended, Ended::Exit(0), "{text}{notes:?}");
    assert_eq!(text, "stale translations in no rounds\n");
    let (ended, text, _) = run(&machine, &["plant=no-shootdown"], &["stale"]);
    assert_eq!(ended, Ended::Exit(1), "{text}");
    assert_eq!(text, "stale translations in some rounds\n");
}

/// Alan Cox's example: a removal of all of a page's mappings waits for those that another CPU has
/// removed but not flushed yet; without the wait, a CPU writes the page afterwards.
#[test]
fn a_removal_waits_for_those_under_way() {
    let machine = Machine {
        cpus: 2,
        ..Machine::default()
    };
    let plants = ["plant=late-flush", "plant=no-wait"];
    for (count, expected) in [(0, 0), (1, 0), (2, 1)] {
        let words = [&["alan-cox"], &plants[..count]].concat();
        let (ended, _, notes) = run(&machine, &words, &["stale"]);
        assert_eq!(ended, Ended::Exit(expected), "{words:?}: {notes:?}");
    }
}

/// With each preset's policies two threads map, protect and unmap, and children are made meanwhile.
#[test]
fn each_preset_runs_on_real_page_tables() {
    let machine = Machine {
        cpus: 2,
        ..Machine::default()
    };
    for preset in Preset::ALL {
        let word = format!("vm={}", preset.name);
        let (ended, text, notes) = run(&machine, &[&word], &["preset"]);
        assert_eq!(ended, Ended::Exit(0), "{word}: {text}{notes:?}");
        assert_eq!(text, "all as written\n", "{word}: {notes:?}");
    }
}
