//! Running the command in a guest.

use super::support::command::json;
use guests::boot::{self, Console};
use guests::{Ended, Files, Guest, Library, Machine, Program, SEPARATOR, compile, source};
use serde_json::Value;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(600);

/// Each of `scripts` in a shell, one after the other, on the kernel of `release`; the JSON that it
/// prints. The command and the loads are in the guest's path.
pub fn printed(release: &str, machine: &Machine, scripts: &[String]) -> Vec<Value> {
    let shell = |script| Program::new("sh", ["sh", "-c", script]);
    let programs: Vec<_> = scripts.iter().map(|script| shell(script)).collect();
    let folder = tempfile::tempdir().expect("a folder");
    let mut text = Vec::new();
    let start = Instant::now();
    let ended = boot::run_each(
        &kernel(release),
        machine,
        &files(folder.path()),
        &programs,
        Console::Into(&mut text),
        &|| start.elapsed() > LIMIT,
        &mut |_| (),
    );
    let text = String::from_utf8_lossy(&text);
    let ended = ended.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(ended, Ended::Exit(0), "{release}: {text}");
    // Statuses lie between what is printed.
    let parts = text.split(char::from(SEPARATOR)).step_by(2);
    let one = |part: &str| {
        let line = part.lines().find(|line| line.starts_with('{'));
        let line = line.unwrap_or_else(|| panic!("{release}: no JSON: {part}"));
        json(line).remove(0)
    };
    parts.map(one).collect()
}

fn kernel(release: &str) -> Guest {
    let image = source(&format!("../../target/linux/{release}/vmlinuz"));
    let fetch = source("linux.sh");
    assert!(
        image.exists(),
        "there is no {}; fetch it: {} {release}",
        image.display(),
        fetch.display()
    );
    Guest::Linux { image }
}

/// The command with its libraries, the loads, which are compiled in `folder`, and a shell.
fn files(folder: &Path) -> Files {
    let mut files = Files::with_busybox().expect("busybox");
    let load = folder.join("load");
    let code = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels/load.c");
    compile(&code, &load, Library::Gnu).unwrap_or_else(|error| panic!("{error}"));
    files.add(&load, "bin/load").expect("a file");
    let chosen = env::var_os("SCALEVM_PROGRAM");
    let command = chosen.map_or(env!("CARGO_BIN_EXE_scalevm").into(), PathBuf::from);
    let added = files.add(&command, "bin/scalevm");
    added.unwrap_or_else(|error| panic!("SCALEVM_PROGRAM: {error}"));
    // It lists nothing for a static program.
    let list = Command::new("ldd").arg(&command).output().expect("ldd");
    let list = String::from_utf8(list.stdout).expect("UTF-8");
    for library in list.split_whitespace().filter(|word| word.starts_with('/')) {
        let file = Path::new(library).canonicalize().expect("a library");
        files.add(&file, &library[1..]).expect("a file");
    }
    files
}
