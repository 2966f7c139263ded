//! How results are printed and kept.

use crate::output::format::Format;
use clap::Args;
use std::path::PathBuf;

/// For commands that print tables.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct FormatArgs {
    /// How tables are printed
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        hide_default_value = true,
        conflicts_with = "json"
    )]
    pub format: Format,
}

/// Whether results are kept, and under which name.
#[derive(Args, Clone, Debug, Default)]
pub struct KeepArgs {
    /// Keep the results in this directory (see `scalevm history`); it is created if needed
    #[arg(long, value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// Name the measured version, as by its commit [default: on os the kernel's release, else
    /// scalevm's commit]
    #[arg(long, value_name = "NAME", value_parser = label)]
    pub label: Option<String>,
}

fn label(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("a label must not be empty".into()),
        label if label.chars().any(char::is_control) => {
            Err("a label must be a single line of printable text".into())
        }
        label => Ok(label.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::label;

    #[test]
    fn labels_are_one_line() {
        assert_eq!(label(" v6.18 rc1 "), Ok("v6.18 rc1".into()));
        for bad in ["", "  ", "a\nb", "a\u{1b}[31m"] {
            assert!(label(bad).is_err(), "{bad:?}");
        }
    }
}
