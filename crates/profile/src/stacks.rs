//! Stacks and how long each was seen.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Seconds by stack. A stack is its frames from the root, joined by `;`; frames of the
/// kernel end in `_[k]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Stacks(BTreeMap<String, f64>);

impl Stacks {
    /// Adds `seconds` to the stack of `frames`, from the root.
    pub fn add<'a>(&mut self, frames: impl IntoIterator<Item = &'a str>, seconds: f64) {
        // The separator and a line's end can not be part of a name.
        let clean = |frame: &str| frame.replace([';', '\n'], ":");
        let frames: Vec<String> = frames.into_iter().map(clean).collect();
        *self.0.entry(frames.join(";")).or_default() += seconds;
    }

    /// Seconds of all stacks together.
    pub fn total(&self) -> f64 {
        self.0.values().fold(0.0, |sum, seconds| sum + seconds)
    }

    /// Whether nothing was seen.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The stacks, by name, with their seconds.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0
            .iter()
            .map(|(stack, &seconds)| (stack.as_str(), seconds))
    }

    /// Each stack's seconds times `factor`.
    pub fn scaled(&self, factor: f64) -> Stacks {
        let scale = |(stack, seconds): (&String, &f64)| (stack.clone(), seconds * factor);
        Stacks(self.0.iter().map(scale).collect())
    }

    /// The functions at the leaves and the seconds spent in themselves, the most first.
    pub fn leaves(&self) -> Vec<(&str, f64)> {
        let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
        for (stack, seconds) in self.iter() {
            let leaf = stack.rsplit(';').next().unwrap_or(stack);
            *sums.entry(leaf.trim_end_matches("_[k]")).or_default() += seconds;
        }
        let mut leaves: Vec<(&str, f64)> = sums.into_iter().collect();
        leaves.sort_by(|a, b| b.1.total_cmp(&a.1));
        leaves
    }

    /// As folded stacks: one a line with its microseconds, as flame graph tools read them.
    pub fn folded(&self) -> String {
        let line = |(stack, seconds): (&str, f64)| format!("{stack} {:.0}\n", 1e6 * seconds);
        self.iter().map(line).collect()
    }
}
