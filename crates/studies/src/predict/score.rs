//! The error of predictions, compared with two models that need no simulator.

use crate::published::{Point, rate_at};
use crate::row::Spread;
use stats::curve::Point as Fitted;
use stats::usl::Law;
use std::collections::BTreeMap;

/// The part of the CPUs up to which a law is fitted; what is above is held out from all.
const SMALL: u32 = 4;
/// The part of the peak from which a rate belongs to it.
const PEAK: f64 = 0.9;
/// A ratio that is nearer to 1 is no change.
const CHANGE: f64 = 0.03;

/// A curve's figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// The counts of tasks that are held out.
    pub counts: Vec<u32>,
    /// The median of |ln(predicted / measured)| over them.
    pub ours: f64,
    /// The error of the Universal Scalability Law, fitted to the counts up to a quarter of the
    /// CPUs, if these are three.
    pub usl: Option<f64>,
    /// The error of perfect scaling from the fewest tasks.
    pub linear: f64,
    /// The numbers of tasks at which the predicted and the measured curve reach their peaks, if
    /// there are three counts.
    pub knees: Option<[u32; 2]>,
}

/// Scores a curve measured on `cpus` CPUs; the prediction was fitted at its first point. `None`
/// without a second.
///
/// Held out are the predicted counts above a quarter of the CPUs. If there are none, all but the
/// first are, and the law has no figure.
pub fn score(measured: &[Point], predicted: &[Point], cpus: u32) -> Option<Score> {
    let (first, rest) = predicted.split_first()?;
    let is_large = |tasks: u32| tasks * SMALL > cpus;
    let large: Vec<Point> = rest.iter().filter(|one| is_large(one.0)).copied().collect();
    let (held_out, is_law) = if large.is_empty() {
        (rest.to_vec(), false)
    } else {
        (large, true)
    };
    let error = |guess: &dyn Fn(&Point) -> f64| {
        let errors = held_out.iter().filter_map(|point| {
            let measured = rate_at(measured, point.0)?;
            Some((guess(point) / measured).ln().abs())
        });
        median(errors.collect())
    };
    let small = measured.iter().filter(|point| !is_large(point.0));
    let small: Vec<Fitted> = small
        .map(|&Point(cpus, throughput)| Fitted { cpus, throughput })
        .collect();
    let law = Law::fit(&small).ok().filter(|_| is_law);
    let alone = rate_at(measured, first.0)? / f64::from(first.0);
    Some(Score {
        ours: error(&|point| point.1)?,
        usl: law.and_then(|law| error(&|point| law.throughput(f64::from(point.0)))),
        linear: error(&|point| alone * f64::from(point.0))?,
        knees: (predicted.len() > 2).then_some([knee(predicted)?, knee(measured)?]),
        counts: held_out.iter().map(|point| point.0).collect(),
    })
}

/// The fewest tasks that have nearly the highest rate.
pub fn knee(points: &[Point]) -> Option<u32> {
    let peak = points.iter().map(|point| point.1).fold(0.0, f64::max);
    let found = points.iter().find(|point| point.1 >= PEAK * peak)?;
    Some(found.0)
}

/// The direction of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Less is done.
    Slower,
    /// No notable change.
    Same,
    /// More is done.
    Faster,
}

impl Sign {
    /// The direction of the ratio after over before.
    pub fn of(ratio: f64) -> Self {
        match ratio {
            ratio if ratio >= 1.0 + CHANGE => Sign::Faster,
            ratio if ratio <= 1.0 - CHANGE => Sign::Slower,
            _ => Sign::Same,
        }
    }
}

/// The middle; of an even number the mean of the two in the middle.
fn median(values: Vec<f64>) -> Option<f64> {
    Some(Spread::of(values)?.median)
}

/// A group of predictions: medians over the sources, each of the median over its curves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Curves with a score.
    pub curves: usize,
    /// Their sources.
    pub sources: usize,
    /// The median of [`Score::ours`].
    pub ours: Option<f64>,
    /// The median of [`Score::linear`].
    pub linear: Option<f64>,
    /// The medians of [`Score::usl`], and of [`Score::ours`] for the same curves.
    pub usl: Option<[f64; 2]>,
    /// Knees within a factor of 1.5, and knees.
    pub knees: [usize; 2],
    /// Pairs with the right sign, and pairs.
    pub signs: [usize; 2],
}

/// The accepted factor between predicted and measured knees.
const KNEE: f64 = 1.5;

