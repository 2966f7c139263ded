//! Reading stores and separate result files.

use std::fs;
use std::io;
use std::path::Path;

use super::EXTENSION;
use crate::InputError;
use crate::record::{self, Record, Run};

/// The contents of stores and files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Store {
    /// Their files, those of each store by name: in order of creation.
    pub files: Vec<File>,
    /// The skipped lines, one warning each, with file and line.
    pub warnings: Vec<String>,
}

/// The results of one invocation.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    pub path: String,
    /// Its records in order; empty if the invocation finished no sample.
    pub records: Vec<Record>,
}

impl File {
    /// The runs, grouped by [`record::runs`]. Runs never mix invocations.
    pub fn runs(&self) -> Vec<Run> {
        record::runs(&self.records)
    }
}

/// Reads `paths`: directories as stores, everything else as result files. An incomplete last line,
/// left by a crash or by an invocation that is writing it now, is a warning; any other damage is an
/// error, and so is a path without results.
pub fn read<P: AsRef<Path>>(paths: &[P]) -> Result<Store, InputError> {
    let mut store = Store::default();
    for path in paths {
        let path = path.as_ref();
        let from = store.files.len();
        if path.is_dir() {
            for file in files(path)? {
                store.add(&file)?;
            }
        } else {
            store.add(path)?;
        }
        if store.files[from..]
            .iter()
            .all(|file| file.records.is_empty())
        {
            return Err(InputError::Whole {
                file: path.display().to_string(),
                reason: "no results".into(),
            });
        }
    }
    Ok(store)
}

/// The files of the store at `path`, by name.
fn files(path: &Path) -> Result<Vec<std::path::PathBuf>, InputError> {
    let entries = fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let entries = entries.map_err(|source| unreadable(path, source))?;
    let mut files: Vec<_> = entries
        .into_iter()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == EXTENSION) && path.is_file())
        .collect();
    files.sort();
    Ok(files)
}

impl Store {
    fn add(&mut self, path: &Path) -> Result<(), InputError> {
        let bytes = fs::read(path).map_err(|source| unreadable(path, source))?;
        let path = path.display().to_string();
        let whole = bytes
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |at| at + 1);
        let (whole, rest) = bytes.split_at(whole);
        let mut records = Vec::new();
        crate::input::for_each_line(&path, whole, |text| {
            records.extend(record::line(text)?);
            Ok(())
        })?;
        let last = std::str::from_utf8(rest)
            .map_err(|error| error.to_string())
            .and_then(record::line);
        match last {
            Ok(record) => records.extend(record),
            Err(_) => {
                let line = 1 + whole.iter().filter(|&&byte| byte == b'\n').count();
                self.warnings.push(format!(
                    "{path}:{line}: the last line is incomplete and was ignored"
                ));
            }
        }
        self.files.push(File { path, records });
        Ok(())
    }
}

fn unreadable(path: &Path, source: io::Error) -> InputError {
    InputError::Unreadable {
        file: path.display().to_string(),
        source,
    }
}
