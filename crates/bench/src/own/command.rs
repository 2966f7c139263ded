//! Parsing a command: its program, and how that is started.

use std::env;
use std::path::Path;

/// The name of a command's program, without its directory and the words before it; none if
/// the text is empty. Results bear this name, so that those of two versions of a program
/// can be compared; the whole command is among the arguments that go with each result.
pub fn name(text: &str) -> Option<String> {
    let mut words = text.split_whitespace();
    let word = words.clone().find(|word| !word.contains('='));
    let word = word.or_else(|| words.next())?;
    let file = Path::new(word).file_name();
    Some(file.map_or_else(
        || word.to_owned(),
        |file| file.to_string_lossy().into_owned(),
    ))
}

/// The arguments to execute: the program itself if the text is nothing but words and a program has
/// the first one's name, else a shell that interprets it. A shell costs more than many a
/// program it starts.
pub fn words(text: &str) -> Vec<String> {
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    let program = words.first().filter(|first| !first.contains('='));
    if program.is_some_and(|first| is_plain(text) && is_program(first)) {
        words
    } else {
        ["/bin/sh", "-c", text].map(str::to_owned).into()
    }
}

/// Returns true if no character means anything to a shell.
fn is_plain(text: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || " \t_-./,:+@%=".contains(c);
    text.chars().all(plain)
}

/// Not a shell's own command.
fn is_program(name: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    name.contains('/') || env::split_paths(&path).any(|place| place.join(name).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_called_after_the_program() {
        for (text, expected) in [
            ("true", "true"),
            ("  /usr/bin/sort -n big.txt", "sort"),
            ("LC_ALL=C sort big.txt", "sort"),
            ("X=1", "X=1"),
            ("/", "/"),
        ] {
            assert_eq!(name(text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(name(" \t"), None);
    }

    #[test]
    fn a_shell_is_started_only_where_one_is_needed() {
        assert_eq!(words("sh  -x ./a,b --c=d"), ["sh", "-x", "./a,b", "--c=d"]);
        assert_eq!(words("./missing now"), ["./missing", "now"]);
        for text in ["sh | sh", "X=1 sh", "sh '*'", "ulimit -n", "sh\nsh", "sh ~"] {
            assert_eq!(words(text), ["/bin/sh", "-c", text]);
        }
    }
}
