//! `scalevm calibrate`: its output is a profile.

mod support;

use sim::profile::MachineProfile;
use support::command::{exits, scalevm, success};
use support::scratch::Scratch;

#[test]
fn the_file_loads_and_says_what_was_measured() {
    let file = Scratch::new("profile.toml");
    let path = file.path();
    let mut calibrate = scalevm("calibrate --quick --name here -o");
    let (stdout, errors) = exits(0, calibrate.arg(path));
    assert_eq!(stdout, "");
    for row in ["core.hit", "kernel.syscall", "memory.zero_page", "core.smt"] {
        assert!(errors.contains(row), "{errors}");
    }
    let profile = MachineProfile::load(path).expect("a profile");
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
    let stdout = success("calibrate --quick --base pc-16c32t");
    let profile = MachineProfile::parse(&stdout, "stdout").expect("a profile");
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
        let (stdout, stderr) = exits(2, scalevm("calibrate").args(arguments));
        assert!(stdout.is_empty() && !stderr.is_empty(), "{arguments:?}");
    }
}
