//! Tells the command which commit it is built from, for the records it writes.

use std::path::Path;
use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn main() {
    // Test cases of will-it-scale call back.
    println!("cargo::rustc-link-arg-bins=-Wl,--export-dynamic-symbol=new_task");
    // Without git, or outside a checkout, the commit stays unknown.
    if let Some(commit) = git(&[
        "describe",
        "--always",
        "--dirty",
        "--abbrev=40",
        "--exclude=*",
    ]) {
        println!("cargo::rustc-env=SCALEVM_COMMIT={commit}");
    }
    // A missing file would make each build a changed one.
    let heads = ["HEAD", "logs/HEAD"].map(|name| git(&["rev-parse", "--git-path", name]));
    for path in heads.into_iter().flatten().chain(["..".to_owned()]) {
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}
