//! The example of an embedder runs, its machine keeps the contract, and the guide shows its code.

#[path = "../examples/embed/main.rs"]
mod embed;

use embed::{File, process::Process};
use machine::conformance;
use std::fs;
use std::path::Path;
use std::sync::Arc;

#[test]
fn it_runs() {
    embed::main();
}

#[test]
fn its_machine_keeps_the_contract() {
    conformance::all(&Process::new(2, 2048));
}

#[test]
fn its_store_keeps_pages() {
    let machine = Process::new(2, 64);
    conformance::pager(&machine, Arc::new(File::default()));
    conformance::truncation(&machine, Arc::new(File::default()));
}

fn text(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The lines of code, without indentation, each with an end.
fn code(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| format!("{line}\n")).collect()
}

/// The parts of a page's Rust blocks that are not in `code`; a line of dots divides parts.
fn missing(page: &str, source: &str) -> Vec<String> {
    let blocks = page.split("```rust\n").skip(1);
    let blocks = blocks.map(|rest| rest.split("```").next().unwrap_or_default());
    let parts = blocks.flat_map(|block| block.split("// …\n")).map(code);
    parts.filter(|part| !source.contains(part)).collect()
}

#[test]
fn the_guide_shows_its_code() {
    let source = ["process.rs", "main.rs"].map(|file| text(&format!("examples/embed/{file}")));
    let source = source.map(|text| code(&text));
    assert!(source[0].lines().count() < 250, "a small machine");
    let source = source.concat();
    let page = text("../../docs/embedding.md");
    assert!(page.matches("```rust").count() > 4, "the guide shows code");
    assert_eq!(missing(&page, &source), [""; 0]);
    let changed = page.replace("space.fork()", "space.clone()");
    assert_eq!(missing(&changed, &source).len(), 1, "a change is noticed");
}
