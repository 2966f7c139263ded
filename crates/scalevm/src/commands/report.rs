//! `scalevm report`: results as a page.

use crate::cli::ReportArgs;
use crate::harness::Failure;
use report::{Page, Source};
use serde_json::json;
use stats::InputError;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Reads the files and writes the page.
pub fn run(args: &ReportArgs) -> Result<u8, Failure> {
    let written = write(&args.files, &args.output)?;
    let path = args.output.display().to_string();
    match args.json {
        true => println!(
            "{}",
            json!({
                "kind": "report",
                "path": path,
                "bytes": written.bytes,
                "sections": written.sections,
                "verdict": written.verdict,
            })
        ),
        false => {
            println!("{}", written.verdict);
            eprintln!("scalevm: the page is {path}");
        }
    }
    Ok(0)
}

/// A page that was written.
pub struct Written {
    bytes: usize,
    sections: Vec<&'static str>,
    /// Its first sentence.
    pub verdict: String,
}

/// Writes the page of `files` to `output`.
pub fn write(files: &[impl AsRef<Path>], output: &Path) -> Result<Written, Failure> {
    let mut sources = Vec::new();
    for path in files {
        sources.push(Source::read(&path.as_ref().display().to_string())?);
    }
    let page = Page::new(&sources);
    let html = page.html();
    replace(output, html.as_bytes()).map_err(|source| unusable(output, source))?;
    Ok(Written {
        bytes: html.len(),
        sections: page.sections(),
        verdict: page.verdict().to_owned(),
    })
}

/// Writes beside `path` and then takes its place: nobody sees half a page.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.part", std::process::id()));
    let beside = PathBuf::from(beside);
    let written = fs::write(&beside, bytes).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // What could not be written may not be there; what is there is of no use.
        let _ = fs::remove_file(&beside);
    }
    written
}

fn unusable(path: &Path, source: io::Error) -> InputError {
    InputError::Unreadable {
        file: path.display().to_string(),
        source,
    }
}
