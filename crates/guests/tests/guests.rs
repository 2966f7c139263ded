//! Real guests: scalevm's kernel boots, keeps the contract of its machine, and its panics have
//! names. Memory means there what the model of `oracle` says.

use guests::boot::{self, Console, Typist};
use guests::{Ended, Files, Guest, Library, Machine, Program, cargo, compile, kernel, source};
use std::fs;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(120);

fn guest(words: &[&str]) -> Guest {
    Guest::Ours {
        kernel: kernel::build().expect("the kernel"),
        words: words.iter().map(|word| (*word).to_owned()).collect(),
    }
}

/// Boots the kernel with these words; returns how it ends.
fn boot(words: &[&str], cpus: u32) -> Ended {
    let guest = guest(words);
    let machine = Machine {
        cpus,
        ..Machine::default()
    };
    let start = Instant::now();
    let late = || start.elapsed() > LIMIT;
    let program = Program::new("/none", ["none"]);
    let run = boot::captured(&guest, &machine, &Files::bare(), &program, &late);
    run.expect("QEMU starts").0
}

#[test]
fn the_machine_keeps_its_contract() {
    for cpus in [1, 2, 4] {
        assert_eq!(boot(&["conformance"], cpus), Ended::Exit(0), "{cpus} CPUs");
    }
}

/// Input typed at a shell is edited; Ctrl-C ends the shell's foreground, and Ctrl-Z stops it.
#[test]
fn a_shell_has_a_terminal_with_jobs() {
    const SCRIPT: [(&str, &str); 12] = [
        ("# ", "PS1='%% '; echo on$((20 + 1))x\x7f\n"),
        ("on21\r\n", "sh -c 'echo asleep; exec sleep 1000'\n"),
        ("asleep\r\n", "\x03"),
        ("%% ", "echo status $?\n"),
        (
            "status 130",
            "sh -c 'echo begun; sleep 1; echo done' | cat\n",
        ),
        ("begun\r\n", "\x1a"),
        ("Stopped", "jobs -l | wc -l; echo foreground; fg\n"),
        ("done\r\n", "echo ready; tr a-z A-Z\n"),
        ("ready\r\n", "wrong\x15lower\n\x04"),
        ("LOWER", "sleep 1000 &\n"),
        ("%% ", "kill %1; wait %1; echo killed $?\n"),
        ("killed 143", "exit 7\n"),
    ];
    let mut typist = Typist {
        script: &SCRIPT,
        printed: Vec::new(),
    };
    let mut shell = Program::new("sh", ["sh"]);
    shell.input = None;
    let start = Instant::now();
    let late = || start.elapsed() > LIMIT;
    let ended = boot::run(
        &guest(&[]),
        &Machine::default(),
        &Files::with_busybox().expect("busybox"),
        &shell,
        Console::Typed(&mut typist),
        &late,
        &mut |_| (),
    );
    let printed = String::from_utf8_lossy(&typist.printed).into_owned();
    assert_eq!(ended.expect("QEMU starts"), Ended::Exit(7), "{printed}");
}

/// Runs a program in a guest; returns how it ends, its output, and the kernel's notes.
fn run(machine: &Machine, files: &Files, program: &Program) -> (Ended, String, Vec<String>) {
    let (mut text, mut notes) = (Vec::new(), Vec::new());
    let start = Instant::now();
    let late = || start.elapsed() > LIMIT;
    let ended = boot::run(
        &guest(&[]),
        machine,
        files,
        program,
        Console::Into(&mut text),
        &late,
        &mut |line| notes.push(line.to_owned()),
    );
    let text = String::from_utf8_lossy(&text).into_owned();
    (ended.expect("QEMU starts"), text, notes)
}

/// The kernel ends a program that takes all memory, and says so; a shell kills one that forks
/// forever, without a fork.
#[test]
fn a_shell_survives_a_memory_hog_and_a_fork_bomb() {
    const SCRIPT: &str = "
        tail /dev/zero; echo hog $?
        bomb() { bomb | bomb & bomb; }
        delay() { i=0; while [ $i -lt $1 ]; do i=$((i + 1)); done; }
        (bomb) 2>/dev/null & delay 300
        while kill -9 -1; do delay 100; done
        echo usable $(echo yes)";
    let machine = Machine {
        cpus: 2,
        memory: 128 << 20,
        ..Machine::default()
    };
    let files = Files::with_busybox().expect("busybox");
    let shell = Program::new("sh", ["sh", "-c", SCRIPT]);
    let (ended, text, notes) = run(&machine, &files, &shell);
    assert_eq!(ended, Ended::Exit(0), "{text}{notes:?}");
    assert!(text.contains("hog 137\n"), "{text}");
    assert!(text.ends_with("usable yes\n"), "{text}");
    let named = notes
        .iter()
        .any(|line| line.starts_with("memory is short: process "));
    assert!(named, "{notes:?}");
}

/// Calls that make no sense harm only their caller (`fuzz/calls.c`).
#[test]
fn random_calls_hurt_nobody_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("calls");
    compile(&source("fuzz/calls.c"), &file, Library::Musl)
        .unwrap_or_else(|error| panic!("{error}"));
    let mut files = Files::bare();
    files.add(&file, "calls").expect("a file");
    let machine = Machine {
        cpus: 2,
        ..Machine::default()
    };
    let calls = Program::new("/calls", ["calls", "1", "20000"]);
    let (ended, text, notes) = run(&machine, &files, &calls);
    assert_eq!(ended, Ended::Exit(0), "{text}{notes:?}");
    assert_eq!(text, "20000 calls or more, canaries live\n");
}

/// Plays the sequences of `oracle`, which state what calls on memory mean, and generated ones.
#[test]
fn memory_means_what_the_model_says() {
    const SEEDS: &str = "60";
    const PLAYER: &str = "examples/play";
    let oracle = source("../oracle");
    let what = "the player of sequences";
    let player = cargo::build_static(what, &oracle, &["--example", "play"], PLAYER);
    let mut files = Files::bare();
    files
        .add(&player.expect("the player"), "play")
        .expect("a file");
    let mut words = ["play", "scalevm", SEEDS].map(str::to_owned).to_vec();
    for sequence in fs::read_dir(oracle.join("tests/sequences")).expect("a folder") {
        let path = sequence.expect("a sequence").path();
        let name = path.file_name().expect("a name").display().to_string();
        files.add(&path, &name).expect("a file");
        words.push(name);
    }
    let machine = Machine {
        cpus: 2,
        ..Machine::default()
    };
    let (ended, text, notes) = run(&machine, &files, &Program::new("/play", words));
    assert_eq!(ended, Ended::Exit(0), "{text}{notes:?}");
    assert!(text.ends_with(" 0 different\n"), "{text}");
}
