//! Recorded programs as workloads.

use super::{Failure, say};
use recording::{End, Recording, Role};
use replay::{Compiled, LeftOut};
use stats::record::Mode;
use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use workloads::Workload;

/// A recorded program.
pub struct Recorded {
    /// Its name in results.
    pub name: String,
    /// Its description of itself.
    pub description: String,
    recording: Recording,
    /// The role whose threads are multiplied; none if there are no threads.
    role: Option<Role>,
    /// By the number of its threads; none for as many as were recorded.
    workloads: Mutex<BTreeMap<Option<usize>, (&'static Workload, LeftOut)>>,
}

impl Recorded {
    /// The recording in `file`. One that is cut off is a recording of its first part, with a
    /// warning.
    ///
    /// # Errors
    /// A file that is no recording.
    pub fn read(file: &Path) -> Result<Recording, Failure> {
        let (recording, end) = Recording::open(file).map_err(Failure::recording(file))?;
        Self::warn_of(file, end);
        Ok(recording)
    }

    /// Warns if `file` is cut off.
    pub fn warn_of(file: &Path, end: End) {
        if end != End::Whole {
            say(format_args!("scalevm: warning: {}: {end}", file.display()));
        }
    }

    /// The program in `file`, with the one in `beside` at the same time.
    ///
    /// # Errors
    /// As [`Recorded::new`], and a file that is no recording.
    pub fn open(
        file: &Path,
        beside: Option<&Path>,
        role: Option<&str>,
    ) -> Result<&'static Self, Failure> {
        let mut recording = Self::read(file)?;
        let mut name = stem(file);
        if let Some(other) = beside {
            recording = recording.and(&Self::read(other)?);
            name = format!("{name}+{}", stem(other));
        }
        Self::new(name, recording, role)
    }

    /// The program whose recording `bytes` are, the content of `file`, by whose path it is known.
    ///
    /// # Errors
    /// As [`Recorded::open`].
    pub fn of_bytes(
        bytes: &[u8],
        file: &Path,
        role: Option<&str>,
    ) -> Result<&'static Self, Failure> {
        let (recording, end) = Recording::read(bytes).map_err(Failure::recording(file))?;
        Self::warn_of(file, end);
        Self::new(file.display().to_string(), recording, role)
    }

    /// A recording, known by `name`, whose threads of the role `role` are multiplied, or of the
    /// busiest one. It stays as long as the process, as jobs do.
    ///
    /// # Errors
    /// There is no such role, or there are several.
    pub fn new(
        name: String,
        recording: Recording,
        role: Option<&str>,
    ) -> Result<&'static Self, Failure> {
        let role = chosen(recording.roles(), role)?;
        let description = format!(
            "{name}: {} of {}",
            Mode::Threads.count(recording.threads.len()),
            Mode::Processes.count(recording.processes.len()),
        );
        Ok(Box::leak(Box::new(Recorded {
            name,
            description,
            recording,
            role,
            workloads: Mutex::default(),
        })))
    }

    /// The recording with this number of threads of its role.
    pub fn recording(&self, threads: Option<usize>) -> Recording {
        match (threads, &self.role) {
            (Some(count), Some(role)) => self.recording.with_threads(role, count),
            _ => self.recording.clone(),
        }
    }

    /// What a replay of the program as it was recorded leaves out.
    pub fn left_out(&'static self) -> LeftOut {
        self.compiled(None).1
    }

    /// It as a workload.
    pub fn workload(&'static self, threads: Option<usize>) -> &'static Workload {
        self.compiled(threads).0
    }

    fn compiled(&'static self, threads: Option<usize>) -> (&'static Workload, LeftOut) {
        let mut workloads = self
            .workloads
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *workloads.entry(threads).or_insert_with(|| {
            let Compiled { replay, left_out } = replay::compile(&self.recording(threads));
            let replay: &'static _ = Box::leak(Box::new(replay));
            let workload = replay.workload(&self.name, &self.description);
            (Box::leak(Box::new(workload)), left_out)
        })
    }
}

fn stem(file: &Path) -> String {
    file.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The role called `name`, or the busiest.
fn chosen(roles: Vec<Role>, name: Option<&str>) -> Result<Option<Role>, Failure> {
    let Some(name) = name else {
        return Ok(roles.into_iter().next());
    };
    let names: Vec<&str> = roles.iter().map(|role| role.name.as_str()).collect();
    let known = names.join(", ");
    let found: Vec<&Role> = roles.iter().filter(|role| role.name == name).collect();
    match found[..] {
        [one] => Ok(Some(one.clone())),
        [] => Err(Failure::Unavailable(format!(
            "--role {name}: no such threads; expected one of {known}"
        ))),
        _ => Err(Failure::Unavailable(format!(
            "--role {name}: several processes have such threads"
        ))),
    }
}

impl Debug for Recorded {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorded")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
