//! The example of an embedder runs, its machine keeps the contract, and the guide shows its code.

#[path = "../examples/embed/main.rs"]
mod embed;

use embed::{File, process::Process};
use machine::conformance;
use std::fs;
use std::path::{Path, PathBuf};
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

const GUIDE: &str = "../../docs/embedding.md";

fn place(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn text(path: &str) -> String {
    fs::read_to_string(place(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
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
    let page = text(GUIDE);
    assert!(page.matches("```rust").count() > 4, "the guide shows code");
    assert_eq!(missing(&page, &source), [""; 0]);
    let changed = page.replace("space.fork()", "space.clone()");
    assert_eq!(missing(&changed, &source).len(), 1, "a change is noticed");
}

/// The first cells of a table's row, each with the bar before it.
fn cells(row: &str, count: usize) -> String {
    let cells = row.split('|').skip(1).take(count);
    cells.map(|cell| format!("|{cell}")).collect::<String>() + "|"
}

/// The guide with the figures of the page of costs: its rows are the first cells of rows there.
fn with_figures(guide: &str, costs: &str) -> String {
    let (before, figures) = guide.split_once("\n## What it costs\n").expect("costs");
    let row = |line: &str| -> String {
        if !line.starts_with("| ") {
            return line.to_owned();
        }
        let name = cells(line, 1);
        let found = costs.lines().find(|row| row.starts_with(&name));
        let found = found.unwrap_or_else(|| panic!("{name} is not among the costs"));
        cells(found, line.matches('|').count() - 1)
    };
    let (figures, after) = figures.split_once("\n## ").expect("another part");
    let figures: Vec<_> = figures.lines().map(row).collect();
    format!(
        "{before}\n## What it costs\n{}\n\n## {after}",
        figures.join("\n").trim_end()
    )
}

/// As `./pages` writes them, with `PAGES` in the environment.
#[test]
fn the_guide_has_the_figures_of_the_costs() {
    let (guide, costs) = (text(GUIDE), text("../../docs/costs.md"));
    let current = with_figures(&guide, &costs);
    if std::env::var_os("PAGES").is_some() {
        fs::write(place(GUIDE), current).expect("the page is written");
        return;
    }
    assert_eq!(current, guide);
    let changed = costs.replace("| page descriptor | 32 |", "| page descriptor | 33 |");
    assert!(with_figures(&guide, &changed).contains("| page descriptor | 33 |"));
}
