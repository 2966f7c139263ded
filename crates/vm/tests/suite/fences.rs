//! Each full fence of the protocols has a model that fails without it, in each run.
//!
//! A processor that orders stores before loads hides a missing fence from every test but a model.
//! So this looks at the sources: a fence, or a publication, stands below a comment, and a model
//! names the beginning of that comment as the place of a planted flaw ([`loomed::flaw`]).

use std::fs;
use std::path::Path;

/// Where the protocols are, and their models.
const SOURCES: [&str; 3] = ["src", "../sync/src", "../sched/src/best"];
const MODELS: [&str; 4] = ["src", "tests", "../sync/tests", "../sched/tests"];

/// Fences whose flaw no model plants, by a part of their comments, and the reason.
const OTHERS: [(&str, &str); 5] = [
    (
        "Publish: pairs with `Object::size`; the bytes it adds",
        "a size that grows is seen later without the fence, and that is all",
    ),
    (
        "Pairs with the fence in `truncate`, which waits for",
        "the store's pages behind the end are cut off later, under the lock of the size",
    ),
    (
        "Pairs with the publication of the size in `Object::truncate`: this sees",
        "no model: other fences of a fork and of a move hide it",
    ),
    (
        "Pairs with the fence in `close`",
        "an object that goes too early is no error that the checker sees",
    ),
    (
        "Then a fence: pairs with the one in `make_shard`",
        "an object that goes too early is no error that the checker sees",
    ),
];

/// The texts of the Rust sources below `folder` that `wanted` chooses by their paths.
fn texts(folder: &Path, wanted: fn(&str) -> bool) -> Vec<(String, String)> {
    let entries = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path());
    let found = entries.flat_map(|path| {
        if path.is_dir() {
            texts(&path, wanted)
        } else {
            let name = path.to_str().expect("a name in UTF-8").to_owned();
            let is_wanted = name.ends_with(".rs") && wanted(&name);
            let text = is_wanted.then(|| fs::read_to_string(path).expect("a text"));
            text.map(|text| (name, text)).into_iter().collect()
        }
    });
    found.collect()
}

fn all(folders: &[&str], wanted: fn(&str) -> bool) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    folders
        .iter()
        .flat_map(|folder| texts(&root.join(folder), wanted))
        .collect()
}

/// The comments above the fences of a source, each with the number of its fence's line.
fn fences(text: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_fence =
        |line: &str| line.contains("fence(Ordering::SeqCst)") || line.contains(".publish(");
    let (mut comment, mut found) = (String::new(), Vec::new());
    let mut continues = false;
    for (index, line) in lines.into_iter().enumerate() {
        match line
            .strip_prefix("//")
            .map(|rest| rest.trim_start_matches(['/', '!']).trim())
        {
            Some(rest) if continues => comment = format!("{comment} {rest}"),
            Some(rest) => comment = rest.to_owned(),
            None if is_fence(line) && !line.contains("filling") => {
                found.push((index + 1, comment.clone()))
            }
            None => {}
        }
        continues = line.starts_with("//");
    }
    found
}

#[test]
fn each_fence_has_a_model_that_fails_without_it() {
    let models = all(&MODELS, |path| path.contains("model"));
    let quotes: Vec<&str> = models
        .iter()
        .flat_map(|(_, text)| text.split('"'))
        .collect();
    let is_planted = |comment: &str| {
        let mut quotes = quotes.iter().filter_map(|quote| quote.split("\\n").next());
        quotes.any(|quote| {
            let quote = quote.trim_start_matches("// ");
            quote.len() > 20 && comment.contains(quote)
        })
    };
    let mut excused = [false; OTHERS.len()];
    let (mut count, mut missing) = (0, Vec::new());
    for (path, text) in all(&SOURCES, |path| !path.contains("model")) {
        for (line, comment) in fences(&text) {
            count += 1;
            match OTHERS.iter().position(|(part, _)| comment.contains(part)) {
                Some(other) => excused[other] = true,
                None if is_planted(&comment) => {}
                None => missing.push(format!("{path}:{line}: {comment}")),
            }
        }
    }
    assert!(
        missing.is_empty(),
        "no model plants a flaw here:\n{}",
        missing.join("\n")
    );
    assert_eq!(excused, [true; OTHERS.len()], "excuses without a fence");
    assert!(count > 20, "{count} fences");
}
