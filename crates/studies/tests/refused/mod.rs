//! Files with a mistake.

use std::fmt::Display;

/// Each of `planted` replaces a text of the `good` file by another: `read` must refuse the file in
/// one line, which begins with the file's name and contains the third text.
pub fn each<T, E: Display>(
    good: &str,
    file: &str,
    planted: &[(&str, &str, &str)],
    read: impl Fn(&str) -> Result<T, E>,
) {
    for &(from, to, expected) in planted {
        assert!(good.contains(from), "`{from}` is not in the file");
        let error = match read(&good.replacen(from, to, 1)) {
            Ok(_) => panic!("`{to}` is not refused"),
            Err(error) => error.to_string(),
        };
        assert!(
            error.starts_with(&format!("{file}: ")) && !error.contains('\n'),
            "{error}"
        );
        assert!(error.contains(expected), "{error}: not `{expected}`");
    }
}
