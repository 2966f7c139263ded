//! Directories of a test's own, and the command.

use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A directory of this test's own, gone when it ends.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// Not there yet.
    pub fn new(name: &str) -> Self {
        let name = format!("scalevm-history-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // What an earlier test of this number may have left.
        let _ = fs::remove_dir_all(&path);
        Scratch(path)
    }

    /// Its name.
    pub fn path(&self) -> &str {
        self.0.to_str().expect("UTF-8")
    }

    /// The files, by name.
    pub fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.0).expect("a store");
        let mut files: Vec<_> = entries
            .map(|entry| entry.expect("an entry").path())
            .collect();
        files.sort();
        files
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A leftover in the temporary directory harms nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs to the end.
pub fn scalevm(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scalevm"));
    command
        .args(arguments)
        .output()
        .expect("the command starts")
}

/// What was printed.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// Runs to the exit code `code`; stdout and stderr.
pub fn run(code: i32, arguments: &[&str]) -> (String, String) {
    let output = scalevm(arguments);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    let found = output.status.code();
    assert_eq!(found, Some(code), "{arguments:?}:\n{stdout}\n{stderr}");
    (stdout, stderr)
}

/// Lines of JSON.
pub fn json(text: &str) -> Vec<Value> {
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}
