//! Running a case on this computer.

use crate::Outcome;
use crate::case::Case;
use std::fs;
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where programs are compiled, and a folder with busybox under each of its names.
pub struct Host {
    folder: tempfile::TempDir,
}

impl Host {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let host = Host { folder };
        fs::create_dir(host.tools()).expect("a folder");
        let install = Command::new("busybox")
            .args(["--install", "-s"])
            .arg(host.tools())
            .status();
        assert!(install.expect("busybox").success());
        host
    }

    /// Where programs are compiled.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn tools(&self) -> PathBuf {
        self.folder().join("bin")
    }

    /// The output of a case here, in the surroundings that it has in a guest.
    pub fn run(&self, case: &Case) -> Outcome {
        let mut command = if case.is_script {
            let mut shell = Command::new(self.tools().join("sh"));
            shell
                .arg0("sh")
                .arg(&case.file)
                .env_clear()
                .env("PATH", self.tools());
            shell
        } else {
            let mut program = Command::new(&case.file);
            let words = case.arguments();
            program.arg0(&words[0]).args(&words[1..]).env_clear();
            for variable in case.program().environment {
                let variable = variable.into_string().expect("UTF-8");
                let (name, value) = variable.split_once('=').expect("a value");
                program.env(name, value);
            }
            program
        };
        let (mut reader, writer) = io::pipe().expect("a pipe");
        let errors = writer.try_clone().expect("a descriptor");
        command.env("HOME", "/").current_dir(self.folder());
        command.stdin(Stdio::null()).stdout(writer).stderr(errors);
        let mut child = command.spawn().expect("it starts");
        // The command holds the pipe's ends for writing.
        drop(command);
        let mut text = Vec::new();
        reader.read_to_end(&mut text).expect("readable");
        let status = child.wait().expect("it ends");
        let code = status.code().or(status.signal().map(|signal| 128 + signal));
        Outcome {
            text: String::from_utf8_lossy(&text).into_owned(),
            end: format!("exit {}", code.expect("a code or a signal")),
        }
    }
}
