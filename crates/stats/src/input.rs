//! Errors in files that a command reads back.

use std::io::{self, BufRead};

/// An unusable file: which, where and why, on one line.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The file cannot be opened, read or written.
    #[error("{file}: {source}")]
    Unreadable {
        /// The file, as the user named it.
        file: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// A line violates the format.
    #[error("{file}:{line}: {reason}")]
    Line {
        /// The file, as the user named it.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// The error.
        reason: String,
    },
    /// Every line is valid but the file as a whole is not.
    #[error("{file}: {reason}")]
    Whole {
        /// The file, as the user named it.
        file: String,
        /// The error.
        reason: String,
    },
}

/// Parses a line of JSON, or returns the reason why it is invalid, without file and line.
pub fn from_json<'a, T: serde::Deserialize<'a>>(line: &'a str) -> Result<T, String> {
    serde_json::from_str(line).map_err(|error| {
        // The error names the line of the file; serde's "at line 1" would contradict it.
        let text = error.to_string();
        text.replace(" at line 1 column ", " at column ")
    })
}

/// Calls `each` with every line (without its line end) and adds file and line to the reason it
/// returns.
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
