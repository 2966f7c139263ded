//! Parsing of presets' names.

use super::Preset;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

impl FromStr for Preset {
    type Err = UnknownPreset;

    fn from_str(name: &str) -> Result<Self, UnknownPreset> {
        let found = Preset::ALL
            .iter()
            .copied()
            .find(|preset| preset.name == name);
        found.ok_or_else(|| UnknownPreset {
            name: name.to_string(),
            nearest: nearest(name),
        })
    }
}

/// The error for a name that no preset has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPreset {
    /// The requested name.
    pub name: String,
    /// The preset with the most similar name, if one is similar enough.
    pub nearest: Option<Preset>,
}

impl fmt::Display for UnknownPreset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown preset '{}'", self.name)?;
        if let Some(nearest) = self.nearest {
            return write!(f, "; did you mean '{nearest}'?");
        }
        f.write_str("; there are")?;
        for (i, preset) in Preset::ALL.iter().enumerate() {
            write!(f, "{} {preset}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownPreset {}

/// The preset whose name, or its part after the system's, is within a third of its length of edits
/// from `name`.
fn nearest(name: &str) -> Option<Preset> {
    let distance = |preset: Preset| {
        let full = preset.name;
        let short = full.split_once('-').map_or(full, |(_, short)| short);
        let candidates = [full, short].map(|known| (edits(known, name), known.len()));
        candidates
            .into_iter()
            .filter(|&(edits, length)| edits * 3 <= length.max(3))
            .min()
    };
    Preset::ALL
        .iter()
        .copied()
        .filter_map(|preset| Some((distance(preset)?, preset)))
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, preset)| preset)
}

/// The number of bytes to insert, remove or replace to turn `a` into `b` (Levenshtein
/// distance), regardless of case.
fn edits(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(!x.eq_ignore_ascii_case(&y));
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
