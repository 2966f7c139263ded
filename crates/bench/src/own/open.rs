//! From the user's argument to a job.

use super::compile::{Directory, compile};
use super::{command, guest};
use crate::harness::{Body, Failure, Job, Own};
use stats::InputError;
use std::path::Path;

/// A job that can be run while this lives.
pub struct Opened {
    pub job: Job,
    /// Where the shared object is, if it was made here.
    _directory: Option<Directory>,
}

impl From<Job> for Opened {
    fn from(job: Job) -> Self {
        Opened {
            job,
            _directory: None,
        }
    }
}

/// The test case of a C file, which is compiled, or of a shared object.
pub fn open(file: &Path) -> Result<Opened, Failure> {
    let name = file.display().to_string();
    let unreadable = |source| InputError::Unreadable {
        file: name.clone(),
        source,
    };
    let whole = file.canonicalize().map_err(unreadable)?;
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let extension = file.extension().unwrap_or_default();
    let source = (extension == "c").then(|| whole.clone());
    let (object, directory) = match extension.to_str() {
        _ if !whole.is_file() => return Err(refused(&name, "not a file")),
        Some("so") => (whole, None),
        Some("c") => {
            let directory = Directory::new().map_err(Failure::start("temporary directory"))?;
            (compile(file, &stem, &directory)?, Some(directory))
        }
        _ => {
            return Err(refused(
                &name,
                "expected a C file (.c) or a shared object (.so)",
            ));
        }
    };
    let description = guest::describe(&name, &object)?;
    Ok(Opened {
        job: own(Own {
            // A test case need not say anything of itself.
            description: description.unwrap_or_else(|| stem.clone().into_owned()),
            name: stem.into_owned(),
            source,
            body: Body::Object(object),
        }),
        _directory: directory,
    })
}

/// The job of running a command again and again.
pub fn repeat(text: &str) -> Result<Opened, Failure> {
    let name = command::name(text)
        .ok_or_else(|| Failure::Unavailable("--command: the command is empty".into()))?;
    Ok(Opened::from(own(Own {
        name,
        description: text.to_owned(),
        source: None,
        body: Body::Command(text.to_owned()),
    })))
}

/// Lives as long as the process: there is one a process, and all references are to it.
fn own(own: Own) -> Job {
    Job::Own(Box::leak(Box::new(own)))
}

fn refused(name: &str, why: &str) -> Failure {
    Failure::Unavailable(format!("{name}: {why}"))
}
