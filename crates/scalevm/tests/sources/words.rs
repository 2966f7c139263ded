//! Prose is plain English, help needs no glossary, and lines have at most 100 columns.
//!
//! Prose is every line of a Rust source or a page, without code in backticks or in blocks of
//! Markdown. Single words are looked for in comments only, as code may use them as names.

use super::support::tree::{files, root};
use std::fs;

/// Phrases that prose does not have, and what says the same.
const PHRASES: &[(&str, &str)] = &[
    ("so many", "this many, or the number's name"),
    ("of which", "one of them, or a second sentence"),
    ("at whose", "a second sentence"),
    ("is wanted", "who needs it"),
    ("is not there", "does not exist"),
    ("are not there", "do not exist"),
    ("who has it", "its owner"),
];

/// Words that comments and pages do not have, and what says the same.
const WORDS: &[(&str, &str)] = &[
    (
        "beside",
        "concurrently, next to, compared with, or in addition to",
    ),
    ("ours", "scalevm's"),
];

/// Terms of the code that help and messages do without; docs/glossary.md explains them.
const PRIVATE: &[&str] = &[
    "corner",
    "corners",
    "leg",
    "legs",
    "stand in",
    "stands in",
    "held back",
    "disturbed",
    "silent",
    "stock",
    "seat",
    "kin",
    "home",
    "hand",
    "roster",
    "ours",
];

/// Values in lines of JSON, which do not change.
const VALUES: &[&str] = &["held back"];

/// The command's own sources, which have what a user reads.
const COMMAND: &str = "crates/scalevm/src/";

/// Columns of a line of Rust.
const WIDEST: usize = 100;

/// Lines without code: those of Markdown's blocks are empty, and code in backticks is gone.
fn without_code(path: &str, text: &str) -> Vec<String> {
    let mut is_block = false;
    let lines = text.lines().map(|line| {
        let is_prose = path.ends_with(".md") || line.trim_start().starts_with("//");
        let is_fence = is_prose && words_of(line).starts_with("```");
        is_block ^= is_fence;
        if is_block || is_fence {
            String::new()
        } else {
            line.split('`').step_by(2).collect()
        }
    });
    lines.collect()
}

/// The line without the marks of a comment.
fn words_of(line: &str) -> &str {
    line.trim_start().trim_start_matches(['/', '!']).trim()
}

/// Returns true if `line` has `phrase`, whole; both are in lower case.
fn has(line: &str, phrase: &str) -> bool {
    let is_letter = |c: char| c.is_alphanumeric() || "_-".contains(c);
    line.match_indices(phrase).any(|(at, _)| {
        !line[..at].ends_with(is_letter) && !line[at + phrase.len()..].starts_with(is_letter)
    })
}

/// The texts that a line of the command's sources shows to a user: help, and quoted sentences
/// without the names of their arguments.
fn shown(path: &str, line: &str) -> Vec<String> {
    let line = line.trim_start();
    if path.starts_with("crates/scalevm/src/cli") && line.starts_with("///") {
        return vec![line.to_owned()];
    }
    let quoted = line.split('"').skip(1).step_by(2);
    let texts = quoted.filter(|text| text.contains(' ') && !VALUES.contains(text));
    let plain = |text: &str| text.split(['{', '}']).step_by(2).collect();
    texts.map(plain).collect()
}

/// The lines of a long help, which stand between `"\` and the next quote.
fn long_help(text: &str) -> Vec<(usize, &str)> {
    let mut is_help = false;
    let lines = text.lines().enumerate().filter(|(_, line)| {
        let was_help = is_help;
        let is_end = line.replace("\\\"", "").contains('"');
        is_help = line.ends_with("= \"\\") || is_help && !is_end;
        was_help
    });
    lines.collect()
}

/// What is wrong with the words of a file, as `path:line: why`.
fn wrong_words(path: &str, text: &str) -> Vec<String> {
    let lines = without_code(path, text);
    let mut wrong = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let mut tell = |why: String| wrong.push(format!("{path}:{}: {why}", index + 1));
        let is_comment = path.ends_with(".md") || line.trim_start().starts_with("//");
        let words = WORDS.iter().filter(|_| is_comment);
        let next = lines.get(index + 1).map_or("", |next| words_of(next));
        let next = next.to_lowercase();
        // A phrase may end on the next line.
        let both = format!("{} {next}", words_of(line).to_lowercase());
        for (phrase, better) in PHRASES.iter().chain(words) {
            if has(&both, phrase) && !has(&next, phrase) {
                tell(format!("`{phrase}`: say {better}"));
            }
        }
        if is_comment && words_of(line).starts_with("Whether ") {
            tell("`Whether`: say `Returns true if`".to_owned());
        }
    }
    wrong
}

