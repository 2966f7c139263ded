//! The test case of a shared object, in will-it-scale's shape.

use crate::tasks::begin_task;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::error::Error;
use std::ffi::{CStr, c_char, c_ulong};
use std::path::Path;
use workloads::Counter;

type Prepare = unsafe extern "C" fn(c_ulong);
type Run = unsafe extern "C" fn(*mut u64, c_ulong);
type Cleanup = unsafe extern "C" fn();

/// The functions of a test case.
pub struct Testcase {
    /// Its description of itself; empty if it has none.
    pub description: String,
    prepare: Option<Prepare>,
    run: Run,
    cleanup: Option<Cleanup>,
    /// Holds the functions.
    _library: Library,
}

impl Testcase {
    /// Loads `file`, and so runs its initialisers.
    pub fn load(file: &Path) -> Result<Self, String> {
        // All symbols at once: one that is missing is told of before anything runs.
        // SAFETY: the user asks for the file's code to be run, in this process of its own.
        let library = unsafe { Library::open(Some(file), RTLD_NOW | RTLD_LOCAL) };
        let library = library.map_err(|error| reason(file, &error))?;
        // SAFETY: the types are those that will-it-scale declares these names with.
        unsafe {
            let run = library.get::<Run>(c"testcase").map(|symbol| *symbol);
            Ok(Testcase {
                description: description(&library),
                prepare: library.get(c"testcase_prepare").ok().map(|found| *found),
                run: run.map_err(|_| "function `testcase` not found")?,
                cleanup: library.get(c"testcase_cleanup").ok().map(|found| *found),
                _library: library,
            })
        }
    }

    /// Before the tasks are there.
    pub fn prepare(&self, tasks: usize) {
        if let Some(prepare) = self.prepare {
            // SAFETY: the function of that name; once, as it expects.
            unsafe { prepare(tasks as c_ulong) }
        }
    }

    /// By each task; should never return.
    pub fn run(&self, counter: &Counter, task: usize) {
        // SAFETY: the count lives as long as the process, and only this task writes it.
        begin_task(|| unsafe { (self.run)(counter.as_ptr(), task as c_ulong) })
    }

    /// When there are no tasks any more.
    pub fn cleanup(&self) {
        if let Some(cleanup) = self.cleanup {
            // SAFETY: the function of that name; once, at the end.
            unsafe { cleanup() }
        }
    }
}

/// The text that `testcase_description` points to.
fn description(library: &Library) -> String {
    // SAFETY: will-it-scale declares this name as a pointer to a string.
    let text = unsafe {
        match library.get::<*const *const c_char>(c"testcase_description") {
            Ok(variable) if !(**variable).is_null() => CStr::from_ptr(**variable),
            _ => c"",
        }
    };
    text.to_string_lossy().into_owned()
}

/// The dynamic linker's message, on one line and without the file's path, which the user knows
/// under another name.
fn reason(file: &Path, error: &libloading::Error) -> String {
    let cause = error.source().map(ToString::to_string);
    let text = cause.unwrap_or_else(|| error.to_string());
    let own = format!("{}: ", file.display());
    text.strip_prefix(&own).unwrap_or(&text).replace('\n', " ")
}
