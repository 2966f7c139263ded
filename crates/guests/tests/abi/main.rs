//! Programs print the same on scalevm's kernel as on this computer's Linux, and end alike.
//!
//! Each program of `abi/` is static, built with musl and with glibc; the scripts are busybox's.
//! `abi/not-yet` lists those that the kernel cannot run yet. With `SCALEVM_GUEST=vmlinuz` in the
//! environment the guest is that Linux, on which all must pass: so a difference is known to be the
//! kernel's and not the program's.

mod case;
mod host;

use case::Case;
use guests::{Ended, Files, Guest, Machine, boot, kernel, source};
use host::Host;
use std::env;
use std::fmt::Write;
use std::fs;
use std::time::{Duration, Instant};

/// A program's output, and its exit status as a shell gives it.
#[derive(PartialEq, Eq)]
pub struct Outcome {
    text: String,
    end: String,
}

/// The time that a guest may take; one that is known to fail may also hang.
const LIMIT: Duration = Duration::from_secs(60);
const LIMIT_NOT_YET: Duration = Duration::from_secs(5);

fn guest() -> Guest {
    match env::var_os("SCALEVM_GUEST") {
        Some(image) => Guest::Linux {
            image: image.into(),
        },
        None => Guest::Ours {
            kernel: kernel::build().expect("the kernel"),
            words: Vec::new(),
        },
    }
}

/// Runs a case in a guest with two CPUs.
fn in_guest(guest: &Guest, files: &Files, case: &Case, limit: Duration) -> Outcome {
    let machine = Machine {
        cpus: 2,
        ..Machine::default()
    };
    let start = Instant::now();
    let late = || start.elapsed() > limit;
    let run = boot::captured(guest, &machine, files, &case.program(), &late);
    let (ended, text) = run.expect("QEMU starts");
    Outcome {
        text: String::from_utf8_lossy(&text).into_owned(),
        end: match ended {
            Ended::Exit(status) => format!("exit {status}"),
            Ended::Panic(panic) => format!("panic: {}\n{:#?}", panic.message, panic.stack),
            Ended::Silently => "the machine stopped".into(),
            Ended::Stopped => format!("no end within {} s", limit.as_secs()),
        },
    }
}

/// The first line in which two outcomes differ.
fn difference(expected: &Outcome, found: &Outcome) -> String {
    let mut lines = 0;
    let same = |(a, b): &(&str, &str)| a == b;
    let both = expected.text.lines().zip(found.text.lines());
    lines += both.take_while(same).count();
    let line = |outcome: &Outcome| {
        let line = outcome.text.lines().nth(lines);
        line.unwrap_or("(no more lines)").to_owned()
    };
    format!(
        "    line {}, on this computer: {}\n    line {}, in the guest:      {}\n    ends: {} and \
         {}",
        lines + 1,
        line(expected),
        lines + 1,
        line(found),
        expected.end,
        found.end
    )
}

/// The names in `abi/not-yet`.
fn not_yet() -> Vec<String> {
    let text = fs::read_to_string(source("abi/not-yet")).expect("the list");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

#[test]
fn programs_print_what_they_print_on_linux() {
    let guest = guest();
    let list = match guest {
        Guest::Ours { .. } => not_yet(),
        Guest::Linux { .. } => Vec::new(),
    };
    let host = Host::new();
    let cases = case::all(&host);
    let mut files = Files::with_busybox().expect("busybox");
    for case in &cases {
        files.add(&case.file, &case.place()).expect("a file");
    }
    let mut wrong = String::new();
    for name in list
        .iter()
        .filter(|name| cases.iter().all(|case| case.name != **name))
    {
        writeln!(
            wrong,
            "{name}: abi/not-yet names it, and there is no such program"
        )
        .expect("a string");
    }
    for case in &cases {
        let known = list.contains(&case.name);
        let limit = if known { LIMIT_NOT_YET } else { LIMIT };
        let (expected, found) = (host.run(case), in_guest(&guest, &files, case, limit));
        match (expected == found, known) {
            (true, false) | (false, true) => continue,
            (true, true) => writeln!(wrong, "{}: works; take it off abi/not-yet", case.name),
            (false, false) => writeln!(wrong, "{}:\n{}", case.name, difference(&expected, &found)),
        }
        .expect("a string");
    }
    assert!(wrong.is_empty(), "{wrong}");
}
