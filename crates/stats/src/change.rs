//! Where a series of runs changes its level.
//!
//! Binary segmentation on ranks asks two questions of a series. Is there a place where the mean
//! rank before differs from the mean rank after (a lasting change)? Is there a stretch whose mean
//! rank differs from that of the rest (a passing change; circular binary segmentation: Olshen,
//! Venkatraman, Lucito and Wigler, Biostatistics 5, 2004)? Both examine all places, in units of the
//! deviation that each has by chance. Ranks, because disturbed runs are outliers, and one outlier
//! is no change of level. The largest difference is compared with that in random orders of the same
//! runs (p = (1 + as large) / (1 + orders), Phipson and Smyth 2010), so no distribution is assumed;
//! only that without a change every order is equally likely. A drifting machine breaks that, and
//! its drift counts as a change. The parts on both sides of a change are searched again. In the end
//! each change moves to where the medians of its sides fit the runs best; there it must be
//! significant between its neighbours alone and reach the minimum effect.
//!
//! The two questions share [`Options::level`], so the chance to find any change in pure noise is at
//! most that. Fewer than [`FEWEST`] runs show nothing.

use oorandom::Rand32;

use crate::ministat::{median, scale, scaled};

/// Fewest runs in which a change can be shown at 5 %: four against four are one of 35 divisions.
/// With fewer runs even a clean step is one of too few.
pub const FEWEST: usize = 8;

/// The part of the level spent on the question for a lasting change; the other question gets the
/// rest.
const LASTING: f64 = 0.8;

/// Fewest runs that form a level: one or two are outliers.
const SHORTEST: usize = 3;

/// How to look for changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The chance to find a change where there is none.
    pub level: f64,
    /// Random orders per question. The cost is runs² × orders.
    pub orders: u32,
    /// The smallest change of the median that matters, as a share; as in
    /// [`Rule`](crate::verdict::Rule).
    pub minimum_effect: f64,
    /// Seed of the orders, so that the same series has the same changes.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            level: crate::verdict::ALPHA,
            orders: 1999,
            minimum_effect: 0.01,
            seed: 1,
        }
    }
}

/// A change of level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The first run of the new level, from 0.
    pub at: usize,
    /// Median of the runs since the previous change.
    pub before: f64,
    /// Median of the runs up to the next change.
    pub after: f64,
    /// The chance of a step as clear as this one between its neighbours, without a change.
    pub p: f64,
}

impl Change {
    /// The new level relative to the old; 1 if both are 0, infinite from 0 on.
    pub fn ratio(&self) -> f64 {
        if self.after == self.before {
            1.0
        } else {
            self.after / self.before
        }
    }
}

/// The changes in `runs`, which are positive and in order of time; ascending. O(runs² × orders) for
/// each level.
pub fn changes(runs: &[f64], options: &Options) -> Vec<Change> {
    let mut random = Rand32::new(options.seed);
    let mut bounds = vec![0, runs.len()];
    divide(runs, 0, options, &mut random, &mut bounds);
    bounds.sort_unstable();
    bounds.dedup();
    // Distances are summed: near 1, where the sum of no distances overflows.
    let unit = scale(runs);
    let mut found = settle(&scaled(runs, unit), bounds, options, &mut random);
    for change in &mut found {
        change.before *= unit;
        change.after *= unit;
    }
    found
}

/// Adds the bounds of the differing parts of `runs`, which begin at `from` in the series.
fn divide(
    runs: &[f64],
    from: usize,
    options: &Options,
    random: &mut Rand32,
    bounds: &mut Vec<usize>,
) {
    if runs.len() < FEWEST {
        return;
    }
    let ranks = centred_ranks(runs);
    let (clearest, at) = step(&ranks);
    let (farthest, begin, end) = stretch(&ranks);
    let [lasting, passing] = [LASTING, 1.0 - LASTING].map(|part| part * options.level);
    let found = if chance(&ranks, clearest, lasting, options, random, |r| step(r).0) <= lasting {
        vec![at]
    } else if chance(&ranks, farthest, passing, options, random, |r| stretch(r).0) <= passing {
        vec![begin, end]
    } else {
        return;
    };
    bounds.extend(found.iter().map(|at| from + at));
    let edges: Vec<usize> = [0].into_iter().chain(found).chain([runs.len()]).collect();
    for edge in edges.windows(2) {
        divide(
            &runs[edge[0]..edge[1]],
            from + edge[0],
            options,
            random,
            bounds,
        );
    }
}

/// Moves each bound to where the runs between its neighbours change, and drops bounds without a
/// change there, the least certain first.
fn settle(
    runs: &[f64],
    mut bounds: Vec<usize>,
    options: &Options,
    random: &mut Rand32,
) -> Vec<Change> {
    loop {
        for index in 1..bounds.len().saturating_sub(1) {
            let (begin, end) = (bounds[index - 1], bounds[index + 1]);
            bounds[index] = begin + best_fit(&runs[begin..end]);
        }
        let found: Vec<Change> = bounds
            .windows(3)
            .map(|near| judge(runs, near, options, random))
            .collect();
        let worst = found
            .iter()
            .enumerate()
            .filter(|(_, change)| {
                change.p > options.level
                    || change.ratio().ln().abs() < options.minimum_effect.ln_1p()
            })
            .max_by(|a, b| a.1.p.total_cmp(&b.1.p));
        match worst {
            Some((index, _)) => bounds.remove(index + 1),
            None => return found,
        };
    }
}

