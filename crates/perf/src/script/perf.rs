//! The program `perf`, which reads its own files.

use stats::{InputError, printable};
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

/// Passes what `perf script` prints of the file `name` to `read`.
pub(super) fn script<T>(
    name: &str,
    read: impl FnOnce(BufReader<ChildStdout>) -> Result<T, InputError>,
) -> Result<T, InputError> {
    let failed = |reason: String| InputError::Whole {
        file: name.to_owned(),
        reason,
    };
    let mut child = start(name).map_err(|error| match error.kind() {
        ErrorKind::NotFound => failed(MISSING.to_owned()),
        _ => failed(format!("perf script: {error}")),
    })?;
    let (text, errors) = (child.stdout.take(), child.stderr.take());
    let (Some(text), Some(mut errors)) = (text, errors) else {
        unreachable!("both are pipes");
    };
    // Read at the same time, or perf would wait for room in one of the pipes.
    let errors = std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = errors.read_to_end(&mut text);
        text
    });
    let result = read(BufReader::new(text));
    let status = child.wait().map_err(|error| failed(error.to_string()))?;
    let errors = errors.join().unwrap_or_default();
    if status.success() {
        return result;
    }
    let mut lines = errors.lines().map_while(Result::ok);
    let line = lines.find(|line| !line.trim().is_empty());
    let reason = line.unwrap_or_else(|| status.to_string());
    Err(failed(format!("perf script: {}", printable(reason.trim()))))
}

const MISSING: &str = "the program perf reads this format, and is not installed (Debian: apt-get \
                       install linux-perf); or give what `perf script` prints of it";

fn start(name: &str) -> std::io::Result<Child> {
    // These tell the processes of threads, too. Their column (-F +pid) costs tracepoints their
    // stacks.
    let records = [
        "--show-task-events",
        "--show-switch-events",
        "--show-lost-events",
    ];
    Command::new("perf")
        .args(["script", "--ns", "-i", name])
        .args(records)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}
