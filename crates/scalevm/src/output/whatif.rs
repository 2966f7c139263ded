//! What a workload would gain without a cause, as tables and as JSON.

use super::table::{align_right, with_header};
use super::{format, percent, shape, short};
use bench::Plan;
use bench::simulated::{Answer, Cause, Mechanism, Simulated, Variant};
use serde_json::{Value, json};

/// Columns of gains, if the user does not name them.
const COLUMNS: usize = 4;

/// What is shown.
pub struct Shown<'a> {
    pub plan: &'a Plan,
    pub target: &'a Simulated,
    /// The numbers of tasks that were run.
    pub counts: &'a [usize],
    /// Those that the user has named.
    pub at: &'a [u32],
}

impl Shown<'_> {
    /// Prints the tables.
    pub fn print(&self, answer: &Answer) {
        let Shown { plan, target, .. } = self;
        println!(
            "{} ({}), {} on {}: {} {} a second",
            plan.workload.name(),
            plan.mode.count(plan.tasks),
            target.preset.name,
            target.profile.name,
            short(last(&answer.base)),
            plan.workload.unit()
        );
        println!("bottleneck: {}", answer.base.seen.bottleneck());
        if !answer.alone.is_empty() {
            println!("\nWithout one cause:");
            self.table(answer, &answer.alone);
        }
        if !answer.ladder.is_empty() {
            println!("\nWithout one cause more on each rung:");
            self.table(answer, &answer.ladder);
        }
        if !answer.others.is_empty() {
            println!("\nWhat exists:");
            self.others(answer);
        }
    }

    /// The gains of `variants`.
    fn table(&self, answer: &Answer, variants: &[Variant]) {
        let columns = self.columns();
        let at = columns
            .iter()
            .map(|&at| format!("× at {}", self.counts[at]));
        let header = ["without", "its time"].map(str::to_owned).into_iter();
        let header = header.chain(at);
        let more = ["extremes", "band", "bends at", "next"].map(str::to_owned);
        let mut table = with_header(header.chain(more).collect::<Vec<_>>());
        for one in variants {
            let gains = columns.iter().map(|&at| factor(one.gain(&answer.base, at)));
            let row = [self.name(answer, one), share(one.share)].into_iter();
            let range = one.corners.map_or_else(
                || "–".to_owned(),
                |[low, high]| format!("{}–{}", factor(low), factor(high)),
            );
            let more = [range, self.band(one), self.bend(&one.rates), next(one)];
            table.add_row(row.chain(gains).chain(more));
        }
        align_right(&mut table, 1..columns.len() + 2);
        format::print(&table);
    }

    /// What a variant does without: on a ladder, what it does without beyond the previous rung.
    fn name(&self, answer: &Answer, one: &Variant) -> String {
        let is_rung = answer.ladder.len() > 1 && one.without.len() > 1;
        let more = one.without.last().filter(|_| is_rung);
        more.map_or_else(|| causes(&one.without), |cause| format!("+ {cause}"))
    }

    /// The rates of presets of the same family.
    fn others(&self, answer: &Answer) {
        let columns = self.columns();
        let at = columns
            .iter()
            .map(|&at| format!("× at {}", self.counts[at]));
        let header = std::iter::once("preset".to_owned()).chain(at);
        let mut table = with_header(header.chain(["bends at".to_owned()]).collect::<Vec<_>>());
        for (preset, rates) in &answer.others {
            let gains = columns
                .iter()
                .map(|&at| factor(rates[at] / answer.base.rates[at]));
            let row = std::iter::once(preset.name.to_owned()).chain(gains);
            table.add_row(row.chain([self.bend(rates)]));
        }
        align_right(&mut table, 1..=columns.len());
        format::print(&table);
    }

    /// The numbers of tasks that have a column, by their places.
    fn columns(&self) -> Vec<usize> {
        let asked = |at: &usize| {
            self.at
                .iter()
                .any(|&asked| asked as usize == self.counts[*at])
        };
        match self.at {
            [] => (self.counts.len().saturating_sub(COLUMNS)..self.counts.len()).collect(),
            _ => (0..self.counts.len()).filter(asked).collect(),
        }
    }

    /// Where a curve leaves the straight line.
    fn bend(&self, rates: &[f64]) -> String {
        knee(self.counts, rates).map_or_else(|| "–".to_owned(), |tasks| tasks.to_string())
    }

    /// The expected error of a variant's rate.
    fn band(&self, one: &Variant) -> String {
        let band = self.target.expected(self.plan, &one.seen).band;
        band.map_or_else(
            || "none".to_owned(),
            |band| format!("{:.2}–{:.2}", band.low, band.high),
        )
    }

    /// Prints a line for each variant and each preset.
    pub fn print_json(&self, answer: &Answer) {
        println!("{}", self.line("base", &answer.base, answer));
        for (kind, variants) in [("alone", &answer.alone), ("ladder", &answer.ladder)] {
            for one in variants {
                println!("{}", self.line(kind, one, answer));
            }
        }
        for (preset, rates) in &answer.others {
            let line = json!({
                "kind": "whatif",
                "variant": "preset",
                "vm": preset.name,
                "points": self.points(rates, answer),
                "knee": knee(self.counts, rates),
            });
            println!("{line}");
        }
    }

    fn line(&self, variant: &str, one: &Variant, answer: &Answer) -> Value {
        let Shown { plan, target, .. } = self;
        let mechanism = Mechanism::of(&one.seen);
        let band = target.expected(plan, &one.seen).band;
        let names = one.without.iter().map(Cause::to_string);
        json!({
            "kind": "whatif",
            "variant": variant,
            "workload": plan.workload.name(),
            "mode": plan.mode.name(),
            "vm": target.preset.name,
            "profile": target.profile.name,
            "topology": target.profile.topology.shape(),
            "tasks": plan.tasks,
            "without": names.collect::<Vec<_>>(),
            "share": one.share.is_finite().then_some(one.share),
            "points": self.points(&one.rates, answer),
            "corners": one.corners.map(|[low, high]| json!({ "low": low, "high": high })),
            "mechanism": mechanism.name(),
            "band": band.map(|band| json!({ "low": band.low, "high": band.high })),
            "knee": knee(self.counts, &one.rates),
            "next": one.next().map(|(cause, _)| cause.to_string()),
            "bottleneck": one.seen.bottleneck(),
        })
    }

    fn points(&self, rates: &[f64], answer: &Answer) -> Vec<Value> {
        let points = self.counts.iter().zip(rates).zip(&answer.base.rates);
        let point = |((tasks, rate), base): ((&usize, &f64), &f64)| {
            let gain = rate / base;
            json!({ "tasks": tasks, "rate": rate, "gain": gain })
        };
        points.map(point).collect()
    }
}

/// The rate of the most tasks.
fn last(one: &Variant) -> f64 {
    one.rates.last().copied().unwrap_or_default()
}

fn causes(causes: &[Cause]) -> String {
    let names: Vec<String> = causes.iter().map(Cause::to_string).collect();
    names.join(", ")
}

/// A part of the tasks' time, if it is known.
fn share(part: f64) -> String {
    if part.is_finite() {
        percent(part)
    } else {
        "–".to_owned()
    }
}

/// A factor in few digits.
pub(super) fn factor(factor: f64) -> String {
    match factor {
        small if small < 9.95 => format!("{small:.2}"),
        large => format!("{large:.1}"),
    }
}

/// The largest cause that a variant leaves.
fn next(one: &Variant) -> String {
    one.next().map_or_else(
        || "–".to_owned(),
        |(cause, share)| format!("{cause} ({})", percent(share)),
    )
}

/// The number of tasks at which a curve bends.
fn knee(counts: &[usize], rates: &[f64]) -> Option<u32> {
    let points = counts.iter().copied().zip(rates.iter().copied());
    shape::knee(&points.collect::<Vec<_>>())
}
