//! Programs print the same on scalevm's kernel as on this computer's Linux, and end alike.
//!
//! Each program of `abi/` is static, built with musl and with glibc; the scripts are busybox's.
//! `abi/not-yet` lists those that the kernel cannot run yet. With `SCALEVM_GUEST=vmlinuz` in the
//! environment the guest is that Linux, on which all must pass: so a difference is known to be the
//! kernel's and not the program's.

mod case;
mod host;

use case::Case;
use guests::boot::{self, Console};
use guests::{Ended, Files, Guest, Machine, SEPARATOR, kernel, source};
use host::Host;
use std::cell::{Cell, RefCell};
use std::env;
use std::fmt::Write;
use std::time::{Duration, Instant};
use std::{fs, io, mem};

/// A program's output, and its exit status as a shell gives it.
#[derive(PartialEq, Eq)]
pub struct Outcome {
    text: String,
    end: String,
}

/// How long a case may take in a guest; one that is known to fail may also hang.
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

/// The output of a guest that runs several cases, as it comes.
#[derive(Default)]
struct Output {
    text: RefCell<Vec<u8>>,
    /// When the last case has ended.
    ended: Cell<Option<Instant>>,
}

impl Output {
    /// The outcomes of those cases that have ended, and the output after them.
    fn outcomes(&self) -> (Vec<Outcome>, String) {
        let text = self.text.borrow();
        let mut parts = text.split(|&byte| byte == SEPARATOR);
        let mut part = || Some(String::from_utf8_lossy(parts.next()?).into_owned());
        let (mut outcomes, mut rest) = (Vec::new(), part().unwrap_or_default());
        while let (Some(status), Some(next)) = (part(), part()) {
            let text = mem::replace(&mut rest, next);
            let end = format!("exit {status}");
            outcomes.push(Outcome { text, end });
        }
        (outcomes, rest)
    }
}

impl io::Write for &Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.contains(&SEPARATOR) {
            self.ended.set(Some(Instant::now()));
        }
        self.text.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs cases one after the other in a guest with two CPUs, until one of them takes `limit` or ends
/// the guest. Returns the outcomes up to that one.
fn in_one_guest(guest: &Guest, files: &Files, cases: &[&Case], limit: Duration) -> Vec<Outcome> {
    let machine = Machine {
        cpus: 2,
        ..Machine::default()
    };
    let programs: Vec<_> = cases.iter().map(|case| case.program()).collect();
    let (start, output) = (Instant::now(), Output::default());
    let is_late = || output.ended.get().unwrap_or(start).elapsed() > limit;
    let console = Console::Into(&mut &output);
    let run = boot::run_each(
        guest,
        &machine,
        files,
        &programs,
        console,
        &is_late,
        &mut |_| (),
    );
    let end = match run.expect("QEMU starts") {
        Ended::Exit(status) => format!("exit {status}"),
        Ended::Panic(panic) => format!("panic: {}\n{:#?}", panic.message, panic.stack),
        Ended::Silently => "the machine stopped".into(),
        Ended::Stopped => format!("no end within {} s", limit.as_secs()),
    };
    let (mut outcomes, text) = output.outcomes();
    outcomes.push(Outcome { text, end });
    outcomes
}

/// Runs cases in as few guests as possible: one, and another after each case that ends its guest.
fn in_guests(guest: &Guest, files: &Files, cases: &[&Case], limit: Duration) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    while outcomes.len() < cases.len() {
        outcomes.extend(in_one_guest(guest, files, &cases[outcomes.len()..], limit));
    }
    outcomes
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
    let mut judge = |cases: &[&Case], known, limit| {
        let found = in_guests(&guest, &files, cases, limit);
        for (case, found) in cases.iter().zip(found) {
            let expected = host.run(case);
            match (expected == found, known) {
                (true, false) | (false, true) => continue,
                (true, true) => writeln!(wrong, "{}: works; take it off abi/not-yet", case.name),
                (false, false) => {
                    writeln!(wrong, "{}:\n{}", case.name, difference(&expected, &found))
                }
            }
            .expect("a string");
        }
    };
    let (known, others): (Vec<_>, Vec<_>) =
        cases.iter().partition(|case| list.contains(&case.name));
    judge(&others, false, LIMIT);
    judge(&known, true, LIMIT_NOT_YET);
    assert!(wrong.is_empty(), "{wrong}");
}
