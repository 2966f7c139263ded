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
    let mut sources = Vec::new();
    for file in &args.files {
        for path in expand(file)? {
            sources.push(Source::read(&path)?);
        }
    }
    let page = Page::new(&sources);
    let html = page.html();
    replace(&args.output, html.as_bytes()).map_err(|source| unusable(&args.output, source))?;
    let path = args.output.display().to_string();
    match args.json {
        true => println!(
            "{}",
            json!({
                "kind": "report",
                "path": path,
                "bytes": html.len(),
                "sections": page.sections(),
                "verdict": page.verdict(),
            })
        ),
        false => {
            println!("{}", page.verdict());
            eprintln!("scalevm: the page is {path}");
        }
    }
    Ok(0)
}

/// A file is itself; a folder is its result files, by name.
fn expand(path: &Path) -> Result<Vec<String>, InputError> {
    let name = path.display().to_string();
    if !path.is_dir() {
        return Ok(vec![name]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(|source| unusable(path, source))? {
        let file = entry.map_err(|source| unusable(path, source))?.path();
        if file.extension().is_some_and(|ending| ending == "jsonl") {
            files.push(file.display().to_string());
        }
    }
    files.sort();
    match files.is_empty() {
        true => Err(InputError::Whole {
            file: name,
            reason: "no .jsonl files in it".into(),
        }),
        false => Ok(files),
    }
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
