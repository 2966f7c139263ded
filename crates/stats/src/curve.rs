//! The shape of a throughput curve as CPUs are added, in words: its knee, peak, plateau and
//! collapse.

use std::fmt;

use crate::format::metric;
use crate::ministat::mean;

/// A point of the plateau keeps at least this share of the peak.
pub const PLATEAU: f64 = 0.95;
/// A curve that falls below this share of its peak, at more CPUs than the peak, has collapsed.
pub const COLLAPSE: f64 = 0.80;
/// At the knee, a CPU yields less than this share of its yield at the fewest CPUs measured: from
/// there on, more than half of each addition is lost.
pub const KNEE: f64 = 0.50;

/// Throughput at a number of CPUs (or tasks).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// CPUs at work, at least 1.
    pub cpus: u32,
    /// Operations a second of all CPUs together.
    pub throughput: f64,
}

/// Why points form no curve.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum PointsError {
    /// Too few different numbers of CPUs.
    #[error("expected at least {needed} different CPU counts, found {found}")]
    TooFew {
        /// The number found.
        found: usize,
        /// The number needed.
        needed: usize,
    },
    /// A value that no measurement can give.
    #[error("expected a throughput at {cpus} CPUs, found {throughput} operations a second")]
    Impossible {
        /// CPUs of the point.
        cpus: u32,
        throughput: f64,
    },
}

/// The named features of a curve. Displayed as one sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Ascending CPUs, one point each.
    pub points: Vec<Point>,
    /// The highest throughput; of equals, the fewest CPUs.
    pub peak: Point,
    /// First and last CPUs of the measured points around the peak that keep [`PLATEAU`] of it;
    /// without such points, the peak's.
    pub plateau: (u32, u32),
    /// The first point whose throughput per CPU is below [`KNEE`] of the first point's.
    pub knee: Option<Point>,
    /// The loss after the peak, if it is more than [`COLLAPSE`] allows.
    pub collapse: Option<Collapse>,
}

/// A collapse after the peak.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Collapse {
    /// The first point below [`COLLAPSE`] of the peak.
    pub from: Point,
    /// The lowest point after the peak.
    pub lowest: Point,
}

impl Curve {
    /// Finds the features of `points`, in any order; several points at the same number of CPUs
    /// count as their mean. O(n log n).
    pub fn of(points: &[Point]) -> Result<Self, PointsError> {
        let points = merged(points, 2)?;
        let first = points[0];
        let mut top = 0;
        for (index, point) in points.iter().enumerate() {
            if point.throughput > points[top].throughput {
                top = index;
            }
        }
        let peak = points[top];
        let high = |point: &&Point| point.throughput >= PLATEAU * peak.throughput;
        let edge = |run: &mut dyn Iterator<Item = &Point>| {
            run.take_while(high)
                .last()
                .map_or(peak.cpus, |point| point.cpus)
        };
        let plateau = (
            edge(&mut points[..top].iter().rev()),
            edge(&mut points[top..].iter()),
        );
        let per_cpu = |point: &Point| point.throughput / f64::from(point.cpus);
        let knee = points
            .iter()
            .find(|point| per_cpu(point) < KNEE * per_cpu(&first))
            .copied();
        let collapsed = points[top..]
            .iter()
            .find(|point| point.throughput < COLLAPSE * peak.throughput);
        let lowest = points[top..]
            .iter()
            .min_by(|a, b| a.throughput.total_cmp(&b.throughput));
        let collapse = collapsed
            .zip(lowest)
            .map(|(&from, &lowest)| Collapse { from, lowest });
        Ok(Self {
            peak,
            plateau,
            knee,
            collapse,
            points,
        })
    }

    /// Throughput per CPU, as a share of that at the fewest CPUs measured.
    pub fn efficiency(&self, point: Point) -> f64 {
        let first = self.points[0];
        point.throughput / first.throughput * f64::from(first.cpus) / f64::from(point.cpus)
    }
}

impl fmt::Display for Curve {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { peak, plateau, .. } = self;
        let last = self.points[self.points.len() - 1];
        let grows = peak.cpus == last.cpus;
        let verb = if grows { "grows to" } else { "peaks at" };
        write!(
            out,
            "{verb} {} at {} CPUs",
            metric(peak.throughput),
            peak.cpus
        )?;
        if plateau.0 < peak.cpus {
            write!(out, ", flat from {}", plateau.0)?;
        }
        if plateau.1 > peak.cpus {
            write!(out, ", flat to {}", plateau.1)?;
        }
        if let Some(knee) = self.knee {
            write!(
                out,
                ", knee at {} ({:.0} % of the first point's yield per CPU)",
                knee.cpus,
                100.0 * self.efficiency(knee)
            )?;
        }
        match self.collapse {
            Some(Collapse { from, lowest }) => {
                let lost = 100.0 * (1.0 - lowest.throughput / peak.throughput);
                let lowest = format!(
                    "{} at {} ({lost:.0} % below the peak)",
                    metric(lowest.throughput),
                    lowest.cpus
                );
                write!(out, "; collapses from {} CPUs on: {lowest}", from.cpus)
            }
            None if grows => Ok(()),
            None => write!(out, "; no collapse to {} CPUs", last.cpus),
        }
    }
}

