//! A test's directory, and the checks that nothing is left of it.

use super::command::{scalevm, text};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

/// The kinds of tasks.
pub const MODES: [&str; 2] = ["--processes", "--threads"];
/// One short sample.
pub const QUICK: &str = "-s 1 --duration 0.05 --warmup 0";

/// A directory of a test. When a test is done with it nothing that ran from it is left,
/// and nothing in its TMPDIR.
pub struct Place(PathBuf);

impl Place {
    pub fn new(name: &str) -> Self {
        let unique = format!("own-{name}-{}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(unique);
        fs::create_dir_all(path.join("tmp")).expect("a directory");
        Place(path)
    }

    /// The path of a file here.
    pub fn file(&self, name: &str) -> String {
        let path = self.0.join(name);
        path.to_str().expect("UTF-8").to_owned()
    }

    /// Writes a C file.
    pub fn source(&self, name: &str, text: &str) -> String {
        let file = self.file(name);
        fs::write(&file, text).expect("written");
        file
    }

    /// Makes a shared object.
    pub fn object(&self, source: &str, name: &str) -> String {
        let object = self.file(name);
        let flags = ["-shared", "-fPIC", "-o", &object, source];
        let status = Command::new("cc").args(flags).status().expect("a compiler");
        assert!(status.success());
        object
    }

    /// The command, with words as arguments.
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = scalevm(arguments);
        command.env("TMPDIR", self.0.join("tmp"));
        command.env_remove("CC").env_remove("CFLAGS");
        command
    }

    /// Runs to the end, after which nothing is left.
    pub fn run(&self, arguments: &str, environment: &[(&str, &str)]) -> Output {
        let mut command = self.command(arguments);
        command.envs(environment.iter().copied());
        let output = command.output().expect("the command starts");
        self.assert_clean();
        output
    }

    /// Runs to success and returns stdout.
    pub fn success(&self, arguments: &str, environment: &[(&str, &str)]) -> String {
        let output = self.run(arguments, environment);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments}: {errors}");
        text(&output.stdout)
    }

    /// Runs to failure with `code` and returns stderr.
    pub fn failure(&self, arguments: &str, environment: &[(&str, &str)], code: i32) -> String {
        let output = self.run(arguments, environment);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments}: {errors}");
        errors
    }

    /// Starts a run that goes on until something happens to it; its tasks have written
    /// `ready` when this returns.
    pub fn endless(&self, arguments: &str, ready: &str) -> Child {
        let mut command = self.command(&format!("{arguments} -s 0 --duration 0.05 --warmup 0"));
        command.env("OWN_LOG", ready);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let run = command.spawn().expect("the command starts");
        within_reason("tasks", || Path::new(ready).exists());
        assert!(!self.processes().is_empty());
        run
    }

    /// Waits until nothing is left; processes that are killed take a moment to go.
    pub fn assert_clean(&self) {
        within_reason("nothing left", || self.processes().is_empty());
        let left: Vec<_> = fs::read_dir(self.0.join("tmp")).expect("TMPDIR").collect();
        assert!(left.is_empty(), "{left:?}");
    }

    /// The command lines of processes that have to do with this place.
    pub fn processes(&self) -> Vec<String> {
        let marker = self.0.to_str().expect("UTF-8");
        let all = fs::read_dir("/proc").expect("/proc").flatten();
        let line = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("cmdline")).ok();
        let lines = all.filter_map(line);
        lines.filter(|line| line.contains(marker)).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.assert_clean();
            fs::remove_dir_all(&self.0).expect("removed");
        }
    }
}

/// Waits for an event that comes soon, or never.
pub fn within_reason(what: &str, mut there: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !there() {
        assert!(Instant::now() < deadline, "{what}: not within a minute");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The number on the last line.
pub fn average(stdout: &str) -> f64 {
    let last = stdout.lines().last().expect("a line");
    let number = last.strip_prefix("average:").expect("the average");
    number.parse().expect("a number")
}
