//! The content of the page, before it becomes HTML.

mod chart;
mod command;
mod comparison;
mod headline;
mod likeness;
mod machine;
mod name;
mod studies;
mod warning;

pub(crate) use chart::{Basis, Chart, Dot, Series};
pub(crate) use comparison::{Comparison, Outcome};
pub(crate) use likeness::pairs;
pub(crate) use machine::{Cell, Machines, Row};
pub(crate) use name::{described, on_machine};
pub(crate) use studies::{Study, held};

use crate::Source;
use profile::Profile;

/// Everything to report about some files.
pub struct Page<'a> {
    /// The verdict, then its grounds; one sentence each.
    pub(crate) headline: Vec<String>,
    /// Workloads, for the title.
    pub(crate) workloads: Vec<&'a str>,
    pub(crate) charts: Vec<Chart>,
    pub(crate) comparisons: Vec<Comparison>,
    pub(crate) profiles: Vec<&'a Profile>,
    pub(crate) studies: Vec<Study<'a>>,
    pub(crate) machines: Machines,
    pub(crate) warnings: Vec<String>,
    pub(crate) commands: Vec<String>,
    pub(crate) files: Vec<String>,
}

impl<'a> Page<'a> {
    /// Draws the conclusions. Sources are in order: before precedes after.
    pub fn new(sources: &'a [Source]) -> Self {
        let files = name::files(sources);
        let charts = chart::charts(sources, &files);
        let comparisons = comparison::comparisons(sources, &files);
        let profiles: Vec<&Profile> = sources.iter().flat_map(|one| &one.profiles).collect();
        let machines = Machines::of(sources, &files);
        let studies = studies::studies(sources);
        let mut headline: Vec<String> = studies::sentence(&studies).into_iter().collect();
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
            studies,
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

    /// The sections of the page, by their ids.
    pub fn sections(&self) -> Vec<&'static str> {
        let locks = self.profiles.iter().any(|one| !one.locks.is_empty());
        let flames = self
            .profiles
            .iter()
            .any(|one| !one.busy.is_empty() || !one.waits.is_empty());
        let all = [
            ("verdict", true),
            ("studies", !self.studies.is_empty()),
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
