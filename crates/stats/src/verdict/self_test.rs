//! A against A: how often the tests raise a false alarm on this machine.

use std::fmt;
use std::iter;

use super::{ALPHA, attained_level, mann_whitney, welch};

/// The size of a self-test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Comparisons of A with itself.
    pub comparisons: usize,
    /// Runs of each side of a comparison, at least 2 (4 for the rank test to be able to alarm).
    pub runs: usize,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            comparisons: 40,
            runs: 5,
        }
    }
}

/// How often something happened, with a 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// How often it happened.
    pub times: usize,
    /// How often it could have happened.
    pub of: usize,
    /// Lower end of Wilson's interval of the share.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Rate {
    fn new(times: usize, of: usize) -> Self {
        let (low, high) = wilson(times, of);
        Self {
            times,
            of,
            low,
            high,
        }
    }

    /// The observed share; 0 without observations.
    pub fn share(&self) -> f64 {
        self.times as f64 / self.of.max(1) as f64
    }

    /// Returns true if the observation is compatible with a true share of at most `share`.
    pub fn allows(&self, share: f64) -> bool {
        self.low <= share
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [share, low, high] = [self.share(), self.low, self.high].map(|share| 100.0 * share);
        write!(
            out,
            "{share:.1} % [{low:.1}, {high:.1}] ({} of {})",
            self.times, self.of
        )
    }
}

/// The result of comparing A with A. Every alarm is false. Displayed as a few lines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SelfTest {
    /// Runs of each side of a comparison.
    pub runs: usize,
    /// Alarms of the rank test on interleaved runs, which decides the verdict.
    pub rank: Rate,
    /// Alarms of Welch's t on the same.
    pub welch: Rate,
    /// Alarms of the rank test on the same runs, had all of A preceded all of B. A rate above the
    /// interleaved one means that the machine drifts.
    pub blocks: Rate,
    /// The rate of the exact rank test on a perfect machine; below 5 % because ranks come in steps.
    pub expected: f64,
}

impl SelfTest {
    /// Returns true if interleaved comparisons can be trusted here: the observed false alarms are
    /// compatible with 5 %.
    pub fn sound(&self) -> bool {
        self.rank.allows(ALPHA)
    }
}

impl fmt::Display for SelfTest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let expected = 100.0 * self.expected;
        writeln!(
            out,
            "A against A, {} comparisons of {} + {} runs; false alarms at a nominal 5 %:",
            self.rank.of, self.runs, self.runs
        )?;
        writeln!(
            out,
            "  interleaved, rank test   {}, {expected:.1} % expected",
            self.rank
        )?;
        writeln!(
            out,
            "  interleaved, Welch's t   {}, 5.0 % expected",
            self.welch
        )?;
        writeln!(
            out,
            "  in two blocks, rank test {}, {expected:.1} % expected",
            self.blocks
        )?;
        let judgement = if self.sound() {
            "compatible with 5 %"
        } else {
            "above 5 %: do not trust verdicts taken here"
        };
        write!(out, "  this machine is {judgement}")
    }
}

/// Carries out the plan; `run` makes one run and returns its mean: 2 · comparisons · runs calls.
pub fn self_test(plan: Plan, run: impl FnMut() -> f64) -> SelfTest {
    self_test_of(plan, iter::repeat_with(run))
}

/// Evaluates a self-test from runs already taken in order. If they end early (or the caller ended
/// them because a target failed), the complete comparisons count.
pub fn self_test_of(plan: Plan, runs: impl IntoIterator<Item = f64>) -> SelfTest {
    let size = plan.runs.max(2);
    let mut runs = runs.into_iter();
    let (mut of, mut by_rank, mut by_welch, mut by_blocks) = (0, 0, 0, 0);
    for _ in 0..plan.comparisons {
        let window: Vec<f64> = runs.by_ref().take(2 * size).collect();
        if window.len() < 2 * size {
            break;
        }
        let every_other = |from: usize| {
            window[from..]
                .iter()
                .step_by(2)
                .copied()
                .collect::<Vec<_>>()
        };
        let (a, b) = (every_other(0), every_other(1));
        let alarm = |p: f64| usize::from(p <= ALPHA);
        of += 1;
        by_rank += alarm(mann_whitney(&a, &b).p);
        by_welch += alarm(welch(&a, &b).p);
        by_blocks += alarm(mann_whitney(&window[..size], &window[size..]).p);
    }
    let [rank, welch, blocks] = [by_rank, by_welch, by_blocks].map(|times| Rate::new(times, of));
    SelfTest {
        runs: size,
        rank,
        welch,
        blocks,
        expected: attained_level(size, size, ALPHA),
    }
}

