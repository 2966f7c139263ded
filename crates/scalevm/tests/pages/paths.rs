//! The files that a page links to or names.

use std::path::Path;

/// Links of `page`, which lies in `folder`, that lead to no file, and paths under `crates/` and
/// `docs/` that it names in backticks and that are no files under `root`.
pub fn missing(page: &str, folder: &Path, root: &Path) -> Vec<String> {
    let links = linked(page).filter(|link| !folder.join(link).exists());
    let named = named(page).filter(|path| !root.join(path).exists());
    links.chain(named).map(str::to_owned).collect()
}

/// The targets of `[…](link)` and `[…]: link`, except other sites and places on the page itself.
fn linked(page: &str) -> impl Iterator<Item = &str> {
    let inline = page.split("](").skip(1);
    let inline = inline.filter_map(|rest| Some(rest.split_once(')')?.0));
    let below = page.lines().filter(|line| line.starts_with('['));
    let below = below.filter_map(|line| Some(line.split_once("]: ")?.1));
    let links = inline.chain(below).filter(|link| !link.contains("://"));
    let files = links.map(|link| link.split_once('#').map_or(link, |(file, _)| file));
    files.filter(|file| !file.is_empty())
}

/// Paths in backticks, but for patterns.
fn named(page: &str) -> impl Iterator<Item = &str> {
    let quoted = page.split('`').skip(1).step_by(2);
    quoted.filter(|word| {
        let is_path = word.starts_with("crates/") || word.starts_with("docs/");
        is_path && !word.contains(|c: char| c == '*' || c.is_whitespace())
    })
}

#[test]
fn what_a_page_names_is_looked_for() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = "[a](Cargo.toml) [b](gone.md#part) [c](https://d.example) [d](#part) \
                `crates/gone.rs` `docs/*.md` `cargo run`\n[e]: tests/pages/paths.rs\n[f]: \
                gone.rs\n";
    let expected = ["gone.md", "gone.rs", "crates/gone.rs"];
    assert_eq!(missing(page, root, root), expected);
}
