//! The program that a guest runs.

use crate::files::dynamic_linker;
use crate::{Error, Files};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Where a guest's programs look for each other.
const PATH: &str = "PATH=/bin:/sbin:/usr/bin:/usr/sbin";

/// The path of a user's program in the guest.
const PLACE: &str = "program";

/// A program in the guest, with its arguments and its environment.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its file in the guest; a name without a slash is looked up in PATH.
    pub file: OsString,
    /// Its arguments, its name first.
    pub arguments: Vec<OsString>,
    /// `NAME=value`.
    pub environment: Vec<OsString>,
    /// Its standard input; the console if nothing.
    pub input: Option<Vec<u8>>,
}

/// Surrounds the status of a program in the output of a guest that runs several: a record
/// separator.
pub const SEPARATOR: u8 = 0x1e;

impl Program {
    /// A program without input, and with the environment that all have.
    pub fn new<A: AsRef<OsStr>>(
        file: impl Into<OsString>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        Program {
            file: file.into(),
            arguments: arguments
                .into_iter()
                .map(|one| one.as_ref().to_owned())
                .collect(),
            environment: vec!["HOME=/".into(), PATH.into()],
            input: Some(Vec::new()),
        }
    }

    /// The program that a user's command line names first, and its arguments. The guest looks up a
    /// name without a slash, and a path that it has; anything else is a file of this computer,
    /// which is added to `files`.
    ///
    /// # Errors
    /// Fails if the file is missing, or needs a dynamic linker that `files` lack.
    pub fn named(words: &[OsString], files: &mut Files) -> Result<Self, Error> {
        let first = words.first().map_or(OsStr::new(""), OsString::as_os_str);
        let inside = first.to_str().is_some_and(|path| {
            !path.contains('/') || path.starts_with('/') && files.contains(path)
        });
        if inside {
            return Ok(Program::new(first, words));
        }
        let file = Path::new(first);
        if let Some(linker) = dynamic_linker(file)?
            && !files.contains(&linker)
        {
            let why = format!(
                "needs {linker} and shared libraries, which the guest does not have: link it with \
                 -static, or choose a --root that has them"
            );
            return Err(Error::unusable(file, why));
        }
        files.add(&file.canonicalize().map_err(Error::at(file))?, PLACE)?;
        Ok(Program::new(format!("/{PLACE}"), words))
    }

    /// The program's part of the guest's `/command`.
    fn words(&self) -> Vec<OsString> {
        let counted = |list: &[OsString]| [&[list.len().to_string().into()], list].concat();
        let (environment, arguments) = (counted(&self.environment), counted(&self.arguments));
        [environment, vec![self.file.clone()], arguments].concat()
    }
}

/// The contents of the guest's `/command`, which runs `programs`; `guest/init.c` explains it.
pub(crate) fn command(programs: &[Program], terminal: bool, input: &str) -> Vec<u8> {
    let mode = if terminal { "terminal" } else { "batch" };
    let head = [mode, input].map(OsString::from);
    let words = head
        .into_iter()
        .chain(programs.iter().flat_map(Program::words));
    words
        .flat_map(|word| [word.as_bytes(), b"\0"].concat())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_guests_and_a_path_is_this_computers() {
        let mut files = Files::bare();
        files.write("bin/tool", "");
        let mut file = |word: &str| {
            let program = Program::named(&[word.into(), "x".into()], &mut files);
            program.map(|program| program.file.into_string().expect("UTF-8"))
        };
        assert_eq!(file("ls").expect("the guest looks"), "ls");
        assert_eq!(file("/bin/tool").expect("it is there"), "/bin/tool");
        let missing = file("./missing").expect_err("nowhere");
        assert!(missing.to_string().starts_with("./missing: "), "{missing}");
        let own = std::env::current_exe().expect("a program");
        let dynamic = file(own.to_str().expect("UTF-8")).expect_err("it is dynamic");
        assert!(dynamic.is_input() && dynamic.to_string().contains("-static"));
        let source = crate::source("measure/call.c");
        let name = source.to_str().expect("UTF-8");
        assert_eq!(file(name).expect("no program, so static"), "/program");
        assert!(files.contains("/program"));
    }

    #[test]
    fn arguments_keep_their_bytes() {
        let odd = OsStr::from_bytes(b"\xff \n'");
        let mut program = Program::new("/p", [OsStr::new("p"), odd, OsStr::new("")]);
        program.environment = vec!["A=b".into()];
        assert_eq!(
            command(&[program], false, "/stdin"),
            b"batch\0/stdin\x001\0A=b\0/p\x003\0p\0\xff \n'\0\0"
        );
    }
}
