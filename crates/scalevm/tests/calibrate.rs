//! `scalevm calibrate`: what it writes is a profile.

use sim::profile::Profile;
use std::path::PathBuf;
use std::process::{Command, Output};

fn calibrate(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scalevm"));
    command.arg("calibrate").args(arguments);
    command.output().expect("the command starts")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

/// A file of this test process that goes when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let name = format!("scalevm-{}-{name}", std::process::id());
        Scratch(std::env::temp_dir().join(name))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn the_file_loads_and_says_what_was_measured() {
    let file = Scratch::new("profile.toml");
    let path = file.0.to_str().expect("UTF-8");
    let output = calibrate(&["--quick", "--name", "here", "-o", path]);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(output.stdout.is_empty());
    for row in ["core.hit", "kernel.syscall", "memory.zero_page", "core.smt"] {
        assert!(errors.contains(row), "{errors}");
    }
    let profile = Profile::load(path).expect("a profile");
    assert_eq!(profile.name, "here");
    let source = |key: &str| profile.sources[key].as_str();
    for key in ["core.hit", "core.fence", "kernel.syscall", "kernel.block"] {
        let source = source(key);
        assert!(source.starts_with("measured on "), "{source}");
        assert!(source.contains("; median of 101, quartiles "), "{source}");
    }
    assert!(source("core.smt").contains("as this computer does not show it: "));
    let cpus = std::thread::available_parallelism().expect("a count").get();
    assert!(profile.cpus() <= cpus.max(1), "{}", profile.about);
}

#[test]
fn without_a_file_it_goes_to_stdout() {
    let output = calibrate(&["--quick", "--base", "pc-16c32t"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let profile = Profile::parse(text(&output.stdout), "stdout").expect("a profile");
    assert_eq!(profile.name, "this-computer");
    assert!(profile.sources["core.store_buffer"].starts_with("pc-16c32t, "));
}

#[test]
fn bad_usage_exits_with_2() {
    for arguments in [
        &["--base", "freebsd-69"][..],
        &["--name", ""],
        &["--name", "a b"],
        &["--quick", "-o", "/nonexistent/profile.toml"],
    ] {
        let output = calibrate(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty());
    }
}
