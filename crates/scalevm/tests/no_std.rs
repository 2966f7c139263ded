//! The crates that a kernel links need no `std`: programs that have a panic handler of their own,
//! as kernels do, can use them. With `std` anywhere among the dependencies there would be two.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::scratch::Scratch;

/// The crates whose sources say `#![no_std]`.
const CRATES: [&str; 7] = [
    "baselines",
    "ipc",
    "machine",
    "sched",
    "sync",
    "vm",
    "workloads",
];

/// A program without `std`.
const PROGRAM: &str = "\
#![no_std]
#![no_main]
extern crate NAME as _;

use core::alloc::{GlobalAlloc, Layout};

struct Nothing;

// SAFETY: it hands out no memory.
unsafe impl GlobalAlloc for Nothing {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        core::ptr::null_mut()
    }
    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ALLOCATOR: Nothing = Nothing;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
";

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the workspace")
}

/// Compiles a program for each of these libraries, with all features; what the compiler says if one
/// does not.
fn compile(libraries: &[(&str, &Path)]) -> Result<(), String> {
    let scratch = Scratch::folder(&format!("no-std-{}", libraries.len()));
    let mut manifest = String::from(
        "[package]\nname = \"bare\"\nedition = \"2024\"\n[workspace]\n[profile.dev]\npanic = \
         \"abort\"\n[dependencies]\n",
    );
    fs::create_dir_all(scratch.inside("src/bin")).expect("a folder");
    for (name, path) in libraries {
        let path = path.display();
        manifest += &format!("{name} = {{ package = \"scalevm-{name}\", path = \"{path}\" }}\n");
        scratch.write(
            &format!("src/bin/{name}.rs"),
            &PROGRAM.replace("NAME", name),
        );
    }
    manifest += "[features]\nall = [";
    for feature in ["lock-order", "lock-profile"] {
        let with = libraries
            .iter()
            .filter(|(name, _)| ["sync", "vm"].contains(name));
        with.for_each(|(name, _)| manifest += &format!("\"{name}/{feature}\", "));
    }
    scratch.write("Cargo.toml", &(manifest + "]\n"));
    fs::copy(workspace().join("Cargo.lock"), scratch.inside("Cargo.lock")).expect("a copy");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-std");
    let checked = Command::new(env!("CARGO"))
        .args(["check", "--offline", "--quiet", "--features", "all"])
        .current_dir(&scratch.0)
        .env("CARGO_TARGET_DIR", target)
        .output()
        .expect("cargo runs");
    if checked.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&checked.stderr).into_owned())
    }
}

fn source(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn crates_for_kernels_need_no_std() {
    let crates = workspace().join("crates");
    let folders = fs::read_dir(&crates).expect("a folder");
    let mut without: Vec<_> = folders
        .map(|folder| folder.expect("an entry"))
        .filter(|folder| {
            let library = folder.path().join("src/lib.rs");
            library.is_file() && source(&library).contains("\n#![no_std]\n")
        })
        .map(|folder| folder.file_name().into_string().expect("UTF-8"))
        .collect();
    without.sort();
    assert_eq!(without, CRATES);
    let paths = CRATES.map(|name| crates.join(name));
    let libraries: Vec<_> = CRATES
        .into_iter()
        .zip(paths.iter().map(PathBuf::as_path))
        .collect();
    assert_eq!(compile(&libraries), Ok(()));
}

/// The check fails for a copy of `machine` that uses `std`.
#[test]
fn a_stray_std_is_noticed() {
    let machine = workspace().join("crates/machine");
    let copy = Scratch::folder("stray-std");
    let copied = Command::new("cp")
        .arg("-r")
        .arg(machine.join("src"))
        .arg(&copy.0)
        .status();
    assert!(copied.expect("cp runs").success());
    copy.write(
        "Cargo.toml",
        "[package]\nname = \"scalevm-machine\"\nversion = \"0.1.0\"\nedition = \
         \"2024\"\n[lib]\nname = \"machine\"\n[workspace]\n",
    );
    let library = copy.inside("src/lib.rs");
    let sound = source(Path::new(&library));
    fs::write(&library, sound.clone() + "extern crate std;\n").expect("written");
    let said = compile(&[("machine", &copy.0)]).expect_err("there is a std");
    assert!(said.contains("panic_impl"), "{said}");
    fs::write(&library, sound).expect("written");
    assert_eq!(compile(&[("machine", &copy.0)]), Ok(()));
}
