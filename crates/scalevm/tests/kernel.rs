//! `scalevm kernel`, with a QEMU that the test scripts: how the command reports a guest. The tests
//! of `guests` boot real ones.

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::command::{exits, json, scalevm};
use support::scratch::Scratch;

/// The beginning of each script: where the guest reports.
const REPORT: &str = r#"#!/bin/sh
for word; do case $word in file,id=report,path=*) report=${word#*path=} ;; esac; done
"#;

/// The command with a QEMU that is `script`, on which the variable `report` is the file that it
/// reports to.
fn with_qemu(folder: &Scratch, script: &str, arguments: &str) -> Command {
    let qemu = folder.0.join("qemu-system-x86_64");
    fs::write(&qemu, format!("{REPORT}{script}")).expect("a script");
    fs::set_permissions(&qemu, fs::Permissions::from_mode(0o755)).expect("its owner's");
    let path = std::env::var("PATH").expect("a path");
    let mut command = scalevm(arguments);
    command.env("PATH", format!("{}:{path}", folder.0.display()));
    command.stdin(Stdio::null());
    command
}

/// The same, running a program in a Linux whose image does not matter.
fn guest(folder: &Scratch, script: &str, options: &str) -> Command {
    let image = folder.0.join("image");
    fs::write(&image, "").expect("a file");
    let arguments = format!("kernel --linux {} {options}", image.display());
    with_qemu(folder, script, &arguments)
}

#[test]
fn the_programs_exit_code_and_output_are_the_commands() {
    let folder = Scratch::folder("kernel-the-programs-exit-code-a");
    let mut command = guest(&folder, "echo hello\necho exit 42 > $report", "-- x");
    assert_eq!(exits(42, &mut command), ("hello\n".into(), "".into()));
}

#[test]
fn a_panic_is_told_with_its_stack() {
    let folder = Scratch::folder("kernel-a-panic-is-told-with-its");
    let script = "printf 'careful\\npanic out of frames\\nat 0x1000\\nat 0x2000\\n' > $report";
    let (stdout, stderr) = exits(125, &mut guest(&folder, script, "-- x"));
    assert_eq!(stdout, "");
    let lines: Vec<&str> = stderr.lines().collect();
    let expected = [
        "scalevm: kernel: careful",
        "scalevm: the kernel panicked: out of frames",
        "   0: 0x1000",
        "   1: 0x2000",
    ];
    assert_eq!(lines, expected);
    let (_, stderr) = exits(125, &mut guest(&folder, ": > $report", "-- x"));
    assert_eq!(
        stderr,
        "scalevm: the machine stopped without giving a reason\n"
    );
}

#[test]
fn options_reach_qemu() {
    let folder = Scratch::folder("kernel-options-reach-qemu");
    let script = "echo \"$@\"\necho exit 0 > $report";
    let options = "--cpus 3 --memory 1G --swap 8M --icount --gdb -- x";
    let mut command = guest(&folder, script, &options.replace("--swap 8M ", ""));
    let (stdout, stderr) = exits(0, &mut command);
    for part in [
        "-smp 3",
        "-m 1048576K",
        "-icount shift=0,sleep=off",
        "-S -gdb",
    ] {
        assert!(stdout.contains(part), "no {part}: {stdout}");
    }
    assert!(
        !stdout.contains("virtio") && stderr.contains("gdb "),
        "{stderr}"
    );
    for wrong in [
        "--swap 8M -- x",
        "--memory 1M -- x",
        "--cpus 0 -- x",
        "--vm scalevm -- x",
    ] {
        exits(2, &mut guest(&folder, script, wrong));
    }
}

/// The test builds the kernel, as the command does.
#[test]
fn the_kernel_is_told_what_it_is_to_do() {
    let folder = Scratch::folder("kernel-the-kernel-is-told-what-it");
    let script = r#"
while [ $# -gt 0 ]; do [ "$1" = -append ] && echo "$2"; shift; done
echo exit 0 > $report"#;
    for (options, words) in [
        ("-- x", ""),
        ("--strict -- x", "strict"),
        ("--vm freebsd-di --strict -- x", "vm=freebsd-di strict"),
    ] {
        let mut command = with_qemu(&folder, script, &format!("kernel {options}"));
        assert_eq!(exits(0, &mut command).0, format!("{words}\n"));
    }
    exits(2, &mut guest(&folder, script, "--strict -- x"));
}

#[test]
fn what_is_missing_is_named() {
    let folder = Scratch::folder("kernel-what-is-missing-is-named");
    let mut command = guest(&folder, "", "-- x");
    let (_, stderr) = exits(2, command.env("PATH", "/nowhere"));
    assert_eq!(
        stderr,
        "scalevm: busybox not found: install Debian's package busybox-static\n"
    );
    let own = env!("CARGO_BIN_EXE_scalevm");
    let (_, stderr) = exits(2, &mut guest(&folder, "", &format!("-- {own}")));
    assert!(stderr.contains("link it with -static"), "{stderr}");
    let (_, stderr) = exits(2, &mut guest(&folder, "", "-- ./missing"));
    assert_eq!(
        stderr,
        "scalevm: ./missing: No such file or directory (os error 2)\n"
    );
    let mut command = with_qemu(&folder, "", "kernel --linux /no/image -- x");
    assert_eq!(
        exits(2, &mut command).1,
        "scalevm: /no/image: no such file\n"
    );
}

#[test]
fn input_that_is_no_terminal_reaches_the_program() {
    let folder = Scratch::folder("kernel-input-that-is-no-termina");
    // The archive has the input as a file.
    let script = r#"
while [ $# -gt 0 ]; do [ "$1" = -initrd ] && archive=$2; shift; done
grep -a -c 'echo from a pipe' "$archive"
echo exit 0 > $report"#;
    let mut command = guest(&folder, script, "");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("the command starts");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(b"echo from a pipe\n").expect("it reads");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(
        (output.status.code(), &*output.stdout),
        (Some(0), &b"1\n"[..])
    );
}

#[test]
fn a_signal_leaves_no_qemu_behind() {
    // A terminal sends its Ctrl-C to the whole group.
    let ends = [
        (libc::SIGTERM, 1, Some(143)),
        (libc::SIGKILL, 1, None),
        (libc::SIGINT, -1, Some(130)),
    ];
    for (signal, group, code) in ends {
        let folder = Scratch::folder("kernel-a-signal-leaves-no-qemu");
        let mut command = guest(&folder, "echo $$\nexec sleep 1000", "-- x");
        let mut child = command
            .process_group(0)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let stdout = child.stdout.take().expect("a pipe");
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let qemu: libc::pid_t = line.trim().parse().expect("its number");
        // SAFETY: a signal to a child that has not been waited for.
        unsafe { libc::kill(group * child.id() as libc::pid_t, signal) };
        assert_eq!(child.wait().expect("it ends").code(), code);
        let start = Instant::now();
        while lives(qemu) {
            assert!(start.elapsed() < Duration::from_secs(10), "QEMU lives on");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Returns true if there is such a process, which is not only waiting to be reaped.
fn lives(process: libc::pid_t) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(") ")
        .next()
        .is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

/// A QEMU in which Linux has a figure for one operation, and scalevm's kernel knows no program.
const SIDES: &str = r#"
case "$*" in
*quiet*) printf 'exact call 300 301\nrate call 1 5000\n'; echo exit 0 > $report ;;
*) echo 'no such call'; echo exit 127 > $report ;;
esac"#;

#[test]
fn both_sides_are_shown_and_what_fails_has_a_reason() {
    let folder = Scratch::folder("kernel-both-sides-are-shown-and");
    let image = folder.0.join("image");
    fs::write(&image, "").expect("a file");
    let arguments = format!("kernel compare --exact --linux {}", image.display());
    let (stdout, stderr) = exits(0, &mut with_qemu(&folder, SIDES, &arguments));
    let row = stdout
        .lines()
        .find(|line| line.contains("system call that does nothing"));
    let row: Vec<&str> = row
        .expect("a row")
        .split_whitespace()
        .rev()
        .take(4)
        .collect();
    assert_eq!(row, ["–", "–", "301", "300"], "{stdout}{stderr}");
    assert!(
        stdout.contains("scalevm: call: exit 127: no such call\n"),
        "{stdout}"
    );
    let command = format!("{arguments} --json").replace("--exact ", "");
    let lines = json(&exits(0, &mut with_qemu(&folder, SIDES, &command)).0);
    let one = |system: &str| {
        lines
            .iter()
            .find(|line| line["system"] == system && line["operation"] == "call")
    };
    let linux = one("linux").expect("a line");
    assert_eq!(
        (&linux["min"], &linux["median"]),
        (&300.into(), &301.into())
    );
    assert_eq!(linux["rates"][0]["rate"], 5000.0);
    assert_eq!(
        one("scalevm").expect("a line")["why"],
        "exit 127: no such call"
    );
}
