//! The crates that others take: what they say of themselves, and that they can be packaged, and
//! compile from their packages.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a kernel is made of, and machines to test it on. All others come with the command.
const PUBLISHED: [&str; 8] = [
    "hosted", "ipc", "loomed", "machine", "sched", "sim", "sync", "vm",
];

/// The categories of crates.io that the workspace's packages use.
const CATEGORIES: [&str; 8] = [
    "concurrency",
    "development-tools::testing",
    "emulators",
    "hardware-support",
    "memory-management",
    "no-std",
    "os",
    "simulation",
];

fn cargo() -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    cargo
}

/// What cargo knows of the crates that may be published.
fn published() -> Vec<Value> {
    let mut cargo = cargo();
    let output = cargo.args("metadata --no-deps --offline --format-version 1".split(' '));
    let output = output.output().expect("cargo runs").stdout;
    let mut metadata: Value = serde_json::from_slice(&output).expect("valid JSON");
    let packages = metadata["packages"].take();
    let Value::Array(mut packages) = packages else {
        panic!("no packages");
    };
    // An empty list of registries is `publish = false`.
    packages.retain(|package| package["publish"].is_null());
    packages.sort_by_key(|package| package["name"].to_string());
    packages
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().map(text).collect()
}

#[test]
fn what_a_kernel_takes_is_published() {
    let names: Vec<_> = published()
        .iter()
        .map(|p| text(&p["name"]).to_owned())
        .collect();
    assert_eq!(names, PUBLISHED.map(|name| format!("scalevm-{name}")));
}

/// The faults of a crate's metadata and README.
fn faults(package: &Value, readme: &str) -> Vec<String> {
    let name = text(&package["name"]);
    let (keywords, categories) = (texts(&package["keywords"]), texts(&package["categories"]));
    let fits =
        |word: &&str| word.len() <= 20 && word.starts_with(|c: char| c.is_ascii_alphabetic());
    let version = text(&package["rust_version"]);
    let features: Vec<_> = package["features"]
        .as_object()
        .into_iter()
        .flatten()
        .collect();
    let is_listed = |feature: &String| readme.contains(&format!("\n| `{feature}` | "));
    let must = [
        ("description", !text(&package["description"]).is_empty()),
        ("license", text(&package["license"]) == "MIT OR Apache-2.0"),
        (
            "documentation",
            text(&package["documentation"]) == format!("https://docs.rs/{name}"),
        ),
        (
            "no repository that nobody has",
            package["repository"].is_null(),
        ),
        ("readme", text(&package["readme"]) == "README.md"),
        (
            "keywords",
            (1..=5).contains(&keywords.len()) && keywords.iter().all(fits),
        ),
        (
            "categories",
            !categories.is_empty() && categories.iter().all(|c| CATEGORIES.contains(c)),
        ),
        ("title", readme.starts_with(&format!("# {name}\n"))),
        ("example", readme.contains("\n```rust\n")),
        (
            "features",
            if features.is_empty() {
                readme.contains("\n## Features\nNone.\n")
            } else {
                features.iter().all(|(feature, _)| is_listed(feature))
            },
        ),
        ("cost", readme.contains("\n## Cost\n")),
        (
            "oldest compiler",
            !version.is_empty() && readme.contains(&format!("\nRust {version} or later. ")),
        ),
    ];
    let wrong = must.iter().filter(|(_, holds)| !holds);
    wrong.map(|(what, _)| format!("{name}: {what}")).collect()
}

fn folder(package: &Value) -> PathBuf {
    let manifest = Path::new(text(&package["manifest_path"]));
    manifest.parent().expect("a folder").to_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn crates_say_what_they_are() {
    for mut package in published() {
        let folder = folder(&package);
        let readme = read(&folder.join("README.md"));
        assert_eq!(faults(&package, &readme), [""; 0]);
        let source = read(&folder.join("src/lib.rs"));
        assert!(
            source.contains("#[doc = include_str!(\"../README.md\")]"),
            "{}: the README's examples are no tests",
            folder.display()
        );
        package["documentation"] = Value::Null;
        let readme = readme.replace("\n## Cost\n", "\n## Price\n");
        assert_eq!(faults(&package, &readme).len(), 2, "faults are noticed");
    }
}

/// Runs a command to its success; what it says, but for tests and examples that are not packaged
/// because they need crates that are only tests'.
fn run(command: &mut Command) -> Vec<String> {
    let output = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let lines = said
        .lines()
        .filter(|line| !line.starts_with("warning: ignoring "));
    lines.map(str::to_owned).collect()
}

/// Packages all of them, in the order of their dependencies, and compiles each, with the example of
/// the VM, from its package and those that it depends on. (Cargo's own verification would keep
/// sources and libraries of a version that it has once seen, though they have changed.)
#[test]
fn crates_compile_from_their_packages() {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages");
    let unpacked = place.join("unpacked");
    let mut package = cargo();
    package.args("package --offline --allow-dirty --no-verify --quiet".split(' '));
    for name in PUBLISHED {
        package.args(["-p", &format!("scalevm-{name}")]);
    }
    assert_eq!(run(package.env("CARGO_TARGET_DIR", &place)), [""; 0]);
    // An earlier run may have left some.
    let _ = fs::remove_dir_all(&unpacked);
    fs::create_dir(&unpacked).expect("a folder");
    let mut manifest = String::from("[workspace]\nmembers = [\"*\"]\n[patch.crates-io]\n");
    for package in published() {
        let name = text(&package["name"]);
        let folder = format!("{name}-{}", text(&package["version"]));
        let packed = place.join(format!("package/{folder}.crate"));
        run(Command::new("tar")
            .arg("-C")
            .arg(&unpacked)
            .arg("-xzf")
            .arg(packed));
        for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE", "src/lib.rs"] {
            let file = unpacked.join(&folder).join(file);
            assert!(file.is_file(), "no {}", file.display());
        }
        manifest += &format!("{name} = {{ path = \"{folder}\" }}\n");
    }
    fs::write(unpacked.join("Cargo.toml"), manifest).expect("written");
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    fs::copy(lock, unpacked.join("Cargo.lock")).expect("a copy");
    let mut check = cargo();
    check.args("check --offline --quiet --workspace --lib --example embed".split(' '));
    check.current_dir(&unpacked).env("CARGO_TARGET_DIR", &place);
    assert_eq!(run(&mut check), [""; 0]);
}
