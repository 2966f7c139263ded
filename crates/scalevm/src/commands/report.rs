//! `scalevm report`: results as a page.

use crate::cli::ReportArgs;
use crate::output::file;
use bench::Failure;
use report::{Page, Source};
use serde_json::json;
use std::path::Path;

/// Reads the files and writes the page.
pub fn run(args: &ReportArgs) -> Result<u8, Failure> {
    let written = write(&args.files, &args.output)?;
    let path = args.output.display().to_string();
    if args.json {
        println!(
            "{}",
            json!({
                "kind": "report",
                "path": path,
                "bytes": written.bytes,
                "sections": written.sections,
                "verdict": written.verdict,
            })
        )
    } else {
        println!("{}", written.verdict);
        eprintln!("scalevm: the page is {path}");
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
    let paths = files.iter().map(|path| path.as_ref().display().to_string());
    let sources = Source::read_all(&paths.collect::<Vec<String>>())?;
    for note in sources.iter().flat_map(|source| &source.notes) {
        eprintln!("scalevm: warning: {note}");
    }
    let page = Page::new(&sources);
    let html = page.html();
    file::write(output, html.as_bytes())?;
    Ok(Written {
        bytes: html.len(),
        sections: page.sections(),
        verdict: page.verdict().to_owned(),
    })
}
