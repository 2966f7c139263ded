//! The Universal Scalability Law, fitted to a throughput curve.
//!
//! Gunther's law (*Guerrilla Capacity Planning*, 2007) explains X(N) = λN / (1 + σ(N − 1) + κN(N −
//! 1)) by three numbers: λ, the yield of one CPU alone; σ, the serialised share (a lock held); κ,
//! the price of each pair of CPUs agreeing (cache lines moving). κ > 0 makes the curve turn down.
//! The fit minimises the squares of the throughput's residuals with σ ≥ 0 and κ ≥ 0: a linear fit
//! of N/X, weighted to have the same residuals to first order, starts Levenberg–Marquardt.

mod normal;

use normal::Normal;

use crate::curve::{Point, PointsError, merged};
use crate::ministat::{mean, scale};

/// The fitted law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Law {
    /// λ: throughput of one CPU alone, in the unit of the points.
    pub lambda: f64,
    /// σ: contention, at least 0.
    pub sigma: f64,
    /// κ: coherence delay, at least 0.
    pub kappa: f64,
    /// The share of the points' variance that the law explains; `None` if all points are equally
    /// high. Below 0, the mean describes them better. With three points the law passes through them
    /// whatever they mean.
    pub r_squared: Option<f64>,
}

impl Law {
    /// Fits the law to at least three different numbers of CPUs. Every point counts, including
    /// several at the same CPUs.
    pub fn fit(points: &[Point]) -> Result<Self, PointsError> {
        merged(points, 3)?;
        // Squares are summed: near 1, where none overflows.
        let unit = scale(points.iter().map(|point| &point.throughput));
        let points: Vec<[f64; 2]> = points
            .iter()
            .map(|point| [f64::from(point.cpus), point.throughput / unit])
            .collect();
        // The best fit within bounds either lies inside them or is the best fit on one of them.
        let free = [
            [true, true, true],
            [true, false, true],
            [true, true, false],
            [true, false, false],
        ];
        let fits = free
            .into_iter()
            .map(|free| descend(&points, start(&points, free), free));
        let inside = |p: &[f64; 3]| {
            p[0] > 0.0 && p[1] >= 0.0 && p[2] >= 0.0 && p.iter().all(|value| value.is_finite())
        };
        let best = fits
            .filter(inside)
            .min_by(|a, b| squares(&points, a).total_cmp(&squares(&points, b)));
        // Without contention the fit is linear and has a solution inside the bounds for any
        // positive points.
        let [lambda, sigma, kappa] = best.unwrap_or_else(|| start(&points, free[3]));
        let mean = mean(&points.iter().map(|point| point[1]).collect::<Vec<_>>());
        let variation: f64 = points.iter().map(|point| (point[1] - mean).powi(2)).sum();
        let r_squared =
            (variation > 0.0).then(|| 1.0 - squares(&points, &[lambda, sigma, kappa]) / variation);
        Ok(Self {
            lambda: lambda * unit,
            sigma,
            kappa,
            r_squared,
        })
    }

    /// Throughput at `cpus`.
    pub fn throughput(&self, cpus: f64) -> f64 {
        throughput(&[self.lambda, self.sigma, self.kappa], cpus)
    }

    /// The number of CPUs at which throughput is highest, in general not a whole number; `None` if
    /// it grows forever.
    pub fn peak(&self) -> Option<f64> {
        if self.sigma >= 1.0 {
            return Some(1.0);
        }
        (self.kappa > 0.0).then(|| ((1.0 - self.sigma) / self.kappa).sqrt().max(1.0))
    }
}

fn throughput(&[lambda, sigma, kappa]: &[f64; 3], n: f64) -> f64 {
    lambda * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0))
}

/// Sum of squared residuals.
fn squares(points: &[[f64; 2]], parameters: &[f64; 3]) -> f64 {
    points
        .iter()
        .map(|&[n, x]| (x - throughput(parameters, n)).powi(2))
        .sum()
}

/// Weighted linear fit of N/X = 1/λ + (σ/λ)(N − 1) + (κ/λ)N(N − 1), within the bounds.
fn start(points: &[[f64; 2]], free: [bool; 3]) -> [f64; 3] {
    let mut normal = Normal::default();
    for &[n, x] in points {
        // d(N/X) = -(N/X²) dX: dividing by N/X² turns the residual of N/X into one of X.
        let weight = x * x / n;
        let row = [weight, weight * (n - 1.0), weight * n * (n - 1.0)];
        normal.add(row, weight * n / x, free);
    }
    let [a, b, c] = normal.solve(0.0, free).unwrap_or([0.0; 3]);
    let highest = points.iter().map(|&[n, x]| x / n).fold(0.0, f64::max);
    let lambda = if a > 0.0 { 1.0 / a } else { highest };
    [lambda, (b * lambda).max(0.0), (c * lambda).max(0.0)]
}

