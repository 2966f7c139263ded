//! What the runs of an incident show.

use super::{Incident, Measure, Setting};
use bench::Failure;
use bench::simulated::AT_ONCE_WHOLE;
use bench::{Progress, Workers, interrupt};
use std::time::Duration;

/// A factor within this one of the published one is as published.
const CLOSE: f64 = 2.0;

/// A run of a setting.
#[derive(Clone, Debug)]
pub struct Run {
    /// What it took, from the first thread's beginning to the last one's end.
    pub real: Duration,
    /// The longest wait for a lock.
    pub wait: Duration,
    /// The sentence that names the bottleneck.
    pub bottleneck: String,
}

/// A comparison as it was found.
#[derive(Clone, Debug)]
pub struct Finding<'a> {
    /// What the second run has.
    pub what: &'a str,
    pub by: Measure,
    /// Requests a second of both, or seconds.
    pub values: [f64; 2],
    /// How often the second is as good as the first.
    pub factor: f64,
    pub published: Option<f64>,
    pub explained: Option<&'a str>,
    /// True if the factor is as published, or the fix is one.
    pub holds: bool,
}

/// What an incident's runs show.
#[derive(Clone, Debug)]
pub struct Findings<'a> {
    /// The bottleneck of the incident.
    pub bottleneck: String,
    /// True if it is the one that the story names.
    pub is_named: bool,
    pub all: Vec<Finding<'a>>,
}

impl Findings<'_> {
    /// True if the instrument finds what the story tells, but for what is explained.
    pub fn hold(&self) -> bool {
        let is_told = |one: &Finding<'_>| one.holds || one.explained.is_some();
        self.is_named && self.all.iter().all(is_told)
    }
}

impl Incident {
    /// Runs all settings on simulated machines.
    pub fn simulate(&self, progress: &dyn Progress) -> Result<Findings<'_>, Failure> {
        let settings = self.about.settings();
        let mut runs = Vec::new();
        let run = |setting: &Setting| {
            let seen = setting
                .simulated()?
                .observe(&self.plan(setting), Duration::ZERO);
            progress.step();
            seen
        };
        Workers::here(AT_ONCE_WHOLE).run(&settings, run, |setting, seen| {
            let seen = seen?;
            let longest = seen.rows.iter().map(|row| row.max_wait).max();
            runs.push((
                setting.clone(),
                Run {
                    real: seen.times.map_or(seen.span, |times| times.real),
                    wait: Duration::from_nanos(longest.unwrap_or_default()),
                    bottleneck: seen.attribution.bottleneck(),
                },
            ));
            Ok::<_, Failure>(())
        })?;
        interrupt::check()?;
        Ok(self.findings(&runs, true))
    }

    /// What the runs of settings show. The first run is the incident's; what was not run is left
    /// out, and so are published factors if these are not runs of the story's machine.
    pub fn findings(&self, runs: &[(Setting, Run)], is_its_machine: bool) -> Findings<'_> {
        let bottleneck = runs.first().map(|(_, run)| run.bottleneck.clone());
        let bottleneck = bottleneck.unwrap_or_default();
        let of = |wanted: &Setting| runs.iter().find(|(setting, _)| setting == wanted);
        let comparisons = self.about.compare.iter().enumerate();
        let all = comparisons.filter_map(|(number, one)| {
            let [from, to] = one.sides(&self.about.at).map(|side| of(&side));
            let values = [from?, to?].map(|(setting, run)| self.value(one.by, setting, run));
            let factor = match one.by {
                Measure::Rate => values[1] / values[0],
                Measure::Wait => values[0] / values[1],
            };
            let published = one.published.filter(|_| is_its_machine);
            let is_fixed = number > 0 || factor > 1.0;
            let close = |published: f64| (factor / published).ln().abs() <= CLOSE.ln();
            Some(Finding {
                what: &one.what,
                by: one.by,
                values,
                factor,
                published,
                explained: one.explained.as_deref(),
                holds: is_fixed && published.is_none_or(close),
            })
        });
        Findings {
            is_named: bottleneck.contains(&self.about.named),
            bottleneck,
            all: all.collect(),
        }
    }

    fn value(&self, by: Measure, setting: &Setting, run: &Run) -> f64 {
        let requests = setting.threads as f64 * f64::from(self.about.requests);
        match by {
            Measure::Rate => requests / run.real.as_secs_f64(),
            // A wait shorter than a microsecond is none.
            Measure::Wait => run.wait.as_secs_f64().max(1e-6),
        }
    }
}
