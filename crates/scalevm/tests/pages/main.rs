//! The numbers in the README and in `docs` are those that the command prints.
//!
//! A page has a number, a table or a text between two marks, and the first mark names the command:
//!
//! ```markdown
//! <!-- of: scalevm check conflicts --json | number record=summary apart.free -->550<!-- end -->
//! ```
//!
//! - `of:` marks output that takes seconds and is the same on every computer. The test runs the
//!   command and compares.
//! - `full:` marks output that takes minutes, or depends on the computer. It is only written.
//!
//! With `PAGES=write` in the environment the test writes the output of `of:` into the pages instead
//! of comparing it, and with `PAGES=full` all output: `PAGES=full cargo test --release -p scalevm
//! --test pages`; `PAGES_OF=docs/studies` leaves out all pages but those. `render.rs` lists the
//! renderers (after `|`). `tests/costs.rs` of `vm` and of `baselines` hold and write the figures of
//! `docs/costs.md`. Besides, a page may link to and name only files that exist.

mod blocks;
mod paths;
mod render;
mod scaling;
#[path = "../support/mod.rs"]
mod support;

use blocks::{Block, rewritten};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use support::command::{scalevm, text};
use support::scratch::Scratch;

/// Where the project lies.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages at the top, and all of `docs`.
fn pages() -> Vec<PathBuf> {
    let top = ["README.md", "ARCHITECTURE.md", "CAVEATS.md", "CHANGELOG.md"];
    let mut pages = Vec::from(top.map(|page| root().join(page)));
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|end| end == "md") => pages.push(path),
                false => {}
            }
        }
    }
    pages.sort();
    pages
}

/// Runs each command once.
struct Runner {
    folder: Scratch,
    known: RefCell<BTreeMap<String, String>>,
}

impl Runner {
    /// The output of commands, one after the other.
    fn all(&self, commands: &str) -> Result<String, String> {
        commands
            .split(" && ")
            .map(|command| self.stdout(command))
            .collect()
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

    /// The content of `block`.
    fn content(&self, block: &Block) -> Result<String, String> {
        render::render(block.renderer, &self.all(block.command)?)
    }
}

#[test]
fn pages_say_what_the_command_prints() {
    let mode = std::env::var("PAGES").unwrap_or_default();
    let runner = Runner {
        folder: Scratch::folder("pages"),
        known: RefCell::default(),
    };
    // Plans of campaigns are found where the pages are.
    symlink(root().join("docs"), runner.folder.0.join("docs")).expect("a link");
    let only = std::env::var("PAGES_OF").unwrap_or_default();
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for path in pages() {
        if !path.to_string_lossy().contains(&only) {
            continue;
        }
        let page = fs::read_to_string(&path).expect("a page");
        let new = rewritten(&page, |block| match (block.is_full, mode.as_str()) {
            (true, "full") | (false, _) => {
                checked += 1;
                runner.content(block)
            }
            (true, _) => Ok(block.content.to_owned()),
        });
        match new {
            Err(error) => wrong.push(format!("{}: {error}", path.display())),
            Ok(new) if new == page => {}
            Ok(new) if !mode.is_empty() => fs::write(&path, new).expect("the page is written"),
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
    assert!(
        checked >= 5 || !only.is_empty(),
        "only {checked} places are held"
    );
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