/// The change at the middle of three bounds.
fn judge(runs: &[f64], near: &[usize], options: &Options, random: &mut Rand32) -> Change {
    let ranks = centred_ranks(&runs[near[0]..near[2]]);
    let clearest = step(&ranks).0;
    Change {
        at: near[1],
        before: middle(&runs[near[0]..near[1]]),
        after: middle(&runs[near[1]..near[2]]),
        p: chance(&ranks, clearest, options.level, options, random, |r| {
            step(r).0
        }),
    }
}

/// The share of random orders of `ranks` whose largest difference is at least `largest`; only an
/// upper bound if it exceeds the level.
fn chance(
    ranks: &[f64],
    seen: f64,
    level: f64,
    options: &Options,
    random: &mut Rand32,
    largest: impl Fn(&[f64]) -> f64,
) -> f64 {
    let mut ranks = ranks.to_vec();
    // Sums of ranks are exact, but their quotients are not.
    let seen = seen * (1.0 - 1e-9);
    let enough = level * f64::from(options.orders + 1);
    let mut as_large = 1.0;
    for drawn in 1..=options.orders {
        for last in (1..ranks.len()).rev() {
            ranks.swap(last, random.rand_range(0..last as u32 + 1) as usize);
        }
        if largest(&ranks) >= seen {
            as_large += 1.0;
        }
        // It can no longer become significant.
        if as_large > enough {
            return (as_large / f64::from(drawn + 1)).max(as_large / f64::from(options.orders + 1));
        }
    }
    as_large / f64::from(options.orders + 1)
}

/// The first run from which on a second median fits better than one median for all: the least sum
/// of distances. Ranks would favour places near the middle.
fn best_fit(runs: &[f64]) -> usize {
    let misfit = |part: &[f64]| {
        let middle = middle(part);
        part.iter().map(|run| (run - middle).abs()).sum::<f64>()
    };
    let margin = SHORTEST.min(runs.len() / 2);
    let places = margin..=runs.len() - margin;
    places
        .map(|at| (at, misfit(&runs[..at]) + misfit(&runs[at..])))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map_or(margin, |best| best.0)
}

fn middle(runs: &[f64]) -> f64 {
    let mut sorted = runs.to_vec();
    sorted.sort_by(f64::total_cmp);
    median(&sorted)
}

/// Ranks minus their mean, doubled so that they are whole numbers; equal runs share theirs.
fn centred_ranks(runs: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by(|&a, &b| runs[a].total_cmp(&runs[b]));
    let mut ranks = vec![0.0; runs.len()];
    let mut below = 0;
    for tied in order.chunk_by(|&a, &b| runs[a] == runs[b]) {
        // Ranks b + 1 … b + k have the mean b + (k + 1) / 2; all have (n + 1) / 2.
        let rank = (2 * below + tied.len()) as f64 - runs.len() as f64;
        tied.iter().for_each(|&index| ranks[index] = rank);
        below += tied.len();
    }
    ranks
}

/// The stretch that differs most from the rest: how much, its beginning and its end. It never spans
/// the whole series.
fn stretch(ranks: &[f64]) -> (f64, usize, usize) {
    let sums = sums(ranks);
    let n = ranks.len();
    let weights: Vec<f64> = (0..=n).map(|length| weight(length, n)).collect();
    let mut most = (0.0, 0, n);
    for begin in 0..n {
        for end in begin + 1..=n {
            let far = (sums[end] - sums[begin]).powi(2) * weights[end - begin];
            if far > most.0 {
                most = (far, begin, end);
            }
        }
    }
    most
}

/// The clearest step: how clear, and the first run after it.
fn step(ranks: &[f64]) -> (f64, usize) {
    let n = ranks.len();
    let clear = |at: usize, sum: f64| (sum.powi(2) * weight(at, n), at);
    let mut most = (0.0, 1.min(n));
    for (at, sum) in sums(ranks).into_iter().enumerate().skip(1) {
        if at < n && clear(at, sum).0 > most.0 {
            most = clear(at, sum);
        }
    }
    most
}

/// Sums of the first 0, 1, 2, … ranks.
fn sums(ranks: &[f64]) -> Vec<f64> {
    let mut sum = 0.0;
    let following = ranks.iter().map(|rank| {
        sum += rank;
        sum
    });
    std::iter::once(0.0)
        .chain(following.collect::<Vec<_>>())
        .collect()
}

/// The inverse of a sum's variance in random orders, up to a common factor. The empty sum and the
/// full one have no variance.
fn weight(length: usize, n: usize) -> f64 {
    match length {
        0 => 0.0,
        length if length >= n => 0.0,
        length => 1.0 / (length * (n - length)) as f64,
    }
}
