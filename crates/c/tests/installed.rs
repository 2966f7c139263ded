//! The contents of the installation: symbols with versions, a name for the loader, pages, and the
//! output of pkg-config.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use support::{crate_folder, file, installed, pkg_config, stderr, stdout};

fn output(program: &str, arguments: &[&str], path: &str) -> String {
    let output = Command::new(program)
        .args(arguments)
        .arg(file(path))
        .output();
    let output = output.expect("the program runs");
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

/// The functions that the header declares.
fn declared() -> BTreeSet<String> {
    let header = fs::read_to_string(file("include/scalevm.h")).expect("the header");
    let code = header
        .lines()
        .filter(|line| !line.starts_with([' ', '#', '/']));
    let names = code.filter_map(|line| line.split_once('('));
    let names = names.filter_map(|(head, _)| head.split([' ', '*']).next_back());
    names
        .filter(|name| name.starts_with("scalevm_"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_shared_library_has_the_headers_functions_with_a_version() {
    let symbols = output(
        "nm",
        &["-D", "--defined-only", "--with-symbol-versions"],
        "lib/libscalevm.so",
    );
    let symbols = symbols.lines().filter_map(|line| line.split(' ').nth(2));
    let (nodes, functions): (BTreeSet<_>, BTreeSet<_>) =
        symbols.partition(|name| !name.contains('@'));
    assert_eq!(
        nodes,
        BTreeSet::from(["SCALEVM_0.1"]),
        "nothing without a version but the version"
    );
    let functions: BTreeSet<_> = functions
        .iter()
        .filter_map(|name| name.strip_suffix("@@SCALEVM_0.1"))
        .map(str::to_owned)
        .collect();
    assert!(functions.len() > 60, "{functions:?}");
    assert_eq!(functions, declared());
}

#[test]
fn the_static_library_has_them_too() {
    let symbols = output("nm", &["-g", "--defined-only"], "lib/libscalevm.a");
    let functions: BTreeSet<_> = symbols
        .lines()
        .filter_map(|line| line.split(' ').nth(2))
        .filter(|name| name.starts_with("scalevm_") && *name != "scalevm_c_words")
        .map(str::to_owned)
        .collect();
    assert_eq!(functions, declared());
}

#[test]
fn the_loader_is_told_the_name_and_to_keep_the_library() {
    let dynamic = output("readelf", &["-dW"], "lib/libscalevm.so");
    assert!(
        dynamic.contains("Library soname: [libscalevm.so.0]"),
        "{dynamic}"
    );
    assert!(dynamic.contains("NODELETE"), "{dynamic}");
    let target = fs::canonicalize(file("lib/libscalevm.so.0")).expect("a link");
    assert!(
        target.ends_with(format!("libscalevm.so.{}", env!("CARGO_PKG_VERSION"))),
        "{target:?}"
    );
}

#[test]
fn pkg_config_knows_the_place() {
    let root = installed().display().to_string();
    assert_eq!(pkg_config("--modversion"), [env!("CARGO_PKG_VERSION")]);
    assert!(pkg_config("--cflags").contains(&format!("-I{root}/opt/scalevm/include")));
    assert_eq!(
        pkg_config("--libs"),
        [format!("-L{root}/opt/scalevm/lib"), "-lscalevm".to_owned()]
    );
}

#[test]
fn the_manual_is_installed() {
    let pages = |folder| fs::read_dir(folder).expect("a folder").count();
    assert_eq!(
        pages(file("share/man/man3")),
        pages(crate_folder().join("man"))
    );
    let page = Command::new("man")
        .args([
            "-M",
            file("share/man").to_str().expect("a path in UTF-8"),
            "3",
            "scalevm_mutex_unlock",
        ])
        .env("MANPAGER", "cat")
        .output()
        .expect("man runs");
    assert!(
        stdout(&page).contains("Releases the lock for its holder."),
        "{}",
        stderr(&page)
    );
}
