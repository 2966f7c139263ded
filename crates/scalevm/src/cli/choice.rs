//! The workload: a built-in one, or the user's own.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Args, Command, Error};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use workloads::Workload;

/// The end of the names of recordings.
pub const RECORDING: &str = "vmrec";

/// A workload, as the user names it.
#[derive(Clone, Debug)]
pub enum Choice {
    /// By its name.
    Known(&'static Workload),
    /// By the file of a test case.
    File(PathBuf),
    /// By the file of a recording.
    Recording(PathBuf),
}

/// The workload of `run` and `sweep`.
#[derive(Args)]
#[group(required = true, multiple = false)]
pub struct WorkloadArgs {
    /// The workload (see `scalevm list`), with a size other than will-it-scale's if you like, e.g.
    /// page_fault1:1M; or your own: a recorded program (.vmrec, see `scalevm record`), a C file in
    /// will-it-scale's form (.c), or a shared object built from one (.so)
    #[arg(value_parser = parser(), value_name = "WORKLOAD|FILE")]
    pub workload: Option<Choice>,
    /// Run this command repeatedly, and count how often it completes; `profile` watches one that
    /// takes longer than a sample by time
    #[arg(
        long,
        value_name = "COMMAND",
        allow_hyphen_values = true,
        conflicts_with = "threads"
    )]
    pub command: Option<String>,
}

/// How a recorded program is run.
#[derive(Args, Default)]
pub struct RecordedArgs {
    /// With --threads, multiply the threads of this name (default: the busiest)
    #[arg(long, value_name = "NAME", requires = "threads")]
    pub role: Option<String>,
    /// Run another recorded program at the same time
    #[arg(long, value_name = "FILE")]
    pub beside: Option<PathBuf>,
}

/// Takes names of workloads, and whatever looks like a file of a test case.
pub fn parser() -> impl TypedValueParser<Value = Choice> {
    let names = workloads::all()
        .iter()
        .map(|workload| PossibleValue::new(workload.name).help(workload.description));
    NameOrFile(PossibleValuesParser::new(names))
}

#[derive(Clone)]
struct NameOrFile(PossibleValuesParser);

impl TypedValueParser for NameOrFile {
    type Value = Choice;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Choice, Error> {
        if Path::new(value).extension() == Some(OsStr::new(RECORDING)) {
            return Ok(Choice::Recording(value.into()));
        }
        if is_file(value) {
            return Ok(Choice::File(value.into()));
        }
        let sized = value.to_str().filter(|name| name.contains(':'));
        if let Some(workload) = sized.and_then(workloads::find) {
            return Ok(Choice::Known(workload));
        }
        let name = self.0.parse_ref(command, argument, value)?;
        let found = workloads::find(&name).map(Choice::Known);
        found.ok_or_else(|| Error::new(ErrorKind::InvalidValue))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
}

/// Returns true if `value` can only be a file: no workload's name has a slash or such an end.
fn is_file(value: &OsStr) -> bool {
    let path = Path::new(value);
    let slash = value.as_encoded_bytes().contains(&b'/');
    slash
        || path
            .extension()
            .is_some_and(|end| end == "c" || end == "so")
}
