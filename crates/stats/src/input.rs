//! What can be wrong with a file that a command reads back.

use std::io::{self, BufRead};

/// A file that cannot be used: which, where and why. Its text is one line.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The file cannot be opened, read or written.
    #[error("{file}: {source}")]
    Unreadable {
        /// The file, as the user named it.
        file: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// A line is not what the format allows.
    #[error("{file}:{line}: {reason}")]
    Line {
        /// The file, as the user named it.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// Every line is sound but the file as a whole is not.
    #[error("{file}: {reason}")]
    Whole {
        /// The file, as the user named it.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// What a line of JSON holds, or the reason why not, which names no file and no line.
pub fn from_json<'a, T: serde::Deserialize<'a>>(line: &'a str) -> Result<T, String> {
    serde_json::from_str(line).map_err(|error| {
        // The line we name is the file's: serde's "at line 1" would contradict it.
        let text = error.to_string();
        text.replace(" at line 1 column ", " at column ")
    })
}

/// Calls `each` with every line (without its line end) and gives the reason it returns the file and line it belongs to.
///
/// Lines are read as bytes, so that a binary file is reported with a line number too.
pub fn for_each_line(
    file: &str,
    mut reader: impl BufRead,
    mut each: impl FnMut(&str) -> Result<(), String>,
) -> Result<(), InputError> {
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        let read =
            reader
                .read_until(b'\n', &mut bytes)
                .map_err(|source| InputError::Unreadable {
                    file: file.into(),
                    source,
                })?;
        if read == 0 {
            break;
        }
        std::str::from_utf8(&bytes)
            .map_err(|error| format!("not UTF-8 text (byte {})", error.valid_up_to() + 1))
            .and_then(|text| each(text.trim_end_matches(['\n', '\r'])))
            .map_err(|reason| InputError::Line {
                file: file.into(),
                line,
                reason,
            })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_file_line_and_reason() {
        let refuse_b = |text: &str| {
            if text == "b" {
                Err("a b".to_string())
            } else {
                Ok(())
            }
        };
        let error = for_each_line("f", &b"a\r\nb\n"[..], refuse_b).unwrap_err();
        assert_eq!(error.to_string(), "f:2: a b");
        let error = for_each_line("f", &b"a\n\xff\xfe\n"[..], refuse_b).unwrap_err();
        assert_eq!(error.to_string(), "f:2: not UTF-8 text (byte 1)");
    }
}
