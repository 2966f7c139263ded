//! Programs that measuring needs, this one among them.

use super::{Finding, Host};
use object::{Object, ObjectSection};
use std::path::PathBuf;
use std::{env, fs};

/// A C compiler, and names in this program's stacks.
pub fn check(host: &Host) -> Vec<Finding> {
    vec![compiler(host), debug_information(host)]
}

fn compiler(host: &Host) -> Finding {
    const NAME: &str = "C compiler";
    let folders: Vec<PathBuf> = env::split_paths(&host.path).collect();
    let candidates = ["cc", "gcc", "clang"];
    let mut paths = candidates
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    match paths.find(|path| path.is_file()) {
        Some(path) => Finding::ok(NAME, path.display().to_string()),
        None => Finding::advice(
            NAME,
            "none: programs to compare with, as will-it-scale's, cannot be built",
            "apt-get install gcc",
        ),
    }
}

fn debug_information(host: &Host) -> Finding {
    const NAME: &str = "debug information";
    let program = host.executable.display();
    let has_lines = fs::read(&host.executable).map(|bytes| {
        object::File::parse(&*bytes).is_ok_and(|file| {
            let section = file.section_by_name(".debug_line");
            section.is_some_and(|section| section.size() > 0)
        })
    });
    match has_lines {
        Ok(true) => Finding::ok(NAME, format!("in {program}")),
        Ok(false) => Finding::advice(
            NAME,
            format!("not in {program}: its stacks have no lines"),
            "cargo build --release, and do not strip it",
        ),
        Err(error) => Finding::unknown(NAME, format!("not known ({program}: {error})")),
    }
}
