//! The incidents: each is found as its story tells it, and nothing malformed can be read.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use studies::incidents::{Incident, all};

/// Simulated CPUs allocate in their machine.
#[global_allocator]
static ALLOCATOR: sim::Allocator = sim::Allocator;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../incidents")
}

#[test]
fn each_is_found_as_it_was_told() {
    for incident in all().expect("incidents") {
        let findings = incident.simulate(&()).expect("runs");
        assert!(findings.hold(), "{}: {findings:#?}", incident.name);
        assert!(!incident.page.is_empty() && incident.page.contains(&incident.about.source));
    }
}

#[test]
fn the_list_has_all_folders_and_all_shapes() {
    let known: BTreeSet<String> = all()
        .expect("incidents")
        .into_iter()
        .map(|one| one.name)
        .collect();
    let entries = fs::read_dir(folder()).expect("a folder");
    let entries = entries.map(|entry| entry.expect("an entry").path());
    let folders: BTreeSet<String> = entries
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(known, folders);
    let shapes: BTreeSet<String> = all()
        .expect("incidents")
        .iter()
        .map(|one| format!("{:?}", one.about.shape))
        .collect();
    let nine = "BDFHINPSW".chars().map(String::from);
    assert_eq!(shapes, nine.collect());
}

#[test]
fn malformed_files_are_refused() {
    let good = fs::read_to_string(folder().join("wasmer/incident.toml")).expect("a file");
    let scratch = tempfile::tempdir().expect("a folder");
    for file in ["README.md", "before.vmrec", "after.vmrec"] {
        fs::copy(
            folder().join("wasmer").join(file),
            scratch.path().join(file),
        )
        .expect("a copy");
    }
    let open = |text: &str| {
        fs::write(scratch.path().join("incident.toml"), text).expect("a file");
        Incident::open(scratch.path())
    };
    assert!(open(&good).is_ok());
    for (from, to, why) in [
        ("shape = \"I\"", "shape = \"X\"", "unknown variant `X`"),
        ("2021-09", "September", "is not a month"),
        ("https://", "", "is not an address"),
        ("linux-5.15", "linux-5.16", "did you mean 'linux-5.15'"),
        ("pc-16c32t", "pc-17", "pc-17"),
        (
            "threads = 2",
            "threads = 2000",
            "2000 threads on pc-16c32t 1x8x2",
        ),
        ("requests = 300", "requests = 0", "nothing is named"),
        ("\"after\"", "\"later\"", "later.vmrec"),
        ("program =", "progam =", "unknown field `progam`"),
    ] {
        assert!(good.contains(from), "{from}");
        let error = open(&good.replacen(from, to, 1))
            .expect_err(why)
            .to_string();
        assert!(
            error.contains(why) && !error.contains('\n'),
            "{why}: {error}"
        );
    }
}
