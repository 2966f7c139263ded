//! From a C file to a shared object.

use crate::harness::{Failure, interrupt, say};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, io};

/// The flags with which will-it-scale builds its tests, and one that keeps frame pointers for
/// stacks.
const FLAGS: &[&str] = &["-O2", "-g", "-fno-omit-frame-pointer", "-Wall", "-pthread"];

/// Compiles `source` with `$CC` (or `cc`) and `$CFLAGS` into `directory`, as a shared object. The
/// compiler's messages go to stderr unchanged.
pub fn compile(source: &Path, stem: &str, directory: &Directory) -> Result<PathBuf, Failure> {
    let object = directory.path().join(format!("{stem}.so"));
    made(source, &["-fPIC", "-shared"], &[], object)
}

/// Compiles a test case with `harness`, whose `main` starts the tasks, into a static program.
#[cfg(feature = "ours")]
pub fn compile_static(
    source: &Path,
    harness: &Path,
    directory: &Directory,
) -> Result<PathBuf, Failure> {
    let program = directory.path().join("testcase");
    made(source, &["-static"], &[harness], program)
}

fn made(
    source: &Path,
    flags: &[&str],
    others: &[&Path],
    result: PathBuf,
) -> Result<PathBuf, Failure> {
    let compiler = words("CC");
    let (program, options) = match compiler.split_first() {
        Some((program, options)) => (program.as_str(), options),
        None => ("cc", [].as_slice()),
    };
    let mut command = Command::new(program);
    command.args(options).args(FLAGS).args(flags);
    command.arg("-o").arg(&result).args(others).arg(source);
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
        Ok(status) if status.success() => Ok(result),
        Ok(status) => Err(Failure::Unavailable(format!(
            "{}: {program} cannot compile it ({status})",
            source.display()
        ))),
        Err(error) => Err(Failure::Unavailable(format!(
            "{}: expected a C compiler, in PATH or named by CC: {program}: {error}",
            source.display()
        ))),
    }
}

/// The words of an environment variable; none if it is not set.
fn words(variable: &str) -> Vec<String> {
    let value = env::var(variable).unwrap_or_default();
    value.split_whitespace().map(str::to_owned).collect()
}

/// A directory that only this user may enter; removed with its contents when dropped.
pub struct Directory(PathBuf);

impl Directory {
    /// An empty directory in TMPDIR.
    pub fn new() -> io::Result<Self> {
        let template = env::temp_dir().join("scalevm-XXXXXX");
        let mut name = template.as_os_str().as_bytes().to_vec();
        name.push(0);
        // SAFETY: a writable string that ends in XXXXXX and a zero byte.
        if unsafe { libc::mkdtemp(name.as_mut_ptr().cast()) }.is_null() {
            return Err(io::Error::last_os_error());
        }
        name.pop();
        Ok(Directory(OsString::from_vec(name).into()))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            say(format_args!(
                "scalevm: cannot remove {}: {error}",
                self.0.display()
            ));
        }
    }
}
