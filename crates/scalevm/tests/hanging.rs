//! A test program that does not end is ended, and the test that hangs is named.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// The output of a shell's program, as cargo starts it, if it may run for five seconds.
fn run(name: &str, program: &str) -> Output {
    let deps = Path::new(env!("CARGO_TARGET_TMPDIR")).join("deps");
    fs::create_dir_all(&deps).expect("a directory");
    let path = deps.join(name);
    fs::write(&path, format!("#!/bin/sh\n{program}\n")).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.cargo/limited"))
        .arg(path)
        .env("SCALEVM_TEST_LIMIT", "5")
        .output()
        .expect("bash runs")
}

#[test]
fn a_test_that_hangs_is_named() {
    let output = run(
        "suite",
        "echo 'test one ... ok'
        echo 'test a::two has been running for over 60 seconds'
        echo 'test three has been running for over 60 seconds'
        echo 'test three ... ok'
        exec sleep 1000",
    );
    assert!(!output.status.success());
    let error = String::from_utf8_lossy(&output.stderr);
    let expected = "error: suite was killed after 5 s. Still running:\n    a::two\n";
    assert_eq!(error, expected);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.starts_with("test one ... ok\n"), "{said}");
}

#[test]
fn a_test_that_hangs_alone_is_named() {
    let output = run(
        "alone",
        "printf 'test one ... ok\ntest two ... '; exec sleep 1000",
    );
    assert!(!output.status.success());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.ends_with("Still running:\n    two\n"), "{error}");
}

#[test]
fn what_ends_keeps_its_status() {
    assert_eq!(run("seven", "exit 7").status.code(), Some(7));
    assert_eq!(run("nothing", "exit 0").status.code(), Some(0));
}
