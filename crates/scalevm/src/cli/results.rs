//! How results are printed and kept.

use crate::output::format::Format;
use clap::Args;
use std::path::PathBuf;

/// For commands that print tables.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct FormatArgs {
    /// The format of tables
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        hide_default_value = true,
        conflicts_with = "json"
    )]
    pub format: Format,
}

/// Where results are kept, and under which name.
#[derive(Args, Clone, Debug, Default)]
pub struct KeepArgs {
    /// Keep the results in this directory, created if needed (see `scalevm history`)
    #[arg(long, value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// Name of the measured version, e.g. its commit [default: on os the kernel's release, else
    /// scalevm's commit]
    #[arg(long, value_name = "NAME", value_parser = label)]
    pub label: Option<String>,
}

fn label(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("expected a label, e.g. a commit".into()),
        label if label.chars().any(char::is_control) => {
            Err("expected one line of printable text, e.g. v6.18".into())
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
