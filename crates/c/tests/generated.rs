//! The header and the manual match the sources. `PAGES=write` in the environment writes them.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::crate_folder;

/// The sources of the header, in its order.
const SOURCES: [&str; 11] = [
    "tas", "ticket", "conbo", "mcs", "clh", "k42", "mutex", "adaptive", "rwlock", "epoch",
    "counter",
];

fn source(name: &str) -> String {
    let path = crate_folder().join("src").join(name).with_extension("rs");
    fs::read_to_string(path).expect("a source")
}

/// Generates the header from the sources.
fn header() -> String {
    let folder = crate_folder();
    let mut config =
        cbindgen::Config::from_file(folder.join("cbindgen.toml")).expect("the configuration");
    let trailer = config.trailer.as_mut().expect("a trailer");
    *trailer = trailer.replace("ASSERTIONS", &assertions().join("\n"));
    let mut builder = cbindgen::Builder::new().with_config(config);
    for name in SOURCES {
        builder = builder.with_src(folder.join("src").join(name).with_extension("rs"));
    }
    let mut header = Vec::new();
    builder.generate().expect("a header").write(&mut header);
    String::from_utf8(header).expect("text")
}

/// The assertions of `object!(type = …, size, align)` in the sources, for C.
fn assertions() -> Vec<String> {
    let mut found = Vec::new();
    for source in SOURCES.map(source) {
        for line in source.lines() {
            if let Some(arguments) = line.strip_prefix("object!(") {
                let arguments = arguments.trim_end_matches(");");
                let (name, rest) = arguments.split_once(" = ").expect("a type");
                let mut numbers = rest.rsplitn(3, ", ");
                let (align, size) = (numbers.next().unwrap_or(""), numbers.next().unwrap_or(""));
                found.push(format!("SCALEVM_ASSERT({name}, {size}, {align});"));
            }
        }
    }
    found
}

/// Checks that the file has `text`, or writes it.
fn hold(path: &Path, text: &str) -> Result<(), String> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    match std::env::var_os("PAGES") {
        Some(_) => fs::write(path, text).map_err(|error| error.to_string()),
        None => Err(format!(
            "{} is not that of the sources; PAGES=write corrects it",
            path.display()
        )),
    }
}

#[test]
fn the_header_is_that_of_the_sources() {
    assert_eq!(assertions().len(), 13, "every type of C is asserted");
    hold(&crate_folder().join("include/scalevm.h"), &header()).unwrap();
}

/// A function of the header.
struct Function {
    name: String,
    prototype: String,
    text: String,
}

/// The functions of a header, in its order.
fn functions(header: &str) -> Vec<Function> {
    let (mut found, mut text, mut prototype) = (Vec::new(), String::new(), String::new());
    for line in header.lines() {
        if line.starts_with("/**") {
            text.clear();
        } else if let Some(comment) = line.strip_prefix(" *") {
            text += comment.trim_start_matches('/').trim();
            text.push(' ');
        } else if line.contains(" scalevm_") && line.contains('(') && !line.starts_with('#')
            || !prototype.is_empty()
        {
            prototype += &format!("{} ", line.trim());
            if line.ends_with(");") {
                let name = prototype
                    .split('(')
                    .next()
                    .and_then(|head| head.split([' ', '*']).next_back());
                found.push(Function {
                    name: name.expect("a name").to_owned(),
                    prototype: prototype.trim().to_owned(),
                    text: text.trim().to_owned(),
                });
                (text, prototype) = (String::new(), String::new());
            }
        }
    }
    found
}

/// The `//!` at the head of a source, as paragraphs of one line each.
fn about(source: &str) -> Vec<String> {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    let text = lines.map(str::trim).collect::<Vec<_>>().join("\n");
    text.split("\n\n")
        .map(|paragraph| paragraph.replace('\n', " "))
        .collect()
}

/// Text for man: names of functions and manual pages in bold, code as it is.
fn man(text: &str) -> String {
    let text = text
        .replace('\\', "\\e")
        .replace('-', "\\-")
        .replace('`', "");
    let words = text.split(' ').map(|word| match word.find('(') {
        Some(at)
            if at > 0
                && word[..at].chars().all(|c| c.is_alphanumeric() || c == '_')
                && word[at..].contains(')') =>
        {
            format!("\\fB{}\\fR{}", &word[..at], &word[at..])
        }
        _ => word.to_owned(),
    });
    let text = words.collect::<Vec<_>>().join(" ");
    if text.starts_with(['.', '\'']) {
        format!("\\&{text}")
    } else {
        text
    }
}

