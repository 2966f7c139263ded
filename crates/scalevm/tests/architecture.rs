//! The crates depend on each other in one direction only.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// The crates that each crate may use. Tests and examples (dev-dependencies) may name any
/// machine; library code may not.
const MAY_USE: &[(&str, &[&str])] = &[
    ("machine", &[]),
    ("sync", &["machine"]),
    ("sched", &["machine", "sync"]),
    ("ipc", &["machine", "sync"]),
    ("vm", &["machine", "sync"]),
    ("baselines", &["machine", "sync", "sched", "ipc", "vm"]),
    ("hosted", &["machine"]),
    ("sim", &["machine"]),
    ("loomed", &["machine"]),
    ("workloads", &[]),
    ("stats", &[]),
    ("profile", &["stats"]),
    ("recording", &[]),
    ("replay", &["recording", "workloads"]),
    ("perf", &["stats", "profile", "recording"]),
    ("report", &["stats", "profile", "perf"]),
    ("oracle", &[]),
    ("guests", &[]),
    (
        "bench",
        &[
            "machine",
            "sync",
            "sched",
            "ipc",
            "vm",
            "baselines",
            "hosted",
            "sim",
            "workloads",
            "stats",
            "profile",
            "recording",
            "replay",
            "perf",
            "guests",
        ],
    ),
    ("campaign", &["bench"]),
    ("c", &["machine", "sync"]),
    ("lockbench", &["machine", "sync", "hosted", "sim", "bench"]),
    (
        "calibration",
        &["sim", "workloads", "stats", "perf", "bench"],
    ),
    (
        "checks",
        &[
            "machine",
            "sync",
            "sched",
            "ipc",
            "vm",
            "baselines",
            "hosted",
            "sim",
            "oracle",
            "bench",
        ],
    ),
    (
        "studies",
        &[
            "machine",
            "sync",
            "vm",
            "baselines",
            "sim",
            "workloads",
            "stats",
            "profile",
            "bench",
            "lockbench",
        ],
    ),
];

type Graph = BTreeMap<String, BTreeSet<String>>;

/// The project's own normal dependencies of each of its library crates.
fn own_dependencies() -> Graph {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "cargo metadata failed");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("valid JSON");
    let name = |value: &serde_json::Value| {
        let name = value["name"].as_str().unwrap_or_default();
        name.strip_prefix("scalevm-").map(str::to_owned)
    };
    let packages = metadata["packages"].as_array().expect("packages");
    packages
        .iter()
        .filter_map(|package| {
            let dependencies = package["dependencies"].as_array()?;
            let normal = dependencies.iter().filter(|d| d["kind"].is_null());
            Some((name(package)?, normal.filter_map(name).collect()))
        })
        .collect()
}

/// The dependencies that are not allowed, as `user -> used`.
fn violations(found: &Graph) -> Vec<String> {
    let allowed: BTreeMap<&str, &[&str]> = MAY_USE.iter().copied().collect();
    let mut wrong = Vec::new();
    for (user, used) in found {
        let Some(allowed) = allowed.get(user.as_str()) else {
            wrong.push(format!("{user} is in no rule"));
            continue;
        };
        let illicit = used.iter().filter(|one| !allowed.contains(&one.as_str()));
        wrong.extend(illicit.map(|one| format!("{user} -> {one}")));
    }
    wrong
}

#[test]
fn dependencies_point_one_way() {
    let found = own_dependencies();
    assert_eq!(found.len(), MAY_USE.len(), "{found:?}");
    assert_eq!(violations(&found), Vec::<String>::new());
}

#[test]
fn a_wrong_dependency_is_noticed() {
    let wrong = Graph::from([("sync".to_owned(), BTreeSet::from(["hosted".to_owned()]))]);
    assert_eq!(violations(&wrong), ["sync -> hosted"]);
}
