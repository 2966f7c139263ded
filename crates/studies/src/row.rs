//! One simulated figure, the published one, and the verdict on them.

use super::Lab;
use super::lab::World;
use bench::simulated::Band;

/// Figures over the seeds of a simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The lowest.
    pub low: f64,
    /// The highest.
    pub high: f64,
}

impl Spread {
    /// The spread of some figures; `None` without any.
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (low, high) = (*values.first()?, *values.last()?);
        let (half, odd) = (values.len() / 2, values.len() % 2 == 1);
        let median = if odd {
            values[half]
        } else {
            (values[half - 1] + values[half]) / 2.0
        };
        Some(Spread { median, low, high })
    }
}

/// The condition on a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aim {
    /// The published figure, within a band.
    Published {
        figure: f64,
        /// The quote and its source.
        quote: &'static str,
        /// The accepted error.
        band: Band,
    },
    /// No less than this; and why.
    AtLeast(f64, &'static str),
    /// No more than this; and why.
    AtMost(f64, &'static str),
    /// A statement of the case study in words only, and the range it is taken for.
    Words {
        /// The words.
        quote: &'static str,
        /// The lower end of the range.
        low: f64,
        /// The upper end.
        high: f64,
    },
}

impl Aim {
    /// Returns true if `value` is as it should be.
    pub fn holds(&self, value: f64) -> bool {
        match *self {
            Aim::Published { figure, band, .. } => {
                (band.low..=band.high).contains(&(value / figure))
            }
            Aim::AtLeast(least, _) => value >= least,
            Aim::AtMost(most, _) => value <= most,
            Aim::Words { low, high, .. } => (low..=high).contains(&value),
        }
    }

    /// Where the figure stands, or its purpose.
    pub fn source(&self) -> &'static str {
        match *self {
            Aim::Published { quote, .. } | Aim::Words { quote, .. } => quote,
            Aim::AtLeast(_, source) | Aim::AtMost(_, source) => source,
        }
    }

    /// The figure aimed at; words have none.
    pub fn figure(&self) -> Option<f64> {
        match *self {
            Aim::Published { figure, .. } => Some(figure),
            Aim::AtLeast(figure, _) | Aim::AtMost(figure, _) => Some(figure),
            Aim::Words { .. } => None,
        }
    }
}

/// True if a figure holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    Holds,
    /// It does not, but would at a corner (an extreme of the machine's plausible properties).
    AtACorner,
    /// It holds nowhere.
    Misses,
}

impl Verdict {
    /// In a word or two.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::AtACorner => "misses, holds at an extreme",
            Verdict::Misses => "misses",
        }
    }
}

/// The meaning of a figure that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The simulation gives a published number.
    Published,
    /// It agrees with a statement of the case study in words.
    Words,
    /// The design reaches an aim that it was made for.
    Aim,
    /// The instrument computes right: no simulation could make it miss.
    Check,
}

impl Class {
    /// All of them, the strongest first.
    pub const ALL: [Class; 4] = [Class::Published, Class::Words, Class::Aim, Class::Check];

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Class::Published => "published",
            Class::Words => "words",
            Class::Aim => "aim",
            Class::Check => "check",
        }
    }

    /// Several of them.
    pub fn plural(self) -> &'static str {
        match self {
            Class::Published => "simulated figures with a published number",
            Class::Words => "statements in words",
            Class::Aim => "aims",
            Class::Check => "checks of the instrument",
        }
    }
}

/// The number of figures of each class that hold, the strongest class first: `18 of 32 simulated
/// figures with a published number, 3 of 4 aims hold`.
pub fn tally<'a>(rows: impl IntoIterator<Item = &'a Row>) -> String {
    let mut counts = [(0, 0); Class::ALL.len()];
    for row in rows {
        let (held, all) = &mut counts[row.class() as usize];
        *held += usize::from(row.verdict() == Verdict::Holds);
        *all += 1;
    }
    let classes = Class::ALL.into_iter().zip(counts);
    let said = classes.filter(|(_, (_, all))| *all > 0);
    let said = said.map(|(class, (held, all))| format!("{held} of {all} {}", class.plural()));
    format!("{} hold", Vec::from_iter(said).join(", "))
}

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A plain number.
    Number,
    /// Operations a second.
    Rate,
    /// A part of a whole.
    Share,
}

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its subject.
    pub what: String,
    pub unit: Unit,
    /// The condition on it.
    pub aim: Aim,
    /// It holds by construction, unless the instrument is broken.
    is_check: bool,
    /// The figure on the machine.
    pub ours: Spread,
    /// Medians on the corners.
    pub corners: Vec<f64>,
    /// Why it misses, if it is known to.
    pub why: Option<&'static str>,
    /// A remark on the figure.
    pub note: Option<String>,
    /// Seconds of this computer that its runs took, without those that earlier rows share.
    pub seconds: f64,
}

