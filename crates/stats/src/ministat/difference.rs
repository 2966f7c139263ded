//! The difference of two samples by Student's t with pooled variance.

use std::fmt;
use std::str::FromStr;

use super::Dataset;
use super::moments::{mean, scale, scaled, variance};
use super::student::CRITICAL;
use crate::format::figure;

/// A confidence level of ministat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Confidence {
    /// 80 %.
    P80,
    /// 90 %.
    P90,
    /// 95 %.
    #[default]
    P95,
    /// 98 %.
    P98,
    /// 99 %.
    P99,
    /// Called 99.5 % as in ministat, whose table holds the values of 99.8 % there.
    P99_5,
}

impl Confidence {
    /// Every level, ascending.
    pub const ALL: [Self; 6] = [
        Self::P80,
        Self::P90,
        Self::P95,
        Self::P98,
        Self::P99,
        Self::P99_5,
    ];

    /// The level in percent, as ministat names it.
    pub const fn percent(self) -> f64 {
        [80.0, 90.0, 95.0, 98.0, 99.0, 99.5][self as usize]
    }

    /// The two-sided critical value of Student's t; above 100 degrees of freedom, that of the
    /// normal distribution.
    pub fn critical(self, degrees_of_freedom: usize) -> f64 {
        CRITICAL.get(degrees_of_freedom).unwrap_or(&CRITICAL[0])[self as usize]
    }
}

/// The error for a number that is no confidence level of ministat.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a confidence level (80, 90, 95, 98, 99 or 99.5), found `{0}`")]
pub struct UnknownConfidence(String);

impl FromStr for Confidence {
    type Err = UnknownConfidence;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let percent: Option<f64> = text.trim().trim_end_matches('%').parse().ok();
        Self::ALL
            .into_iter()
            .find(|level| Some(level.percent()) == percent)
            .ok_or(UnknownConfidence(text.into()))
    }
}

/// The difference of a sample's mean from a base's; displayed as ministat prints it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The level of the errors below.
    pub confidence: Confidence,
    /// Mean of the sample minus mean of the base; infinite if that is beyond the largest number.
    pub absolute: f64,
    /// Half the confidence interval of [`absolute`](Self::absolute).
    pub absolute_error: f64,
    /// The difference in percent of the base's mean; not finite if that is 0, or too close to it.
    pub percent: f64,
    /// Half the confidence interval of [`percent`](Self::percent), including the error of the
    /// base's mean, as in FreeBSD's ministat; older versions (Debian ships one of 2015) divide the
    /// absolute error by the base and print less.
    pub percent_error: f64,
    /// The pooled standard deviation.
    pub pooled: f64,
    /// True if the means differ by more than the error.
    proven: bool,
}

impl Difference {
    /// Compares `sample` with `base`.
    pub fn between(base: &Dataset, sample: &Dataset, confidence: Confidence) -> Self {
        let (n, m) = (sample.points().len() as f64, base.points().len() as f64);
        let freedom = n + m - 2.0;
        let t = confidence.critical(sample.points().len() + base.points().len() - 2);
        // Both near 1, where no square overflows or vanishes.
        let unit = scale(sample.points().iter().chain(base.points()));
        let (sample, base) = (scaled(sample.points(), unit), scaled(base.points(), unit));
        let (spread, base_spread) = ((n - 1.0) * variance(&sample), (m - 1.0) * variance(&base));
        let (sample, base) = (mean(&sample), mean(&base));
        let pooled = ((spread + base_spread) / freedom).sqrt();
        // First-order error propagation through the quotient sample / base, with the spread of each
        // side on its own scale.
        let ratio = sample / base;
        let relative =
            ((spread + base_spread * ratio * ratio) * (n + m) / (n * m * freedom)).sqrt();
        let absolute = sample - base;
        let error = t * pooled * (1.0 / n + 1.0 / m).sqrt();
        Self {
            confidence,
            absolute: absolute * unit,
            absolute_error: error * unit,
            percent: absolute * 100.0 / base,
            percent_error: t * relative * 100.0 / base,
            pooled: pooled * unit,
            proven: absolute.abs() > error,
        }
    }

    /// Returns true if the means differ by more than the error.
    pub fn proven(&self) -> bool {
        self.proven
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = self.confidence.percent();
        if !self.proven() {
            return writeln!(out, "No difference proven at {level:.1}% confidence");
        }
        let [absolute, error, percent, percent_error, pooled] = [
            self.absolute,
            self.absolute_error,
            self.percent,
            self.percent_error,
            self.pooled,
        ]
        .map(|value| figure(value, 6));
        writeln!(out, "Difference at {level:.1}% confidence")?;
        writeln!(out, "\t{absolute} +/- {error}")?;
        if self.percent.is_finite() && self.percent_error.is_finite() {
            writeln!(out, "\t{percent}% +/- {percent_error}%")?
        } else {
            writeln!(
                out,
                "\t(no percentage: the first sample's average is 0 or too close to it)"
            )?
        }
        writeln!(out, "\t(Student's t, pooled s = {pooled})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_parsed_as_ministat_does() {
        let parsed: Vec<Confidence> = ["80", "90%", "95.0", "98", "99", "99.5"]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        assert_eq!(parsed, Confidence::ALL);
        assert!(
            "97".parse::<Confidence>()
                .unwrap_err()
                .to_string()
                .ends_with("found `97`")
        );
        assert!("often".parse::<Confidence>().is_err());
    }

    /// Computed with Python's `statistics` by the formulas of FreeBSD's ministat, with t = 2.365 at
    /// 7 degrees of freedom.
    #[test]
    fn errors_of_samples_of_unequal_size() {
        let set = |points: &[f64]| Dataset::new("set", points.to_vec()).unwrap();
        let (base, sample) = ([10.0, 12.0, 11.0, 13.0, 9.0], [20.0, 25.0, 22.0, 21.0]);
        let found = Difference::between(&set(&base), &set(&sample), Confidence::P95);
        for (found, wanted) in [
            (found.pooled, 1.851_640_199_545),
            (found.absolute_error, 2.937_609_086_120),
            (found.percent, 100.0),
            (found.percent_error, 40.058_305_719_824),
        ] {
            assert!((found - wanted).abs() < 1e-9, "{found}, not {wanted}");
        }
    }

    #[test]
    fn many_degrees_of_freedom_use_the_normal_distribution() {
        assert_eq!(
            [8, 100, 101, 5000].map(|freedom| Confidence::P95.critical(freedom)),
            [2.306, 1.984, 1.960, 1.960]
        );
    }
}
