//! Programs of this computer that guests need.

use crate::Error;
use std::env;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A program, and the Debian package that has it.
pub(crate) struct Tool {
    program: &'static str,
    package: &'static str,
}

pub(crate) const QEMU: Tool = tool("qemu-system-x86_64", "qemu-system-x86");
pub(crate) const BUSYBOX: Tool = tool("busybox", "busybox-static");
pub(crate) const MUSL_GCC: Tool = tool("musl-gcc", "musl-tools");
pub(crate) const GCC: Tool = tool("gcc", "gcc");
pub(crate) const CARGO: Tool = tool("cargo", "cargo (or rustup's toolchain)");

const fn tool(program: &'static str, package: &'static str) -> Tool {
    Tool { program, package }
}

impl Tool {
    /// Where it is.
    pub(crate) fn find(&self) -> Result<PathBuf, Error> {
        let path = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&path)
            .map(|folder| folder.join(self.program))
            .find(|file| is_executable(file))
            .ok_or(self.missing())
    }

    /// The error that the program is missing.
    pub(crate) fn missing(&self) -> Error {
        Error::Missing {
            program: self.program,
            package: self.package,
        }
    }
}

fn is_executable(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let error = tool("no-such-program", "its-package")
            .find()
            .expect_err("there is none");
        assert_eq!(
            error.to_string(),
            "no-such-program not found: install Debian's package its-package"
        );
        assert!(error.is_input());
    }
}