const SEE: &str = "scalevm";

/// The page of a source: its text, and its functions.
fn page(title: &str, about: &[String], functions: &[&Function]) -> String {
    let mut page = format!(
        ".\\\" Made from the sources by tests/generated.rs; do not edit.\n.TH {title} 3 \"\" \
         \"scalevm {}\" \"Library functions\"\n.SH NAME\n",
        env!("CARGO_PKG_VERSION")
    );
    let mut names: Vec<&str> = functions
        .iter()
        .map(|function| function.name.as_str())
        .collect();
    if names.is_empty() {
        names.push(title);
    }
    page += &format!(
        "{} \\- {}\n.SH LIBRARY\nscalevm (\\fBlibscalevm\\fR, \\fB\\-lscalevm\\fR)\n",
        names.join(", "),
        man(&about[0])
    );
    page += ".SH SYNOPSIS\n.nf\n\\fB#include <scalevm.h>\\fR\n";
    for function in functions {
        page += &format!(".PP\n\\fB{}\\fR\n", function.prototype.replace('-', "\\-"));
    }
    page += ".fi\n.SH DESCRIPTION\n";
    for (at, paragraph) in about[1..].iter().enumerate() {
        page += &format!("{}{}\n", if at > 0 { ".PP\n" } else { "" }, man(paragraph));
    }
    for function in functions {
        page += &format!(".SS {}()\n{}\n", function.name, man(&function.text));
    }
    if title != SEE {
        page += ".SH SEE ALSO\n.BR scalevm (3)\n";
    } else {
        let others = SOURCES.map(|source| format!(".BR scalevm_{source}_init (3)"));
        page += &format!(".SH SEE ALSO\n{}\n", others.join(",\n"));
    }
    page
}

/// All pages by file name.
fn pages() -> BTreeMap<String, String> {
    let functions = functions(&header());
    let mut pages = BTreeMap::new();
    pages.insert(
        "scalevm.3".to_owned(),
        page(SEE, &about(&source("lib")), &[]),
    );
    for name in SOURCES {
        let prefix = format!("scalevm_{name}_");
        let own: Vec<&Function> = functions
            .iter()
            .filter(|f| f.name.starts_with(&prefix))
            .collect();
        let first = &own[0].name;
        pages.insert(
            format!("{first}.3"),
            page(first, &about(&source(name)), &own),
        );
        for function in &own[1..] {
            pages.insert(
                format!("{}.3", function.name),
                format!(".so man3/{first}.3\n"),
            );
        }
    }
    pages
}

#[test]
fn the_manual_is_that_of_the_sources() {
    let folder = crate_folder().join("man");
    let pages = pages();
    let functions = functions(&header());
    assert!(functions.len() > 60, "{}", functions.len());
    for function in functions {
        assert!(
            pages.contains_key(&format!("{}.3", function.name)),
            "{} has a page",
            function.name
        );
        assert!(!function.text.is_empty(), "{} has a text", function.name);
    }
    let wrong: Vec<String> = pages
        .iter()
        .filter_map(|(name, page)| hold(&folder.join(name), page).err())
        .collect();
    assert_eq!(wrong, [""; 0]);
    let there = fs::read_dir(&folder)
        .expect("the pages")
        .map(|entry| entry.expect("a page").file_name());
    let stale: Vec<_> = there
        .filter(|name| !pages.contains_key(&*name.to_string_lossy()))
        .collect();
    assert_eq!(stale, [""; 0], "pages of no function");
}

/// The warnings of a formatter about a page.
fn warnings(page: &Path) -> String {
    let output = Command::new("groff")
        .args(["-man", "-ww", "-Tutf8", "-z"])
        .arg(page)
        .output()
        .expect("groff runs");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_manual_is_well_formed() {
    let pages: Vec<PathBuf> = pages()
        .iter()
        .filter(|(_, page)| !page.starts_with(".so"))
        .map(|(name, _)| crate_folder().join("man").join(name))
        .collect();
    assert_eq!(pages.len(), SOURCES.len() + 1);
    for page in pages {
        assert_eq!(warnings(&page), "", "{}", page.display());
    }
    let folder = tempfile::tempdir().expect("a folder");
    let broken = folder.path().join("broken.3");
    fs::write(&broken, ".TH broken 3\n.SH\n.unknown\n").expect("a page");
    assert_ne!(warnings(&broken), "", "a broken page is noticed");
}
