//! The libraries as they are installed, and programs that use them.

#![allow(dead_code, reason = "each test uses a part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;
use tempfile::TempDir;

/// This crate's folder.
pub fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A folder in which the libraries are installed, compiled as this test is.
pub fn installed() -> &'static Path {
    static INSTALLED: LazyLock<TempDir> = LazyLock::new(|| {
        let root = tempfile::tempdir().expect("a folder");
        let test = std::env::current_exe().expect("the test");
        let profile = test
            .ancestors()
            .nth(2)
            .and_then(Path::file_name)
            .expect("a profile's folder");
        let profile = if profile == "debug" {
            "dev".as_ref()
        } else {
            profile
        };
        let status = Command::new(crate_folder().join("install"))
            .env("DESTDIR", root.path())
            .env("PREFIX", "/opt/scalevm")
            .env("PROFILE", profile)
            .status()
            .expect("the script runs");
        assert!(status.success(), "{status}");
        root
    });
    INSTALLED.path()
}

/// A file of the installation.
pub fn file(path: &str) -> PathBuf {
    installed().join("opt/scalevm").join(path)
}

/// The output of pkg-config.
pub fn pkg_config(argument: &str) -> Vec<String> {
    let output = Command::new("pkg-config")
        .args([argument, "scalevm"])
        .env("PKG_CONFIG_PATH", file("lib/pkgconfig"))
        .env("PKG_CONFIG_SYSROOT_DIR", installed())
        .output()
        .expect("pkg-config runs");
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}

/// A library.
#[derive(Clone, Copy, Debug)]
pub enum Library {
    Static,
    Shared,
}

pub const LIBRARIES: [Library; 2] = [Library::Static, Library::Shared];

/// A program of `tests/c`, in a folder of its own.
pub struct Program(TempDir);

impl Program {
    /// Compiles it.
    pub fn new(source: &str, library: Library, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (compiler, standard) = if source.ends_with(".cc") {
            ("g++", "-std=c++11")
        } else {
            ("gcc", "-std=c11")
        };
        let mut command = Command::new(compiler);
        command.args([
            standard,
            "-O1",
            "-g",
            "-D_GNU_SOURCE",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
        ]);
        command.args(flags).args(pkg_config("--cflags"));
        command.arg(crate_folder().join("tests/c").join(source));
        match library {
            Library::Static => command.arg(file("lib/libscalevm.a")),
            Library::Shared => command.args(pkg_config("--libs")),
        };
        let output = command
            .arg("-o")
            .arg(folder.path().join("program"))
            .output();
        let output = output.expect("the compiler runs");
        assert!(output.status.success(), "{source}: {}", stderr(&output));
        Program(folder)
    }

    /// Runs it, below another program if `under` names one.
    pub fn run(&self, under: &[&str], arguments: &[&str]) -> Output {
        let program = self.0.path().join("program");
        let program = program.to_str().expect("a path in UTF-8");
        let mut words = under.iter().chain([&program]).chain(arguments);
        Command::new(words.next().expect("the program"))
            .args(words)
            .env("LD_LIBRARY_PATH", file("lib"))
            .output()
            .expect("the program runs")
    }

    /// Runs it, and checks that it succeeds without output.
    pub fn pass(&self, under: &[&str], arguments: &[&str]) {
        let output = self.run(under, arguments);
        let quiet = output.stderr.is_empty() && output.stdout.is_empty();
        assert!(
            output.status.success() && quiet,
            "{}: {}",
            output.status,
            stderr(&output)
        );
    }
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
