//! The results of a campaign: a directory with a file for each point that is done.
//!
//! A file's first line is an object of kind `point`: the point, the build, the exit code, and how
//! many bytes follow with which hash; then comes what the command printed. It is written under
//! another name, synced and renamed, so a file is there whole or not at all. The directory is a
//! store of results: other commands skip the first lines.

use crate::{Error, Plan, Point};
use fnv::FnvHasher;
use serde::{Deserialize, Serialize};
use std::fs::{self, Permissions};
use std::hash::Hasher;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A directory of results.
#[derive(Clone, Debug)]
pub struct Results {
    directory: PathBuf,
    build: String,
}

/// The state of a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Its result is there.
    Done,
    /// It failed, for this reason.
    Failed(String),
    /// It is still to be run.
    Missing,
}

/// The first line of a result.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    kind: String,
    point: usize,
    argv: Vec<String>,
    scalevm: String,
    exit: u8,
    bytes: usize,
    hash: String,
}

impl Results {
    /// The results in `directory`, of this build of the command.
    pub fn new(directory: PathBuf, build: &str) -> Self {
        Results {
            directory,
            build: build.to_owned(),
        }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Makes the directory if it does not exist.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn make(&self) -> Result<(), Error> {
        fs::create_dir_all(&self.directory).map_err(Error::file(&self.directory))
    }

    /// The state of a point. Looks at names only; [`Results::read`] checks the content.
    pub fn state(&self, point: &Point) -> State {
        if self.path(point).exists() {
            return State::Done;
        }
        match fs::read_to_string(self.failure(point)) {
            Ok(why) => State::Failed(why.trim_end().to_owned()),
            Err(_) => State::Missing,
        }
    }

    /// The number of the plan's points that are done.
    pub fn done(&self, plan: &Plan) -> usize {
        plan.points
            .iter()
            .filter(|point| self.path(point).exists())
            .count()
    }

    /// Stores the output and the exit code of the command for a point.
    ///
    /// # Errors
    /// It cannot be written; then nothing is kept.
    pub fn keep(&self, point: &Point, exit: u8, printed: &[u8]) -> Result<(), Error> {
        let header = serde_json::to_string(&self.header(point, exit, printed));
        let mut bytes = header.expect("plain data").into_bytes();
        bytes.push(b'\n');
        bytes.extend_from_slice(printed);
        let path = self.path(point);
        self.put(&path, &bytes).map_err(Error::file(&path))?;
        self.forget(point)
    }

    /// Stores the reason why a point failed, until it runs again.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn fail(&self, point: &Point, why: &str) -> Result<(), Error> {
        let path = self.failure(point);
        self.put(&path, format!("{why}\n").as_bytes())
            .map_err(Error::file(&path))
    }

    /// Removes the record that a point failed.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn forget(&self, point: &Point) -> Result<(), Error> {
        let path = self.failure(point);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::file(&path)(error)),
            _ => Ok(()),
        }
    }

    /// The whole result of a point, and the exit code in it.
    ///
    /// # Errors
    /// The result is missing, or is not what this point of this build left.
    pub fn read(&self, point: &Point) -> Result<(Vec<u8>, u8), Error> {
        let path = self.path(point);
        let bytes = fs::read(&path).map_err(Error::file(&path))?;
        match self.exit_of(point, &bytes) {
            Some(exit) => Ok((bytes, exit)),
            None => Err(Error::Result {
                why: format!(
                    "damaged, or not the result of point {}; remove it",
                    point.number
                ),
                path,
            }),
        }
    }

    fn exit_of(&self, point: &Point, bytes: &[u8]) -> Option<u8> {
        let end = bytes.iter().position(|&byte| byte == b'\n')?;
        let (line, printed) = (&bytes[..end], &bytes[end + 1..]);
        let header: Header = serde_json::from_slice(line).ok()?;
        let exit = header.exit;
        (header == self.header(point, exit, printed)).then_some(exit)
    }

    fn header(&self, point: &Point, exit: u8, printed: &[u8]) -> Header {
        let mut hasher = FnvHasher::default();
        hasher.write_u8(exit);
        hasher.write(printed);
        Header {
            kind: "point".into(),
            point: point.number,
            argv: point.argv.clone(),
            scalevm: self.build.clone(),
            exit,
            bytes: printed.len(),
            hash: format!("{:016x}", hasher.finish()),
        }
    }

    fn path(&self, point: &Point) -> PathBuf {
        self.named(point, "jsonl")
    }

    fn failure(&self, point: &Point) -> PathBuf {
        self.named(point, "failed")
    }

    /// Names sort by the number of the point.
    fn named(&self, point: &Point, end: &str) -> PathBuf {
        let id = point.id(&self.build);
        self.directory
            .join(format!("{:06}-{id}.{end}", point.number))
    }

    /// Puts a whole file there, or none.
    fn put(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        // Any number of runners on any machines may write here, even the same file.
        let mut beside = tempfile::Builder::new()
            .suffix(".part")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(&self.directory)?;
        beside.write_all(bytes)?;
        beside.as_file().sync_all()?;
        beside.persist(path)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point() -> Point {
        Point {
            number: 17,
            argv: vec!["run".into(), "mmap1".into()],
        }
    }

    #[test]
    fn a_result_is_read_as_it_was_kept() {
        let directory = tempfile::tempdir().expect("a directory");
        let results = Results::new(directory.path().join("deep/er"), "1");
        results.make().expect("made");
        assert_eq!(results.state(&point()), State::Missing);
        results.fail(&point(), "no luck").expect("written");
        assert_eq!(results.state(&point()), State::Failed("no luck".into()));
        results.keep(&point(), 1, b"{}\n").expect("kept");
        assert_eq!(results.state(&point()), State::Done);
        let (bytes, exit) = results.read(&point()).expect("whole");
        assert!(bytes.ends_with(b"}\n{}\n"), "{bytes:?}");
        assert_eq!(exit, 1);
        let names = fs::read_dir(results.directory()).expect("a directory");
        assert_eq!(
            names.count(),
            1,
            "the failure is forgotten, and no part is left"
        );
        let other = Results::new(results.directory().to_owned(), "2");
        assert_eq!(other.state(&point()), State::Missing, "another build's");
    }

    #[test]
    fn any_damage_is_found() {
        let directory = tempfile::tempdir().expect("a directory");
        let results = Results::new(directory.path().to_owned(), "1");
        results.keep(&point(), 0, b"{\"a\":1}\n{}\n").expect("kept");
        let path = results.path(&point());
        let whole = fs::read(&path).expect("a file");
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            fs::write(&path, &changed).expect("written");
            assert!(results.read(&point()).is_err(), "byte {at}");
            fs::write(&path, &whole[..at]).expect("written");
            assert!(results.read(&point()).is_err(), "{at} bytes");
        }
        fs::write(&path, &whole).expect("written");
        assert!(results.read(&point()).is_ok());
    }
}