/// Of predictions by their source: their score, and the change of a pair as it was predicted and
/// measured.
pub fn summary<'a>(
    all: impl IntoIterator<Item = (&'a str, Option<&'a Score>, Option<[f64; 2]>)>,
) -> Summary {
    let mut summary = Summary::default();
    let mut sources: BTreeMap<&str, Vec<&Score>> = BTreeMap::new();
    for (source, score, change) in all {
        if let Some([predicted, measured]) = change {
            summary.signs[0] += usize::from(Sign::of(predicted) == Sign::of(measured));
            summary.signs[1] += 1;
        }
        let Some(score) = score else { continue };
        summary.curves += 1;
        if let Some(knees) = score.knees {
            let [low, high] = [knees[0].min(knees[1]), knees[0].max(knees[1])];
            summary.knees[0] += usize::from(f64::from(high) <= KNEE * f64::from(low));
            summary.knees[1] += 1;
        }
        sources.entry(source).or_default().push(score);
    }
    let over = |figure: &dyn Fn(&Score) -> Option<f64>| {
        let of =
            |scores: &Vec<&Score>| median(scores.iter().filter_map(|one| figure(one)).collect());
        median(sources.values().filter_map(of).collect())
    };
    summary.sources = sources.len();
    summary.ours = over(&|score| Some(score.ours));
    summary.linear = over(&|score| Some(score.linear));
    let beside = |score: &Score| score.usl.map(|_| score.ours);
    summary.usl = over(&|score| score.usl)
        .zip(over(&beside))
        .map(|(usl, ours)| [usl, ours]);
    summary
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(points: &[(u32, f64)]) -> Vec<Point> {
        points
            .iter()
            .map(|&(tasks, rate)| Point(tasks, rate))
            .collect()
    }

    fn close(found: f64, wanted: f64) -> bool {
        (found - wanted).abs() < 1e-9
    }

    #[test]
    fn large_counts_are_scored_beside_a_law_and_perfect_scaling() {
        let measured = points(&[(1, 10.0), (2, 20.0), (4, 40.0), (8, 60.0), (16, 80.0)]);
        let predicted = points(&[(1, 10.0), (2, 1.0), (8, 30.0), (16, 320.0)]);
        let score = score(&measured, &predicted, 16).expect("a score");
        assert_eq!(score.counts, [8, 16], "2 is within a quarter of the CPUs");
        // Half of 60, and four times 80.
        assert!(
            close(score.ours, (2_f64.ln() + 4_f64.ln()) / 2.0),
            "{score:?}"
        );
        // The first three points are a line, which is 80 and 160 there.
        let line = ((80.0_f64 / 60.0).ln() + 2_f64.ln()) / 2.0;
        assert!(close(score.linear, line), "{score:?}");
        assert!(
            (score.usl.expect("three points") - line).abs() < 1e-3,
            "{score:?}"
        );
        assert_eq!(score.knees, Some([16, 16]));
    }

    #[test]
    fn few_points_have_no_law() {
        let measured = points(&[(2, 20.0), (4, 40.0), (16, 80.0)]);
        let one = score(&measured, &points(&[(2, 20.0), (16, 80.0)]), 16).expect("a score");
        assert_eq!((one.usl, one.knees, one.ours), (None, None, 0.0));
        assert!(close(one.linear, 2_f64.ln()), "from two tasks: {one:?}");
        // No count is above a quarter: all but the first are scored, and a law has seen them.
        let three = points(&[(1, 10.0), (2, 20.0), (4, 20.0)]);
        let small =
            score(&three, &points(&[(1, 10.0), (2, 20.0), (4, 40.0)]), 64).expect("a score");
        assert_eq!((small.counts, small.usl), (vec![2, 4], None));
        assert!(close(small.ours, 2_f64.ln() / 2.0));
        assert_eq!(small.knees, Some([4, 2]));
        assert_eq!(score(&three, &points(&[(1, 10.0)]), 64), None);
    }

    #[test]
    fn a_knee_is_where_nine_tenths_are_reached() {
        let knee = |of: &[(u32, f64)]| knee(&points(of));
        assert_eq!(
            knee(&[(1, 50.0), (2, 90.0), (4, 100.0), (8, 10.0)]),
            Some(2)
        );
        assert_eq!(knee(&[(1, 50.0), (2, 89.0), (4, 100.0)]), Some(4));
        assert_eq!(knee(&[]), None);
    }

    #[test]
    fn less_than_three_percent_is_no_change() {
        let signs = [0.97, 0.98, 1.0, 1.02, 1.03].map(Sign::of);
        let same = Sign::Same;
        assert_eq!(signs, [Sign::Slower, same, same, same, Sign::Faster]);
    }

    #[test]
    fn a_source_counts_once_however_many_curves_it_has() {
        let score = |ours: f64, usl, knees| Score {
            counts: vec![8],
            ours,
            usl,
            linear: 2.0 * ours,
            knees,
        };
        let (a, b, c) = (
            score(0.1, Some(0.5), Some([8, 12])),
            score(0.3, None, Some([4, 8])),
            score(0.9, Some(0.4), None),
        );
        let all = [
            ("many", Some(&a), Some([1.5, 1.1])),
            ("many", Some(&b), Some([1.0, 1.1])),
            ("many", Some(&b), None),
            ("one", Some(&c), None),
            ("pair", None, Some([0.5, 0.9])),
        ];
        let found = summary(all);
        assert_eq!((found.curves, found.sources), (4, 2));
        assert!(close(found.ours.unwrap(), (0.3 + 0.9) / 2.0), "{found:?}");
        assert!(close(found.linear.unwrap(), 1.2), "{found:?}");
        let [usl, ours] = found.usl.expect("a law");
        assert!(close(usl, 0.45) && close(ours, 0.5), "{found:?}");
        assert_eq!((found.knees, found.signs), ([1, 3], [2, 3]));
        assert_eq!(summary([]), Summary::default());
    }
}
