//! What the page says, before it is HTML.

mod chart;
mod command;
mod comparison;
mod headline;
mod machine;
mod name;
mod seeds;
mod warning;

pub(crate) use chart::{Basis, Chart, Dot, Series};
pub(crate) use comparison::{Comparison, Outcome};
pub(crate) use machine::{Cell, Machines, Row};
pub(crate) use name::{described, on_machine};
pub(crate) use seeds::Seed;

use crate::Source;
use profile::Profile;

/// Everything there is to say about some files.
pub struct Page<'a> {
    /// The verdict, and then what it rests on; a sentence each.
    pub(crate) headline: Vec<String>,
    /// Workloads, for the title.
    pub(crate) workloads: Vec<&'a str>,
    pub(crate) charts: Vec<Chart>,
    pub(crate) comparisons: Vec<Comparison>,
    pub(crate) profiles: Vec<&'a Profile>,
    pub(crate) seeds: Vec<Seed<'a>>,
    pub(crate) machines: Machines,
    pub(crate) warnings: Vec<String>,
    pub(crate) commands: Vec<String>,
    pub(crate) files: Vec<String>,
}

impl<'a> Page<'a> {
    /// Draws the conclusions. The order of the sources matters: before comes before after.
    pub fn new(sources: &'a [Source]) -> Self {
        let files = name::files(sources);
        let charts = chart::charts(sources, &files);
        let comparisons = comparison::comparisons(sources, &files);
        let profiles: Vec<&Profile> = sources.iter().flat_map(|one| &one.profiles).collect();
        let machines = Machines::of(sources, &files);
        let seeds = seeds::seeds(sources);
        let mut headline: Vec<String> = seeds::sentence(&seeds).into_iter().collect();
        headline.extend(headline::sentences(
            &comparisons,
            &profiles,
            sources,
            &charts,
        ));
        if headline.is_empty() {
            headline.push("Too little was measured for a verdict.".into());
        }
        Page {
            headline,
            workloads: name::workloads(sources),
            warnings: warning::warnings(sources, &files, &machines),
            commands: command::commands(sources),
            charts,
            comparisons,
            profiles,
            seeds,
            machines,
            files,
        }
    }

    /// The page.
    pub fn html(&self) -> String {
        crate::html::document(self).into_string()
    }

    /// The verdict, in one sentence.
    pub fn verdict(&self) -> &str {
        self.headline.first().map_or("", String::as_str)
    }

    /// The parts that the page has, by the name that links to them.
    pub fn sections(&self) -> Vec<&'static str> {
        let locks = self.profiles.iter().any(|one| !one.locks.is_empty());
        let flames = self
            .profiles
            .iter()
            .any(|one| !one.busy.is_empty() || !one.waits.is_empty());
        let all = [
            ("verdict", true),
            ("seeds", !self.seeds.is_empty()),
            ("curves", !self.charts.is_empty()),
            ("comparison", !self.comparisons.is_empty()),
            ("locks", locks),
            ("flames", flames),
            ("machine", true),
        ];
        let present = all.into_iter().filter(|(_, there)| *there);
        present.map(|(name, _)| name).collect()
    }
}
