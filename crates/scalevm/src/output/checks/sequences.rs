//! The results of a comparison, as text or JSON.

use oracle::System;
use oracle::check::{Divergence, Played};
use serde_json::{Value, json};
use stats::count;
use std::time::Instant;

/// Prints differences as they are found, and sums up.
pub struct Report {
    json: bool,
    /// The compared systems.
    systems: Vec<String>,
    /// The features they lack, by name.
    lacks: Vec<(String, &'static str)>,
    begun: Instant,
    sequences: u64,
    played: Played,
    /// Differences that did not show again.
    passing: u64,
}

impl Report {
    /// An empty report on `systems`.
    pub fn new(json: bool, systems: &[&mut dyn System]) -> Self {
        let names = systems.iter().map(|system| system.name().to_owned());
        let lacks = systems.iter().flat_map(|system| {
            let name = system.name().to_owned();
            system.lacks().iter().map(move |lack| (name.clone(), *lack))
        });
        Report {
            json,
            systems: names.chain(["model".to_owned()]).collect(),
            lacks: lacks.collect(),
            begun: Instant::now(),
            sequences: 0,
            played: Played::default(),
            passing: 0,
        }
    }

    /// Operations compared so far.
    pub fn compared(&self) -> u64 {
        self.played.compared
    }

    /// A sequence was played.
    pub fn played(&mut self, played: Played) {
        self.sequences += 1;
        self.played.compared += played.compared;
        self.played.left_out += played.left_out;
        self.played.refused += played.refused;
    }

    /// A difference did not show again.
    pub fn passing(&mut self, seed: u64, found: &Divergence) {
        self.passing += 1;
        if self.json {
            println!("{}", divergence("passing", Some(seed), found));
        } else {
            let step = found.steps.last().map(ToString::to_string);
            let step = step.unwrap_or_default();
            println!("seed {seed}: differed once, and not again: {step}");
            for (name, outcome) in &found.outcomes {
                println!("  {name}: {outcome}");
            }
        }
    }

    /// Systems differ.
    pub fn divergence(&self, seed: Option<u64>, found: &Divergence) {
        if self.json {
            println!("{}", divergence("divergence", seed, found));
            return;
        }
        match seed {
            Some(seed) if found.hangs() => {
                println!("# seed {seed} hangs; --replay FILE plays it again");
            }
            Some(seed) => println!("# seed {seed}, made short; --replay FILE plays it again"),
            None => println!("# up to the first difference"),
        }
        print!("{found}");
    }

    /// Prints the sums.
    pub fn end(self, differs: bool) {
        let Played {
            compared,
            left_out,
            refused,
        } = self.played;
        let seconds = self.begun.elapsed().as_secs_f64();
        if self.json {
            let line = json!({
                "record": "summary", "systems": self.systems, "sequences": self.sequences,
                "compared": compared, "left_out": left_out, "refused": refused,
                "passing": self.passing,
                "good": !differs,
                "lacks": self.lacks.iter().map(|(system, lack)| {
                    json!({"system": system, "what": lack})
                }).collect::<Vec<_>>(),
            });
            println!("{line}");
            return;
        }
        let systems = self.systems.join(", ");
        let result = if differs { "DIFFER" } else { "agree" };
        let operations = count(compared, "operation");
        let sequences = count(self.sequences, "sequence");
        println!(
            "{systems} {result}: {operations} in {sequences}, \
             {left_out} left out, {refused} refused; {seconds:.1} s"
        );
        for (system, lack) in &self.lacks {
            println!("  not compared, since {system} lacks it: {lack}");
        }
    }
}

fn divergence(record: &str, seed: Option<u64>, found: &Divergence) -> Value {
    let steps: Vec<_> = found.steps.iter().map(ToString::to_string).collect();
    let outcomes = found
        .outcomes
        .iter()
        .map(|(name, outcome)| json!({"system": name, "outcome": outcome.to_string()}));
    let outcomes: Vec<_> = outcomes.collect();
    json!({"record": record, "seed": seed, "steps": steps, "outcomes": outcomes})
}

/// A planted bug was searched.
pub fn planted(json: bool, name: &str, found: Option<&(u64, Divergence)>) {
    match found {
        Some((seed, found)) if json => {
            let mut line = divergence("planted", Some(*seed), found);
            line["name"] = json!(name);
            println!("{line}");
        }
        None if json => println!(
            "{}",
            json!({"record": "planted", "name": name, "seed": null})
        ),
        Some((seed, found)) => print!("{name}: found with seed {seed}\n{found}"),
        None => println!("{name}: NOT FOUND"),
    }
}

/// Sums up.
pub fn planted_summary(json: bool, searched: usize, found: usize) {
    if json {
        println!(
            "{}",
            json!({"record": "summary", "planted": true, "rows": searched, "failed": found,
                "good": searched == found})
        )
    } else {
        println!("{found} of {} found", count(searched, "planted bug"))
    }
}
