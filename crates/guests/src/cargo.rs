//! Builds at first need: the kernel, and programs for guests.

use crate::{Error, source, tool};
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A build, in release mode.
pub struct Build<'a> {
    /// Its name in errors.
    pub what: &'a str,
    /// The package.
    pub folder: &'a Path,
    /// Cargo's further arguments.
    pub arguments: &'a [&'a str],
    /// Where results go, if not where cargo puts them.
    pub target: Option<&'a Path>,
    /// The compiler's flags, in place of those that cargo's settings have.
    pub flags: Option<&'a str>,
}

/// Builds the package, if that is not done.
///
/// # Errors
/// Fails if the sources are not where this program was built, or with the compiler's messages.
pub fn build(build: &Build<'_>) -> Result<(), Error> {
    if !build.folder.join("Cargo.toml").exists() {
        return Err(Error::unusable(
            build.folder,
            format!("the sources of {} are missing", build.what),
        ));
    }
    let cargo = tool::CARGO.find()?;
    let mut command = Command::new(&cargo);
    command
        .args(["build", "--release", "--quiet"])
        .args(build.arguments)
        .current_dir(build.folder);
    // Settings for the build of this program are not meant for others.
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(steers_a_build) {
            command.env_remove(name);
        }
    }
    command.envs(build.flags.map(|flags| ("RUSTFLAGS", flags)));
    if let Some(target) = build.target {
        command.arg("--target-dir").arg(target);
    }
    let output = command.output().map_err(Error::at(&cargo))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(Error::Build {
            what: build.what.to_owned(),
            output: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }
}

/// The triple of static programs. Build scripts and macros, which cannot be static, are built for
/// the host when a triple is named.
const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// The folder of static programs' builds.
fn static_folder() -> PathBuf {
    source("../../target/guest")
}

/// Where [`build_static`] puts the program at `name` within the folder of a build.
pub fn static_program(name: &str) -> PathBuf {
    static_folder().join(TRIPLE).join("release").join(name)
}

/// Builds the program at `name` of the package in `folder`, linked statically and with frame
/// pointers, as in all that profiles see, if that is not done. Returns its executable.
///
/// # Errors
/// As [`build`].
pub fn build_static(
    what: &str,
    folder: &Path,
    arguments: &[&str],
    name: &str,
) -> Result<PathBuf, Error> {
    build(&Build {
        what,
        folder,
        arguments: &[&["--target", TRIPLE], arguments].concat(),
        target: Some(&static_folder()),
        flags: Some("-Ctarget-feature=+crt-static -Cforce-frame-pointers=yes"),
    })?;
    Ok(static_program(name))
}

fn steers_a_build(name: &str) -> bool {
    let families = ["CARGO_PROFILE_", "CARGO_BUILD_", "CARGO_TARGET_"];
    let names = ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_INCREMENTAL"];
    names.contains(&name) || families.iter().any(|family| name.starts_with(family))
}
