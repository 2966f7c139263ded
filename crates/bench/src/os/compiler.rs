//! The compiler of `build`: this program again, under another name.

use super::system::{Linux, Prepared};
use crate::harness::{Mode, say};
use std::ffi::CString;
use std::fs::File;
use std::os::fd::{FromRawFd, RawFd};
use std::process::ExitCode;
use workloads::Files;

/// Its first argument: its name.
const NAME: &str = "scalevm-compiler";
/// Exit code of a compiler that was not started as [`arguments`] say.
const MISUSED: u8 = 2;

/// Its arguments: the unit's number, and those of the descriptors of the output and of the
/// inputs, in the order of [`Files::iter`].
pub fn arguments(unit: u64, output: RawFd, inputs: &[RawFd]) -> Vec<CString> {
    let descriptors = [output].into_iter().chain(inputs.iter().copied());
    let words = [NAME.to_owned(), unit.to_string()].into_iter();
    let words = words.chain(descriptors.map(|number| number.to_string()));
    words
        .map(|word| CString::new(word).expect("letters and digits"))
        .collect()
}

/// Compiles, if this process is a compiler, and returns the exit code.
pub fn run() -> Option<ExitCode> {
    let mut words = std::env::args();
    if words.next()? != NAME {
        return None;
    }
    let Some((unit, output, inputs)) = taken_over(words) else {
        say(format_args!("{NAME}: started by scalevm itself"));
        return Some(ExitCode::from(MISUSED));
    };
    let mut system = Linux::new(std::env::temp_dir(), Mode::Processes, Prepared::default());
    Some(
        match workloads::compile(&mut system, unit, &inputs, &output) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                say(format_args!("{NAME}: unit {unit}: {error}"));
                ExitCode::FAILURE
            }
        },
    )
}

/// Takes over the descriptors of [`arguments`].
fn taken_over(mut words: impl Iterator<Item = String>) -> Option<(u64, File, Files<File>)> {
    let unit = words.next()?.parse().ok()?;
    let mut file = || {
        let number: RawFd = words.next()?.parse().ok().filter(|number| *number >= 0)?;
        // SAFETY: the parent opened it for this process, which takes it over once.
        Some(unsafe { File::from_raw_fd(number) })
    };
    let output = file()?;
    let inputs = Files::try_new(|_| file().ok_or(())).ok()?;
    Some((unit, output, inputs))
}
