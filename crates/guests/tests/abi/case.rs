//! The programs and scripts of `abi/`.

use crate::host::Host;
use guests::{Library, Program, compile, source};
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

/// A program with the library it is built with, or a script.
pub struct Case {
    /// The name by which `abi/not-yet` lists it.
    pub name: String,
    /// The executable or the script, on this computer.
    pub file: PathBuf,
    /// The source's name.
    pub source: String,
    /// True if it is a script, which a shell reads.
    pub is_script: bool,
}

impl Case {
    /// Its path in a guest, without the first slash.
    pub fn place(&self) -> String {
        format!("abi/{}", self.name.replace(' ', "-"))
    }

    /// Its arguments, on this computer as in a guest; the name first.
    pub fn arguments(&self) -> Vec<OsString> {
        let words: &[&str] = match &*self.source {
            "start" => &["start", "one", "", "two words", "a\nline"],
            name => &[name],
        };
        words.iter().map(OsString::from).collect()
    }

    /// The program, with its arguments, for a guest.
    pub fn program(&self) -> Program {
        let place = format!("/{}", self.place());
        if self.is_script {
            Program::new("sh", ["sh", &place])
        } else {
            Program::new(place, self.arguments())
        }
    }
}

/// All cases, compiled, in the order of their names.
pub fn all(host: &Host) -> Vec<Case> {
    let mut cases = Vec::new();
    for entry in fs::read_dir(source("abi")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_stem()
            .expect("a name")
            .to_str()
            .expect("UTF-8")
            .to_owned();
        match path.extension().and_then(|end| end.to_str()) {
            Some("c") => cases.extend(Library::ALL.map(|library| {
                let file = host.folder().join(format!("{name}-{}", library.name()));
                compile(&path, &file, library).unwrap_or_else(|error| panic!("{error}"));
                Case {
                    name: format!("{name} {}", library.name()),
                    file,
                    source: name.clone(),
                    is_script: false,
                }
            })),
            Some("sh") => cases.push(Case {
                name: format!("{name} busybox"),
                file: path,
                source: name,
                is_script: true,
            }),
            _ => {}
        }
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}