/// Levenberg–Marquardt on the free parameters. It may leave the bounds: the caller drops such a
/// fit.
fn descend(points: &[[f64; 2]], mut at: [f64; 3], free: [bool; 3]) -> [f64; 3] {
    const STEPS: usize = 200;
    let mut error = squares(points, &at);
    let mut damping = 1e-3;
    for _ in 0..STEPS {
        let mut normal = Normal::default();
        for &[n, x] in points {
            let below = 1.0 + at[1] * (n - 1.0) + at[2] * n * (n - 1.0);
            let slope = -at[0] * n * (n - 1.0) / (below * below);
            normal.add([n / below, slope, slope * n], x - throughput(&at, n), free);
        }
        let Some(step) = normal.solve(damping, free) else {
            break;
        };
        let next = [at[0] + step[0], at[1] + step[1], at[2] + step[2]];
        let next_error = squares(points, &next);
        if next_error < error {
            let gain = (error - next_error) / error;
            (at, error, damping) = (next, next_error, damping / 10.0);
            if gain < 1e-14 {
                break;
            }
        } else {
            damping *= 10.0;
            if damping > 1e12 {
                break;
            }
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law(points: &[(u32, f64)]) -> Law {
        let points: Vec<_> = points
            .iter()
            .map(|&(cpus, throughput)| Point { cpus, throughput })
            .collect();
        Law::fit(&points).unwrap()
    }

    fn close(found: f64, wanted: f64, relative: f64) -> bool {
        (found - wanted).abs() <= relative * wanted.abs()
    }

    #[test]
    fn published_fit_of_spec_sdm91() {
        // SPARCcenter 2000 in SPEC SDM 91, and the fit that R's package usl 3 prints for it.
        let sdm = [
            (1, 64.9),
            (18, 995.9),
            (36, 1652.4),
            (72, 1853.2),
            (108, 1828.9),
            (144, 1775.0),
            (216, 1702.2),
        ];
        let law = law(&sdm);
        assert!(close(law.lambda, 89.995_233, 1e-6), "{law:?}");
        assert!(close(law.sigma, 0.027_728_5, 1e-5), "{law:?}");
        assert!(close(law.kappa, 0.000_104_4, 1e-3), "{law:?}");
        let peak = law.peak().unwrap();
        assert!(close(peak, 96.52, 1e-4), "{peak}");
        assert!(
            close(law.throughput(peak), 1884.0, 1e-3),
            "{}",
            law.throughput(peak)
        );
    }

    #[test]
    fn exact_points_are_recovered() {
        for (lambda, sigma, kappa) in [
            (1.7e5, 0.02, 0.004),
            (9.0, 0.0, 0.01),
            (3e6, 0.3, 0.0),
            (1.0, 0.0, 0.0),
            (5e5, 0.5, 0.2),
        ] {
            let points: Vec<_> = [1, 2, 4, 8, 16, 48, 96]
                .map(|n| (n, throughput(&[lambda, sigma, kappa], f64::from(n))))
                .into();
            let found = law(&points);
            assert!(close(found.lambda, lambda, 1e-6), "{found:?}");
            assert!(
                (found.sigma - sigma).abs() < 1e-6 && (found.kappa - kappa).abs() < 1e-6,
                "{found:?}"
            );
            assert!(found.r_squared.unwrap() > 1.0 - 1e-9, "{found:?}");
        }
    }

    #[test]
    fn no_neighbour_fits_better() {
        let points = [(1, 210.0), (2, 330.0), (4, 520.0), (8, 560.0), (16, 480.0)];
        let best = law(&points);
        let points = points.map(|(n, x)| [f64::from(n), x]);
        let at = [best.lambda, best.sigma, best.kappa];
        for index in 0..3 {
            for factor in [0.999, 1.001] {
                let mut near = at;
                near[index] *= factor;
                assert!(
                    squares(&points, &near) > squares(&points, &at),
                    "{index} × {factor}"
                );
            }
        }
    }

    #[test]
    fn superlinear_points_stay_in_the_bounds() {
        let found = law(&[(1, 100.0), (2, 230.0), (4, 500.0), (8, 1100.0)]);
        assert!(found.sigma >= 0.0 && found.kappa >= 0.0, "{found:?}");
        assert_eq!(found.peak(), None);
    }

    #[test]
    fn the_unit_changes_the_yield_alone() {
        let points = [(1, 210.0), (2, 330.0), (4, 520.0), (8, 560.0), (16, 480.0)];
        let plain = law(&points);
        for exponent in [-900, 200, 700, 1010] {
            let unit = 2.0_f64.powi(exponent);
            let found = law(&points.map(|(cpus, rate)| (cpus, rate * unit)));
            let wanted = Law {
                lambda: plain.lambda * unit,
                ..plain
            };
            assert_eq!(found, wanted, "2^{exponent}");
        }
    }

    #[test]
    fn flat_and_few_points() {
        let flat = law(&[(1, 5.0), (2, 5.0), (4, 5.0), (8, 5.0)]);
        assert_eq!(flat.r_squared, None);
        assert!(close(flat.sigma, 1.0, 1e-6), "{flat:?}");
        let two = [
            Point {
                cpus: 1,
                throughput: 1.0,
            },
            Point {
                cpus: 2,
                throughput: 2.0,
            },
        ];
        assert_eq!(
            Law::fit(&two),
            Err(PointsError::TooFew {
                found: 2,
                needed: 3
            })
        );
    }
}