impl Row {
    /// A row for the value of `quantity` in `lab`, if the machine has the CPUs for it.
    pub fn new(
        lab: &Lab,
        what: impl Into<String>,
        aim: Aim,
        quantity: impl Fn(&World) -> Option<Vec<f64>>,
    ) -> Option<Self> {
        let figure = lab.figure(&quantity)?;
        Some(Row {
            ours: figure.ours,
            corners: figure.corners,
            seconds: figure.seconds,
            ..Row::of(what, aim, 0.0)
        })
    }

    /// A row for a computed, not simulated value: a check of the instrument.
    pub fn known(what: impl Into<String>, aim: Aim, value: f64) -> Self {
        Row::of(what, aim, value).check()
    }

    fn of(what: impl Into<String>, aim: Aim, value: f64) -> Self {
        Row {
            what: what.into(),
            unit: Unit::Number,
            aim,
            is_check: false,
            ours: Spread {
                median: value,
                low: value,
                high: value,
            },
            corners: Vec::new(),
            why: None,
            note: None,
            seconds: 0.0,
        }
    }

    /// This row as a check: it holds by construction.
    pub fn check(self) -> Self {
        Row {
            is_check: true,
            ..self
        }
    }

    /// The meaning of the figure if it holds.
    pub fn class(&self) -> Class {
        match self.aim {
            _ if self.is_check => Class::Check,
            Aim::Published { .. } => Class::Published,
            Aim::Words { .. } => Class::Words,
            Aim::AtLeast(..) | Aim::AtMost(..) => Class::Aim,
        }
    }

    /// This row in another unit.
    pub fn unit(self, unit: Unit) -> Self {
        Row { unit, ..self }
    }

    /// Adds the reason why it misses, should it.
    pub fn why(self, why: &'static str) -> Self {
        Row {
            why: Some(why),
            ..self
        }
    }

    /// Adds a remark.
    pub fn note(self, note: String) -> Self {
        Row {
            note: Some(note),
            ..self
        }
    }

    pub fn verdict(&self) -> Verdict {
        match self.aim.holds(self.ours.median) {
            true => Verdict::Holds,
            false if self.corners.iter().any(|&corner| self.aim.holds(corner)) => {
                Verdict::AtACorner
            }
            false => Verdict::Misses,
        }
    }

    /// Why it misses: the known reason, or the source of its aim.
    pub fn reason(&self) -> &'static str {
        self.why.unwrap_or(self.aim.source())
    }

    /// The simulated figure over the one that it is compared with, if that is not 0.
    pub fn ratio(&self) -> Option<f64> {
        let figure = self.aim.figure().filter(|&figure| figure != 0.0);
        Some(self.ours.median / figure?)
    }

    /// The range over the machine and its corners.
    pub fn range(&self) -> (f64, f64) {
        let all = || self.corners.iter().copied().chain([self.ours.median]);
        (
            all().fold(f64::INFINITY, f64::min),
            all().fold(f64::NEG_INFINITY, f64::max),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_of_any_order() {
        let spread = Spread::of(vec![3.0, 1.0, 2.0]).unwrap();
        assert_eq!((spread.low, spread.median, spread.high), (1.0, 2.0, 3.0));
        assert_eq!(Spread::of(vec![1.0, 2.0]).unwrap().median, 1.5);
        assert_eq!(Spread::of(vec![]), None);
    }

    #[test]
    fn corners_are_asked_if_the_machine_misses() {
        let (figure, quote) = (100.0, "");
        let aim = Aim::Published {
            figure,
            quote,
            band: Band::SATURATED,
        };
        let row = |median: f64, corner: f64| Row {
            corners: vec![corner],
            ..Row::of("", aim, median)
        };
        assert_eq!(row(66.0, 1.0).verdict(), Verdict::Holds);
        assert_eq!(row(134.0, 1.0).verdict(), Verdict::Holds);
        assert_eq!(row(64.0, 70.0).verdict(), Verdict::AtACorner);
        assert_eq!(row(136.0, 64.0).verdict(), Verdict::Misses);
        assert_eq!(row(50.0, 60.0).range(), (50.0, 60.0));
        assert_eq!(row(50.0, 60.0).ratio(), Some(0.5));
    }
    #[test]
    fn words_are_taken_for_a_range() {
        let (quote, low, high) = ("a smooth desktop", 0.0, 1.0);
        let row = |value| Row::of("", Aim::Words { quote, low, high }, value);
        assert_eq!(row(1.0).verdict(), Verdict::Holds);
        assert_eq!(row(1.1).verdict(), Verdict::Misses);
        assert_eq!((row(1.1).ratio(), row(1.1).reason()), (None, quote));
    }

    #[test]
    fn what_holds_by_construction_is_counted_apart() {
        let aim = Aim::Published {
            figure: 5.0,
            quote: "",
            band: Band::EXACT,
        };
        let rows = [
            Row::of("", aim, 5.0),
            Row::of("", aim, 6.0),
            Row::known("", aim, 5.0),
            Row::of("", Aim::AtMost(1.0, ""), 0.0),
        ];
        assert_eq!(
            tally(&rows),
            "1 of 2 simulated figures with a published number, 1 of 1 aims, \
             1 of 1 checks of the instrument hold"
        );
    }
}