/// Wilson's 95 % interval of a share seen `times` times in `of`; everything from 0 to 1 if `of` is
/// 0.
pub fn wilson(times: usize, of: usize) -> (f64, f64) {
    const Z: f64 = 1.959_963_984_540_054;
    if of == 0 {
        return (0.0, 1.0);
    }
    let (n, share) = (of as f64, times as f64 / of as f64);
    let below = 1.0 + Z * Z / n;
    let centre = (share + Z * Z / (2.0 * n)) / below;
    let reach = Z / below * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    ((centre - reach).max(0.0), (centre + reach).min(1.0))
}

#[cfg(test)]
mod tests {
    use oorandom::Rand64;

    use super::*;

    fn noise(seed: u128) -> impl FnMut() -> f64 {
        let mut random = Rand64::new(seed);
        move || 1e6 + 1e4 * (0..12).map(|_| random.rand_float()).sum::<f64>()
    }

    #[test]
    fn published_wilson_intervals() {
        // Newcombe 1998, table I, method 3: 81/263, 15/148, 0/20, 1/29.
        for (times, of, low, high) in [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ] {
            let found = wilson(times, of);
            assert!(
                (found.0 - low).abs() < 5e-5 && (found.1 - high).abs() < 5e-5,
                "{times}/{of}: {found:?}"
            );
        }
        assert_eq!(wilson(0, 0), (0.0, 1.0));
    }

    #[test]
    fn a_quiet_machine_keeps_the_nominal_rate() {
        let test = self_test(
            Plan {
                comparisons: 1000,
                runs: 5,
            },
            noise(1),
        );
        assert!(test.sound(), "{test}");
        assert!(
            test.rank.low < test.expected && test.expected < test.rank.high,
            "{test}"
        );
        assert!(
            test.welch.share() < 0.07 && test.welch.share() > 0.02,
            "{test}"
        );
        assert!((test.expected - 8.0 / 252.0).abs() < 1e-12);
    }

    #[test]
    fn a_drifting_machine_alarms_in_blocks_and_not_interleaved() {
        let (mut noise, mut run) = (noise(2), 0.0);
        let test = self_test(
            Plan {
                comparisons: 300,
                runs: 5,
            },
            || {
                run += 1.0;
                noise() * (1.0 + 0.004 * run)
            },
        );
        assert!(test.sound(), "{test}");
        assert!(!test.blocks.allows(ALPHA), "{test}");
    }

    #[test]
    fn a_machine_that_favours_every_other_run_is_found_unsound() {
        let (mut noise, mut run) = (noise(3), 0);
        let test = self_test(Plan::default(), || {
            run += 1;
            noise() * if run % 2 == 0 { 1.05 } else { 1.0 }
        });
        assert!(!test.sound(), "{test}");
        assert!(
            test.to_string()
                .ends_with("do not trust verdicts taken here"),
            "{test}"
        );
    }

    #[test]
    fn runs_that_end_early_count_as_far_as_they_go() {
        let test = self_test_of(
            Plan {
                comparisons: 40,
                runs: 5,
            },
            iter::repeat_with(noise(4)).take(37),
        );
        assert_eq!(test.rank.of, 3);
        let none = self_test_of(Plan::default(), []);
        assert_eq!(
            (none.rank.of, none.rank.share(), none.rank.high),
            (0, 0.0, 1.0)
        );
    }
}