/// Points by ascending CPUs, those with equal CPUs merged to their mean; at least `needed` of them,
/// all valid, not all zero.
pub(crate) fn merged(points: &[Point], needed: usize) -> Result<Vec<Point>, PointsError> {
    let impossible = |point: &&Point| {
        point.cpus == 0 || !point.throughput.is_finite() || point.throughput <= 0.0
    };
    if let Some(&Point { cpus, throughput }) = points.iter().find(impossible) {
        return Err(PointsError::Impossible { cpus, throughput });
    }
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| {
        a.cpus
            .cmp(&b.cpus)
            .then(a.throughput.total_cmp(&b.throughput))
    });
    let merge = |same: &[Point]| {
        let all: Vec<f64> = same.iter().map(|point| point.throughput).collect();
        Point {
            cpus: same[0].cpus,
            throughput: mean(&all),
        }
    };
    let merged: Vec<Point> = sorted
        .chunk_by(|a, b| a.cpus == b.cpus)
        .map(merge)
        .collect();
    if merged.len() < needed {
        return Err(PointsError::TooFew {
            found: merged.len(),
            needed,
        });
    }
    Ok(merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(u32, f64)]) -> Curve {
        let points: Vec<_> = points
            .iter()
            .map(|&(cpus, throughput)| Point { cpus, throughput })
            .collect();
        Curve::of(&points).unwrap()
    }

    #[test]
    fn shape_of_case_study_000() {
        // Case study 000 prints 12 and 96; the others follow its words: a peak at 12, a plateau to
        // 24, then a rapid decline.
        let published = curve(&[
            (1, 165_000.0),
            (6, 930_000.0),
            (12, 1_719_430.0),
            (24, 1_700_000.0),
            (48, 1_320_000.0),
            (96, 1_008_730.0),
        ]);
        assert_eq!(
            published.to_string(),
            "peaks at 1.719 M at 12 CPUs, flat to 24, knee at 24 (43 % of the first point's yield \
             per CPU); collapses from 48 CPUs on: 1.009 M at 96 (41 % below the peak)"
        );
        assert_eq!((published.peak.cpus, published.plateau), (12, (12, 24)));
    }

    #[test]
    fn a_linear_curve_only_grows() {
        let linear = curve(&[(4, 4e6), (1, 1e6), (2, 2e6)]);
        assert_eq!(linear.to_string(), "grows to 4 M at 4 CPUs");
        assert_eq!((linear.knee, linear.collapse), (None, None));
    }

    #[test]
    fn a_fall_is_a_collapse_only_beyond_its_threshold() {
        let behind = |last| {
            curve(&[(1, 60.0), (2, 100.0), (4, last)])
                .collapse
                .is_some()
        };
        assert_eq!([behind(80.0), behind(79.9)], [false, true]);
        let plateau = |last| curve(&[(1, 60.0), (2, 100.0), (4, last)]).plateau;
        assert_eq!([plateau(95.0), plateau(94.9)], [(2, 4), (2, 2)]);
        let knee = |last| curve(&[(1, 60.0), (2, 100.0), (4, last)]).knee.is_some();
        assert_eq!([knee(120.0), knee(119.0)], [false, true]);
    }

    #[test]
    fn low_points_before_the_peak_are_no_collapse() {
        assert_eq!(curve(&[(1, 100.0), (2, 50.0), (4, 300.0)]).collapse, None);
    }

    #[test]
    fn points_at_the_same_cpus_are_averaged_and_bad_ones_refused() {
        assert_eq!(curve(&[(2, 1.0), (1, 1.0), (2, 3.0)]).points.len(), 2);
        assert_eq!(curve(&[(2, 1.0), (1, 1.0), (2, 3.0)]).peak.throughput, 2.0);
        let of = |cpus, throughput| {
            Curve::of(&[
                Point {
                    cpus: 1,
                    throughput: 1.0,
                },
                Point { cpus, throughput },
            ])
            .unwrap_err()
        };
        assert_eq!(
            of(1, 2.0).to_string(),
            "expected at least 2 different CPU counts, found 1"
        );
        assert_eq!(
            of(2, f64::INFINITY).to_string(),
            "expected a throughput at 2 CPUs, found inf operations a second"
        );
        assert_eq!(
            of(0, 1.0),
            PointsError::Impossible {
                cpus: 0,
                throughput: 1.0
            }
        );
        assert_eq!(
            of(2, 0.0),
            PointsError::Impossible {
                cpus: 2,
                throughput: 0.0
            }
        );
    }
}
