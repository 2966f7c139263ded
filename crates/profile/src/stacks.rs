//! Stacks, and how long each was seen.

use serde::{Deserialize, Serialize};
use stats::{printable, shortened};
use std::collections::BTreeMap;

/// The root of stacks that were ready to run while others ran.
pub const PREEMPTED: &str = "preempted";
/// The root of stacks that waited for work: for an event, a condition, a time, or another task's
/// end. Threads that slept from the beginning of the recording to its end are here, too.
pub const IDLE: &str = "idle";

/// Letters of a frame at most. A name may be that of a function with all that it is instantiated
/// with, or anything that another program has made up; what is left out has a mark.
const LONGEST: usize = 500;

/// Seconds by stack. A stack is its frames from the root, joined by `;`; frames of the kernel end
/// in `_[k]`. Frames have no characters that a terminal, a picture or a folded line would not bear.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<String, f64>")]
pub struct Stacks(BTreeMap<String, f64>);

impl Stacks {
    /// Adds `seconds` to the stack of `frames`, from the root.
    pub fn add<'a>(&mut self, frames: impl IntoIterator<Item = &'a str>, seconds: f64) {
        let frames: Vec<String> = frames.into_iter().map(clean).collect();
        *self.0.entry(frames.join(";")).or_default() += seconds;
    }

    /// Seconds of all stacks together.
    pub fn total(&self) -> f64 {
        self.0.values().fold(0.0, |sum, seconds| sum + seconds)
    }

    /// Returns true if nothing was seen.
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

    /// The stacks with the frames cut out between their root (the task's name, possibly below
    /// [`PREEMPTED`] or [`IDLE`]) and the last frame that contains `marker`; closures that this
    /// frame calls go too.
    pub fn begun_at(&self, marker: &str) -> Stacks {
        let mut begun = Stacks::default();
        for (stack, seconds) in self.iter() {
            let frames: Vec<&str> = stack.split(';').collect();
            let roots = 1 + usize::from([PREEMPTED, IDLE].contains(&frames[0]));
            let at = frames.iter().rposition(|frame| frame.contains(marker));
            let Some(at) = at.filter(|&at| at >= roots) else {
                begun.add(frames, seconds);
                continue;
            };
            let own = frames[at + 1..].iter();
            let own = own.skip_while(|frame| frame.starts_with("{closure"));
            begun.add(frames[..roots].iter().chain(own).copied(), seconds);
        }
        begun
    }

    /// The stacks whose root is `root`, without that root, and the others.
    pub fn split(&self, root: &str) -> (Stacks, Stacks) {
        let (mut below, mut others) = (Stacks::default(), Stacks::default());
        for (stack, seconds) in self.iter() {
            match stack.split_once(';').filter(|(first, _)| *first == root) {
                Some((_, rest)) => below.add(rest.split(';'), seconds),
                None => others.add(stack.split(';'), seconds),
            }
        }
        (below, others)
    }

    /// The functions at the leaves and the seconds spent in themselves, the most first; leaves that
    /// begin with `through` are skipped in favour of their callers.
    pub fn leaves(&self, through: &[&str]) -> Vec<(&str, f64)> {
        let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
        for (stack, seconds) in self.iter() {
            let is_seen = |frame: &&str| !through.iter().any(|prefix| frame.starts_with(prefix));
            let leaf = stack.rsplit(';').find(is_seen).unwrap_or(stack);
            *sums.entry(leaf.trim_end_matches("_[k]")).or_default() += seconds;
        }
        let mut leaves: Vec<(&str, f64)> = sums.into_iter().collect();
        leaves.sort_by(|a, b| b.1.total_cmp(&a.1));
        leaves
    }

    /// The folded stacks, the format of flame graph tools: a stack and its microseconds per line.
    pub fn folded(&self) -> String {
        let line = |(stack, seconds): (&str, f64)| format!("{stack} {:.0}\n", 1e6 * seconds);
        self.iter().map(line).collect()
    }
}

/// A name as a frame. The separator and the end of a line cannot be part of one.
fn clean(name: &str) -> String {
    let name = name.replace([';', '\n', '\t'], ":");
    match shortened(&printable(&name), LONGEST) {
        name if name.trim().is_empty() => "[no name]".to_owned(),
        name => name.into_owned(),
    }
}

impl From<BTreeMap<String, f64>> for Stacks {
    /// Takes stacks from a file, whose names may be anything.
    fn from(read: BTreeMap<String, f64>) -> Stacks {
        let mut stacks = Stacks::default();
        for (stack, seconds) in read {
            stacks.add(stack.split(';'), seconds);
        }
        stacks
    }
}
