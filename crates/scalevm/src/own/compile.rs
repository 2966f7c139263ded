//! From a C file to a shared object.

use super::directory::Directory;
use crate::harness::{Failure, interrupt};
use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// As will-it-scale builds its tests, but as a shared object, and so that stacks can be
/// followed.
const FLAGS: &[&str] = &[
    "-O2",
    "-g",
    "-fno-omit-frame-pointer",
    "-fPIC",
    "-shared",
    "-Wall",
    "-pthread",
];

/// Compiles `source` with `$CC` (or `cc`) and `$CFLAGS` into `directory`. What the
/// compiler says goes to stderr as it is.
pub fn compile(source: &Path, stem: &str, directory: &Directory) -> Result<PathBuf, Failure> {
    let object = directory.path().join(format!("{stem}.so"));
    let compiler = words("CC");
    let (program, options) = match compiler.split_first() {
        Some((program, options)) => (program.as_str(), options),
        None => ("cc", [].as_slice()),
    };
    let mut command = Command::new(program);
    command.args(options).args(FLAGS);
    command.arg("-o").arg(&object).arg(source);
    // Behind the file, where `-lm` and its like belong.
    command.args(words("CFLAGS"));
    // The compiler's words are notes, never data.
    let stdout = io::stderr();
    command.stdin(Stdio::null()).stdout(stdout);
    let status = command.status();
    if let Some(signal) = interrupt::pending() {
        return Err(Failure::Interrupted(signal));
    }
    match status {
        Ok(status) if status.success() => Ok(object),
        Ok(status) => Err(Failure::Unavailable(format!(
            "{}: {program} can not compile it ({status})",
            source.display()
        ))),
        Err(error) => Err(Failure::Unavailable(format!(
            "{}: a C compiler is needed (CC names it): {program}: {error}",
            source.display()
        ))),
    }
}

/// The words of an environment variable; none if it is not set.
fn words(variable: &str) -> Vec<String> {
    let value = env::var(variable).unwrap_or_default();
    value.split_whitespace().map(str::to_owned).collect()
}