/// The private terms in what a file of the command shows, as `path:line: why`.
fn private_terms(path: &str, text: &str) -> Vec<String> {
    let lines = text.lines().enumerate();
    let short = lines.flat_map(|(index, line)| {
        let texts = shown(path, line).into_iter();
        texts.map(move |text| (index, text))
    });
    let long = long_help(text).into_iter();
    let texts = short.chain(long.map(|(index, line)| (index, line.to_owned())));
    let wrong = texts.flat_map(|(index, line)| {
        let line = line.to_lowercase();
        let terms = PRIVATE.iter().filter(move |term| has(&line, term));
        terms.map(move |term| format!("{path}:{}: `{term}` is a private term", index + 1))
    });
    wrong.collect()
}

/// The lines of a source that are too long, as `path:line: why`. Addresses and rows of tables
/// cannot be wrapped.
fn too_long(path: &str, text: &str) -> Vec<String> {
    let lines = text.lines().enumerate();
    let wide = lines.filter(|(_, line)| {
        let is_whole = line.contains("://") || words_of(line).starts_with('|');
        line.chars().count() > WIDEST && !is_whole
    });
    wide.map(|(index, _)| format!("{path}:{}: more than {WIDEST} columns", index + 1))
        .collect()
}

/// All that is wrong with a file.
fn violations(path: &str, text: &str) -> Vec<String> {
    let mut wrong = wrong_words(path, text);
    if path.ends_with(".rs") {
        wrong.extend(too_long(path, text));
    }
    if path.starts_with(COMMAND) {
        // Unit tests show nothing.
        let shown = text.split("#[cfg(test)]").next().unwrap_or_default();
        wrong.extend(private_terms(path, shown));
    }
    wrong
}

#[test]
fn sources_are_plain_english_in_short_lines() {
    let root = root();
    let mut wrong = Vec::new();
    let mut seen = 0;
    for path in files(&root) {
        let name = path.strip_prefix(&root).expect("in the root");
        let name = name.to_str().expect("a plain name");
        let is_read = name.ends_with(".rs") || name.ends_with(".md");
        // This file has the phrases.
        if is_read && !name.ends_with("sources/words.rs") {
            let text = fs::read_to_string(&path).expect("a source");
            wrong.extend(violations(name, &text));
            seen += 1;
        }
    }
    assert!(seen > 1000, "only {seen} files");
    wrong.sort();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_planted_phrase_is_found() {
    let lines = |path: &str, text: &str| {
        let lines = violations(path, text);
        let number = |line: &String| line.split(':').nth(1).map(str::to_owned);
        Vec::from_iter(lines.iter().filter_map(number))
    };
    let found = |text: &str| lines("crates/vm/src/lib.rs", text);
    assert_eq!(found("/// Takes so many frames.\nfn f() {}\n"), ["1"]);
    assert_eq!(
        found("fn f() {}\n    // A page at\n    // whose end.\n"),
        ["2"]
    );
    assert_eq!(found("say(\"it is not there\");\n"), ["1"]);
    assert_eq!(found("/// Whether it is free.\n"), ["1"]);
    assert_eq!(
        found("//! Besides, `beside` is a name.\nlet ours = 1;\n"),
        [""; 0]
    );
    assert_eq!(found("// One beside another.\n"), ["1"]);
    assert_eq!(lines("a.md", "```\nof which\n```\nOf which?\n"), ["4"]);
    assert_eq!(found("//! ```\n//! so many\n//! ```\n"), [""; 0]);
    assert_eq!(found(&format!("// {}\n", "a ".repeat(50))), ["1"]);
    assert_eq!(found(&format!("//! | {} |\n", "a ".repeat(50))), [""; 0]);
}

#[test]
fn a_private_term_in_help_is_found() {
    let found = |path: &str, text: &str| private_terms(path, text).len();
    let help = "crates/scalevm/src/cli/sim.rs";
    assert_eq!(found(help, "/// One of the four corners\n"), 1);
    assert_eq!(found(help, "corner: self.corner, // a corner\n"), 0);
    assert_eq!(
        found(
            help,
            "#[a(help = \"\\\nA \\\"corner\\\".\nHeld back.\")]\n// seat\n"
        ),
        2
    );
    let output = "crates/scalevm/src/output/range.rs";
    assert_eq!(found(output, "json!({ \"corners\": range })\n"), 0);
    assert_eq!(found(output, "println!(\"over the corners\");\n"), 1);
}
