//! The numbers in the README and in `docs` are those that the command prints.
//!
//! A page has a number between two marks. The first names the command, and where in its output the
//! number stands ([`number`]):
//!
//! ```markdown
//! <!-- of: scalevm check conflicts --json | record=summary apart.free -->550<!-- end -->
//! ```
//!
//! Such a command takes seconds, and prints the same on every computer. The test runs it and
//! compares; with `PAGES=write` in the environment it writes the number instead.
//!
//! Output that takes minutes, or depends on the computer, is in `docs/results` ([`results`]). It is
//! only written: by `./pages`, which writes all figures.
//!
//! `tests/costs.rs` of `vm` and of `baselines` hold and write the figures of `docs/costs.md`.
//! Besides, a page may link to and name only files that exist, and the book has all pages.

mod blocks;
mod number;
mod paths;
mod results;
mod scaling;
#[path = "../support/mod.rs"]
mod support;

use blocks::rewritten;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use support::command::{scalevm, text};
use support::scratch::Scratch;
use support::tree::{files, root};

/// The pages at the top, and all of `docs`.
fn pages() -> Vec<PathBuf> {
    let top = ["README.md", "ARCHITECTURE.md", "CAVEATS.md", "CHANGELOG.md"];
    let mut pages = Vec::from(top.map(|page| root().join(page)));
    let docs = files(&root().join("docs")).into_iter();
    pages.extend(docs.filter(|path| path.extension().is_some_and(|end| end == "md")));
    pages.sort();
    pages
}

/// Runs each command once.
struct Runner {
    folder: Scratch,
    known: RefCell<BTreeMap<String, String>>,
}

impl Runner {
    /// Runs commands in a folder of the test `name`.
    fn new(name: &str) -> Self {
        let folder = Scratch::folder(name);
        // Plans of campaigns are found where the pages are.
        symlink(root().join("docs"), folder.0.join("docs")).expect("a link");
        Runner {
            folder,
            known: RefCell::default(),
        }
    }

    /// The output of `command`; figures that miss (1) and inconclusive results (3) are no failures.
    fn stdout(&self, command: &str) -> Result<String, String> {
        if let Some(known) = self.known.borrow().get(command) {
            return Ok(known.clone());
        }
        let arguments = command
            .strip_prefix("scalevm")
            .filter(|rest| rest.is_empty() || rest.starts_with(' '))
            .ok_or_else(|| format!("`{command}` is no command of scalevm"))?;
        eprintln!("running {command}");
        let output = scalevm(arguments)
            .current_dir(&self.folder.0)
            .output()
            .expect("the command starts");
        if !matches!(output.status.code(), Some(0 | 1 | 3)) {
            let why = text(&output.stderr);
            return Err(format!("`{command}`: {}: {why}", output.status));
        }
        let stdout = text(&output.stdout);
        let mut known = self.known.borrow_mut();
        known.insert(command.to_owned(), stdout.clone());
        Ok(stdout)
    }
}

#[test]
fn pages_say_what_the_command_prints() {
    let writes = std::env::var_os("PAGES").is_some();
    let runner = Runner::new("pages");
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for path in pages() {
        let page = fs::read_to_string(&path).expect("a page");
        let new = rewritten(&page, |block| {
            checked += 1;
            number::number(block.number, &runner.stdout(block.command)?)
        });
        match new {
            Err(error) => wrong.push(format!("{}: {error}", path.display())),
            Ok(new) if new == page => {}
            Ok(new) if writes => fs::write(&path, new).expect("the page is written"),
            Ok(new) => {
                let (old, new) = (page.lines(), new.lines());
                let differs = old.zip(new).enumerate().find(|(_, (old, new))| old != new);
                let (line, (old, new)) = differs.expect("a line differs");
                let page = path.display();
                wrong.push(format!("{page}:{}:\n says {old}\n  not {new}", line + 1));
            }
        }
    }
    let wrong = wrong.join("\n");
    assert!(wrong.is_empty(), "{wrong}\n`PAGES=write` corrects it");
    assert!(checked >= 5, "only {checked} places are held");
}

#[test]
fn pages_name_files_that_exist() {
    let missing = pages().into_iter().flat_map(|path| {
        let page = fs::read_to_string(&path).expect("a page");
        let folder = path.parent().expect("a page lies in a folder");
        let missing = paths::missing(&page, folder, &root()).into_iter();
        Vec::from_iter(missing.map(|file| format!("{}: {file}", path.display())))
    });
    assert_eq!(missing.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn the_book_has_all_pages() {
    let docs = root().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).expect("the summary");
    let pages = pages();
    let pages = pages
        .iter()
        .filter_map(|page| page.strip_prefix(&docs).ok());
    let names = pages.map(|page| page.to_str().expect("UTF-8"));
    let missing =
        names.filter(|&page| page != "SUMMARY.md" && !summary.contains(&format!("({page})")));
    assert_eq!(missing.collect::<Vec<_>>(), [""; 0]);
}
