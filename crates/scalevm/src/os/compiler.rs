//! The compiler of `build`: this program again, under another name.

use super::system::{Linux, Prepared};
use crate::harness::Mode;
use std::ffi::CString;
use std::fs::File;
use std::os::fd::{FromRawFd, RawFd};
use std::process::ExitCode;
use workloads::Files;

/// What it is called as its own first argument.
const NAME: &str = "scalevm-compiler";
/// Exit code of a compiler that was not started as [`arguments`] say.
const MISUSED: u8 = 2;

/// What it is started with: the unit's number, and those of the descriptors of the inputs and the output.
pub fn arguments(unit: u64, files: [RawFd; 4]) -> Vec<CString> {
    let numbers = files.map(|number| number.to_string());
    let words = [NAME.to_owned(), unit.to_string()]
        .into_iter()
        .chain(numbers);
    let word = |word| CString::new(word).expect("letters and digits");
    words.map(word).collect()
}

/// Compiles, if this process is a compiler; then its exit code.
pub fn run() -> Option<ExitCode> {
    let mut words = std::env::args();
    if words.next()? != NAME {
        return None;
    }
    let numbers: Result<Vec<u64>, _> = words.map(|word| word.parse()).collect();
    let Ok(&[unit, program, library, sources, output]) = numbers.as_deref() else {
        eprintln!("{NAME}: started by scalevm itself");
        return Some(ExitCode::from(MISUSED));
    };
    // SAFETY: opened for this process by who has started it, and taken over once.
    let file = |number: u64| unsafe { File::from_raw_fd(number as RawFd) };
    let inputs = Files {
        program: file(program),
        library: file(library),
        sources: file(sources),
    };
    let mut system = Linux::new(std::env::temp_dir(), Mode::Processes, Prepared::default());
    Some(
        match workloads::compile(&mut system, unit, &inputs, &file(output)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{NAME}: unit {unit}: {error}");
                ExitCode::FAILURE
            }
        },
    )
}
