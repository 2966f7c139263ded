//! Welch's t test: compares means without assuming equal variances.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::ministat::{mean, scale, scaled, variance};

/// The result of the test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Welch {
    /// Difference of means (B minus A) in standard errors.
    pub t: f64,
    /// Degrees of freedom by Welch and Satterthwaite.
    pub freedom: f64,
    /// Two-sided probability of a `t` at least as far from 0 if the means do not differ.
    pub p: f64,
}

/// Tests B against A; each needs two runs. If each side's runs are all equal, `p` is 1, or 0 if the
/// sides differ.
pub fn welch(a: &[f64], b: &[f64]) -> Welch {
    // The test does not depend on the unit, and near 1 no square overflows or vanishes.
    let unit = scale(a.iter().chain(b));
    let (a, b) = (&scaled(a, unit), &scaled(b, unit));
    let difference = mean(b) - mean(a);
    let (error, freedom) = spread(a, b);
    if error == 0.0 {
        let (t, p) = if difference == 0.0 {
            (0.0, 1.0)
        } else {
            (f64::INFINITY.copysign(difference), 0.0)
        };
        return Welch { t, freedom, p };
    }
    let t = difference / error;
    let p = StudentsT::new(0.0, 1.0, freedom).map_or(1.0, |student| 2.0 * student.sf(t.abs()));
    Welch { t, freedom, p }
}

/// Standard error of the difference of means, and its degrees of freedom.
fn spread(a: &[f64], b: &[f64]) -> (f64, f64) {
    let part = |side: &[f64]| variance(side) / side.len() as f64;
    let (of_a, of_b) = (part(a), part(b));
    let sum = of_a + of_b;
    let freedom =
        sum * sum / (of_a * of_a / (a.len() as f64 - 1.0) + of_b * of_b / (b.len() as f64 - 1.0));
    (
        sum.sqrt(),
        if freedom.is_finite() {
            freedom
        } else {
            (a.len() + b.len() - 2) as f64
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn student_1908_sleep_data() {
        // R: t.test(extra ~ group, data = sleep): t = -1.8608, df = 17.776, p-value = 0.07939
        let one = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let two = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let test = welch(&one, &two);
        assert!((test.t - 1.8608).abs() < 5e-5, "{test:?}");
        assert!((test.freedom - 17.776).abs() < 5e-4, "{test:?}");
        assert!((test.p - 0.07939).abs() < 5e-6, "{test:?}");
    }

    #[test]
    fn the_unit_does_not_matter() {
        let (a, b) = ([1.0, 1.5, 1.25, 1.75], [1.5, 1.75, 1.25, 1.875]);
        let plain = welch(&a, &b);
        for exponent in [-1000, -300, 300, 1022] {
            let unit = 2.0_f64.powi(exponent);
            let test = welch(&a.map(|run| run * unit), &b.map(|run| run * unit));
            assert_eq!(test, plain, "2^{exponent}");
        }
        assert_eq!(welch(&[f64::MAX; 5], &[f64::MAX; 5]).p, 1.0);
    }

    #[test]
    fn no_spread_is_no_division_by_zero() {
        assert_eq!(welch(&[1.0, 1.0], &[1.0, 1.0]).p, 1.0);
        let test = welch(&[2.0, 2.0], &[1.0, 1.0]);
        assert_eq!((test.t, test.p), (f64::NEG_INFINITY, 0.0));
    }
}
