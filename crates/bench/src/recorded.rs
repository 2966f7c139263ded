//! Recorded programs as workloads.

use crate::harness::{Failure, Plan};
use recording::{Recording, Role};
use replay::{Compiled, LeftOut};
use stats::record::Mode;
use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use workloads::Workload;

/// A recorded program.
pub struct Recorded {
    /// Its name in results.
    pub name: String,
    /// The file that it was read from.
    pub file: PathBuf,
    recording: Recording,
    /// The role whose threads are multiplied.
    role: Option<Role>,
    /// By the number of its threads; none for as many as were recorded.
    workloads: Mutex<BTreeMap<Option<usize>, (&'static Workload, LeftOut)>>,
}

impl Recorded {
    /// The recording in `file`. It stays as long as the process, as jobs do.
    pub fn open(file: &Path) -> Result<&'static Self, Failure> {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let recording = Recording::default();
        Ok(Self::new(name.into_owned(), file.to_owned(), recording))
    }

    /// A recording that is known by `name`.
    pub fn new(name: String, file: PathBuf, recording: Recording) -> &'static Self {
        Box::leak(Box::new(Recorded {
            name,
            file,
            role: recording.roles().into_iter().next(),
            recording,
            workloads: Mutex::default(),
        }))
    }

    /// What a replay of the program as it was recorded leaves out.
    pub fn left_out(&'static self) -> LeftOut {
        self.compiled(None).1
    }

    /// The program of `plan`, of which there is one if tasks are its threads.
    pub(crate) fn plan(&'static self, plan: Plan) -> Plan {
        let threads = (plan.mode == Mode::Threads).then_some(plan.tasks);
        Plan {
            workload: self.compiled(threads).0.into(),
            tasks: threads.map_or(plan.tasks, |_| 1),
            ..plan
        }
    }

    fn compiled(&'static self, threads: Option<usize>) -> (&'static Workload, LeftOut) {
        let mut workloads = self
            .workloads
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *workloads.entry(threads).or_insert_with(|| {
            let Compiled {
                mut replay,
                left_out,
            } = match (threads, &self.role) {
                (Some(count), Some(role)) => {
                    replay::compile(&self.recording.with_threads(role, count))
                }
                _ => replay::compile(&self.recording),
            };
            replay.threads = threads;
            let replay: &'static _ = Box::leak(Box::new(replay));
            let workload = replay.workload(&self.name, "a recorded program");
            (Box::leak(Box::new(workload)), left_out)
        })
    }
}

impl Debug for Recorded {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorded")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
