//! Objects that are made before the tasks, and removed after them.

use super::common::Common;
use super::parts::Steps;
use super::{Linux, failed_with, files};
use crate::harness::{Failure, Mode, Plan};
use std::env;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use workloads::{Call, Daemon, Descriptor, Feature, Files};

/// The program that exec1 runs: it does nothing and succeeds.
const PROGRAM: &str = "true";

/// Files with names, the path of a program, the files of programs, and a mail server, if the
/// workload needs them. Tasks cannot make files with names: they may be killed, and then the files
/// would stay.
#[derive(Default)]
pub struct Prepared {
    /// By task.
    names: Vec<CString>,
    program: Option<CString>,
    inputs: Option<Files<File>>,
    /// The number of tasks.
    tasks: usize,
    /// The objects that the tasks share, if the workload needs any.
    common: Option<Common>,
    /// In the memory of this process.
    daemon: Option<Daemon>,
    /// The steps of a recorded program, if the workload is one, and its files.
    steps: Option<Steps>,
    recorded_files: Vec<File>,
}

impl Prepared {
    /// Prepares all that the tasks of `plan` need, with files in `directory`.
    pub fn new(plan: &Plan, directory: &Path) -> Result<Self, Failure> {
        let mut prepared = Prepared::default();
        prepared.tasks = plan.tasks;
        let Ok(workload) = plan.workload.known() else {
            return Ok(prepared); // the user's own looks after itself
        };
        let features = workload.needs.features;
        if features.contains(&Feature::Exec) {
            prepared.program = Some(find(PROGRAM)?);
        }
        let failed = |task| {
            move |error| Failure::Task {
                workload: workload.name,
                task,
                error,
            }
        };
        let family = features.contains(&Feature::Family);
        if family || features.contains(&Feature::Compiler) {
            let inputs = files::inputs(directory, super::page_size());
            let inputs = prepared.inputs.insert(inputs.map_err(failed(0))?);
            if family {
                let mut system = Linux::new(directory.into(), plan.mode, Prepared::default());
                let daemon = Daemon::start(&mut system, inputs);
                prepared.daemon = Some(daemon.map_err(failed(0))?);
            }
        }
        if features.contains(&Feature::Neighbours) {
            let common = Common::new(plan.tasks);
            prepared.common = Some(common.map_err(Failure::start("what tasks have in common"))?);
        }
        if let Some(replay) = workload.replay() {
            let steps = Steps::new(plan.tasks, replay);
            prepared.steps = Some(steps.map_err(Failure::start("shared memory"))?);
            let file = |&length: &usize| files::cached(directory, length);
            let files = replay.files.iter().map(file).collect::<Result<_, _>>();
            prepared.recorded_files = files.map_err(failed(0))?;
        }
        if features.contains(&Feature::Names) {
            for task in 0..plan.tasks {
                let named = files::named_file(directory);
                let named = named.map_err(|error| failed_with(Call::File, &error));
                prepared.names.push(named.map_err(failed(task))?.1);
            }
        }
        Ok(prepared)
    }

    /// The path of the task's own file.
    #[inline]
    pub fn name(&self, task: usize) -> Option<&CStr> {
        self.names.get(task).map(CString::as_c_str)
    }

    /// The program's path.
    #[inline]
    pub fn program(&self) -> Option<&CStr> {
        self.program.as_deref()
    }

    /// The number of tasks.
    pub fn tasks(&self) -> usize {
        self.tasks
    }

    pub fn pipe(&self, task: usize) -> Option<[Descriptor; 2]> {
        self.common.as_ref()?.pipe(task)
    }

    /// The address of the tasks' common memory.
    pub fn memory(&self) -> Option<usize> {
        Some(self.common.as_ref()?.memory())
    }

    /// A file of the recorded program.
    pub fn recorded_file(&self, number: usize) -> Option<&File> {
        self.recorded_files.get(number)
    }

    /// The steps of a recorded program.
    #[inline]
    pub fn steps(&self) -> Option<&Steps> {
        self.steps.as_ref()
    }

    /// The mail server.
    #[inline]
    pub fn daemon(&self) -> Option<Daemon> {
        self.daemon
    }

    /// The files of programs.
    #[inline]
    pub fn inputs(&self) -> Option<&Files<File>> {
        self.inputs.as_ref()
    }
}

/// A forked child never drops it: it leaves by `_exit`.
impl Drop for Prepared {
    fn drop(&mut self) {
        for name in &self.names {
            // An error, such as that it has gone already, cannot be reported.
            // SAFETY: a path that ends in a zero byte.
            unsafe { libc::unlink(name.as_ptr()) };
        }
        if let Some(daemon) = self.daemon {
            let mut system = Linux::new(PathBuf::new(), Mode::Threads, Prepared::default());
            // Nor can an error here: unmapping a whole mapping needs no memory.
            let _ = daemon.stop(&mut system);
        }
    }
}

/// The path of `program`, which must be in PATH or where it always is.
fn find(program: &str) -> Result<CString, Failure> {
    let path = env::var_os("PATH").unwrap_or_default();
    let usual = ["/bin", "/usr/bin"].map(Into::into);
    let mut candidates = env::split_paths(&path)
        .chain(usual)
        .filter(|directory| directory.is_absolute())
        .filter_map(|directory| CString::new(directory.join(program).as_os_str().as_bytes()).ok());
    // SAFETY: a path that ends in a zero byte.
    let found = candidates.find(|path| unsafe { libc::access(path.as_ptr(), libc::X_OK) } == 0);
    found.ok_or_else(|| Failure::Unavailable(format!("program `{program}` not found in PATH")))
}
