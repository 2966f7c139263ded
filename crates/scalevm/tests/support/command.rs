//! Running the command, and reading its output.

use serde_json::Value;
use std::process::{Command, Output};

/// The command, with words as arguments.
pub fn scalevm(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scalevm"));
    command.args(arguments.split_whitespace());
    command
}

/// Runs to the end, whatever that is.
pub fn output(arguments: &str) -> Output {
    scalevm(arguments).output().expect("the command starts")
}

/// Runs to the exit code `code`; stdout and stderr.
pub fn exits(code: i32, command: &mut Command) -> (String, String) {
    let output = command.output().expect("the command starts");
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    let found = output.status.code();
    assert_eq!(found, Some(code), "{command:?}:\n{stdout}\n{stderr}");
    (stdout, stderr)
}

/// Runs the command with `arguments`, which may have blanks in them, and asserts its exit code.
pub fn run(code: i32, arguments: &[&str]) -> (String, String) {
    exits(code, scalevm("").args(arguments))
}

/// Runs to success and returns stdout.
pub fn success(arguments: &str) -> String {
    exits(0, &mut scalevm(arguments)).0
}

/// Runs to success without a word on stderr, and returns stdout.
pub fn quiet(arguments: &str) -> String {
    let (stdout, stderr) = exits(0, &mut scalevm(arguments));
    assert_eq!(stderr, "", "progress is for terminals");
    stdout
}

/// Runs to failure with `code` and nothing on stdout; returns stderr.
pub fn failure(arguments: &str, code: i32) -> String {
    let (stdout, stderr) = exits(code, &mut scalevm(arguments));
    assert_eq!(stdout, "", "{arguments}");
    stderr
}

/// The printed text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// Lines of JSON.
pub fn json(text: &str) -> Vec<Value> {
    let parse = |line| serde_json::from_str(line).expect("JSON");
    text.lines().map(parse).collect()
}

/// A number that must be one.
pub fn number(value: &Value) -> f64 {
    let number = value.as_f64();
    number.unwrap_or_else(|| panic!("a number: {value}"))
}
