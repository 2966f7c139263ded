//! Predictions of published curves, as tables and as JSON.

mod lines;
mod table;

use super::format;
use super::table::with_header;
use bench::simulated::{Band, Mechanism};
use lines::{described, line, print_left_out, print_summary};
use stats::count;
use studies::predict::score::{Score, Summary, score, summary};
use studies::predict::{Prediction, Setup, is_held_back};
use studies::published::{Curve, Point, rate_at};

/// A curve without a prediction, and the reason.
pub type LeftOut<'a> = (&'a Curve, String);

/// A prediction, and how far it is from what was measured.
pub struct Predicted<'a> {
    setup: &'a Setup<'a>,
    prediction: Prediction,
    score: Option<Score>,
}

impl<'a> Predicted<'a> {
    /// Compares.
    pub fn of(setup: &'a Setup<'a>, prediction: Prediction) -> Self {
        let cpus = setup.curve.machine.cpus;
        let score = score(setup.measured(), &prediction.points, cpus);
        Predicted {
            setup,
            prediction,
            score,
        }
    }

    /// The most tasks, their rate as predicted, and as measured.
    fn last(&self) -> Option<(u32, f64, f64)> {
        let &Point(tasks, rate) = self.prediction.points.last()?;
        Some((tasks, rate, rate_at(self.setup.measured(), tasks)?))
    }

    /// Of a pair, after over before as predicted, and as measured.
    fn change(&self) -> Option<[f64; 2]> {
        let Ok(Some((_, Point(_, measured)))) = self.setup.pair() else {
            return None;
        };
        Some([self.prediction.change?.1, measured])
    }

    fn band(&self) -> Option<Band> {
        self.prediction.expected.band
    }

    /// Returns true if the last rate is within its band, if it has one and was not fitted.
    pub fn holds(&self) -> Option<bool> {
        self.score.as_ref()?;
        let (_, predicted, measured) = self.last()?;
        let band = self.band()?;
        Some((band.low..=band.high).contains(&(predicted / measured)))
    }

    fn source(&self) -> &str {
        self.setup.curve.file()
    }
}

/// How predictions are shown.
pub struct Shown {
    /// As lines of JSON.
    pub json: bool,
    /// Without what was measured.
    pub unscored: bool,
    /// The curves are the user's own, and not held back from anybody.
    pub own: bool,
}

impl Shown {
    /// Shows the system and machine that represent each curve's own.
    pub fn list(&self, setups: &[Setup], left_out: &[LeftOut]) {
        if self.json {
            for setup in setups {
                println!("{}", described(setup, self.own));
            }
            left_out
                .iter()
                .for_each(|one| print_left_out(one, self.own));
            return;
        }
        format::print_of("predicted", &table::listed(setups, self.own));
        print_reasons(left_out);
    }

    /// Shows all of it.
    pub fn print(&self, predicted: &[Predicted], left_out: &[LeftOut]) {
        let groups = groups(predicted, self.own);
        if self.json {
            for one in predicted {
                println!("{}", line(one, self));
            }
            left_out
                .iter()
                .for_each(|one| print_left_out(one, self.own));
            if !self.unscored {
                groups.iter().for_each(print_summary);
            }
            return;
        }
        let table = if self.unscored {
            table::unscored(predicted)
        } else {
            table::scored(predicted)
        };
        format::print_of("predicted", &table);
        for one in predicted {
            let Prediction {
                fit,
                bottleneck,
                expected,
                ..
            } = &one.prediction;
            println!(
                "{}: fitted: {fit}; {bottleneck}; {expected}",
                one.setup.curve.id
            );
        }
        print_reasons(left_out);
        if self.unscored {
            return;
        }
        println!("\nmedians over sources; a source counts with the median of its curves:");
        format::print_of("summary", &table::summary(&groups));
        println!("{}", verdict(predicted, left_out.len(), &groups[0].1));
    }
}

fn print_reasons(left_out: &[LeftOut]) {
    if left_out.is_empty() {
        return;
    }
    println!("\nnot predicted:");
    let mut table = with_header(["curve", "kernel", "not predicted, because"]);
    for (curve, why) in left_out {
        table.add_row([curve.id.clone(), curve.kernel.clone(), why.clone()]);
    }
    format::print_of("not predicted", &table);
}

fn half(curve: &Curve) -> &'static str {
    if is_held_back(curve.file()) {
        HELD_BACK
    } else {
        "open"
    }
}

/// The sources that the simulator's authors do not look at, as JSON calls them.
const HELD_BACK: &str = "held back";

/// The name of a half or a group, in words that need no glossary.
fn shown(name: &str) -> &str {
    if name == HELD_BACK { "unseen" } else { name }
}

/// A group of predictions: its name, and its figures.
type Group = (String, Summary);

/// All, each half if there are two, each mechanism.
fn groups(predicted: &[Predicted], own: bool) -> Vec<Group> {
    let group = |name: &str, is_in: &dyn Fn(&Predicted) -> bool| {
        let members = predicted.iter().filter(|one| is_in(one));
        let members = members.map(|one| (one.source(), one.score.as_ref(), one.change()));
        (name.to_owned(), summary(members))
    };
    let mut groups = vec![group("all", &|_| true)];
    if !own {
        let halves = ["open", HELD_BACK];
        groups.extend(halves.map(|name| group(name, &|one| half(one.setup.curve) == name)));
    }
    let mechanisms = Mechanism::ALL.into_iter();
    groups.extend(mechanisms.map(|mechanism| {
        group(mechanism.name(), &|one| {
            one.prediction.mechanism == mechanism
        })
    }));
    groups.retain(|(_, summary)| *summary != Summary::default());
    if groups.is_empty() {
        groups.push(("all".into(), Summary::default()));
    }
    groups
}

/// What comes out, in a line.
fn verdict(predicted: &[Predicted], left_out: usize, all: &Summary) -> String {
    let with_band = predicted.iter().filter_map(Predicted::holds);
    let held = with_band.clone().filter(|&holds| holds).count();
    let median = match all.ours {
        Some(ours) => format!("median error {ours:.2}"),
        None => "no curve is scored".into(),
    };
    format!(
        "{} of {} predicted; {median}; {held} of {} within their bands; {} of {} with the right \
         sign",
        predicted.len(),
        count(predicted.len() + left_out, "curve"),
        with_band.count(),
        all.signs[0],
        count(all.signs[1], "pair"),
    )
}
