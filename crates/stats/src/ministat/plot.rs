//! The dot plot: every point as a mark in its column, and below it mean, median and deviation.

use super::{Dataset, SYMBOLS};

/// Rows of marks at most. ministat has no limit, and draws a million equal numbers a million rows
/// high.
const HIGHEST: usize = 100;

/// How the plot is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plot {
    /// Columns between the borders, at least 2.
    pub width: usize,
    /// True if each sample's deviation has a row of its own, so that none hides another.
    pub separate: bool,
}

impl Default for Plot {
    fn default() -> Self {
        Self {
            width: 74,
            separate: false,
        }
    }
}

impl Plot {
    /// Draws the samples over one common axis.
    ///
    /// Points in the same column are stacked. Where points of several samples meet, the mark is
    /// that of the bitwise or of their numbers: `x` (1) and `+` (2) give `*` (3). In the lower rows
    /// `|___A___|` spans the mean and one deviation to each side, `M` is the median, and `A` covers
    /// an `M` in the same column. All of this matches ministat, except for a fault: ministat cuts
    /// the plot at the last sample's highest stack, which hides points of the others; here none is
    /// hidden.
    pub fn draw(&self, sets: &[Dataset]) -> String {
        let axis = Axis::over(sets, self.width.max(2));
        if axis.step == 0.0 {
            return "[no plot, span is zero width]\n".into();
        }
        if !axis.step.is_finite() {
            return "[no plot, span is beyond the largest number]\n".into();
        }
        let rule = format!("+{}+\n", "-".repeat(axis.width));
        let mut text = rule.clone();
        let stacks = Stacks::of(sets, &axis);
        for row in stacks
            .rows()
            .iter()
            .rev()
            .chain(&spreads(sets, &axis, self.separate))
        {
            text.extend(["|", &row.iter().collect::<String>(), "|\n"]);
        }
        text += &rule;
        if stacks.points_a_mark > 1 {
            text += &format!("[each mark: up to {} points]\n", stacks.points_a_mark);
        }
        text
    }
}

/// Maps values to columns; the smallest value is centred in the first column, the largest in the
/// last.
struct Axis {
    start: f64,
    step: f64,
    width: usize,
}

impl Axis {
    fn over(sets: &[Dataset], width: usize) -> Self {
        let shown = |set: &Dataset| {
            let (mean, deviation) = (set.mean(), set.stddev());
            [set.min(), set.max(), mean - deviation, mean + deviation]
        };
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in sets.iter().flat_map(shown) {
            low = low.min(value);
            high = high.max(value);
        }
        let step = (high - low) / (width as f64 - 1.0);
        Self {
            start: low - step / 2.0,
            step,
            width,
        }
    }

    fn column(&self, value: f64) -> usize {
        (((value - self.start) / self.step) as usize).min(self.width - 1)
    }
}

/// The number of points of each set in each column.
struct Stacks {
    heights: Vec<Vec<usize>>,
    /// Points per mark; more than one where a stack would exceed [`HIGHEST`].
    points_a_mark: usize,
}

impl Stacks {
    fn of(sets: &[Dataset], axis: &Axis) -> Self {
        let height = |set: &Dataset| {
            let mut heights = vec![0; axis.width];
            for &value in set.points() {
                heights[axis.column(value)] += 1;
            }
            heights
        };
        let heights: Vec<Vec<usize>> = sets.iter().map(height).collect();
        let highest = heights.iter().flatten().max().copied().unwrap_or(0);
        Stacks {
            points_a_mark: highest.div_ceil(HIGHEST).max(1),
            heights,
        }
    }

    /// The rows of marks, the lowest first.
    fn rows(&self) -> Vec<Vec<char>> {
        let marks = |points: &usize| points.div_ceil(self.points_a_mark);
        let all = self.heights.iter().flatten();
        let rows = all.map(marks).max().unwrap_or(0);
        let mark = |row: usize, column: usize| {
            let there = |stack: &Vec<usize>| marks(&stack[column]) > row;
            let sets = self.heights.iter().enumerate();
            let sum = sets.filter(|(_, stack)| there(stack));
            match sum.fold(0, |sum, (index, _)| sum | (index + 1)) {
                0 => ' ',
                set => SYMBOLS[(set - 1).min(SYMBOLS.len() - 1)],
            }
        };
        let columns = self.heights.first().map_or(0, Vec::len);
        let row = |row| (0..columns).map(|column| mark(row, column)).collect();
        (0..rows).map(row).collect()
    }
}

/// The rows with mean, median and deviation: one, or one for each sample.
fn spreads(sets: &[Dataset], axis: &Axis, separate: bool) -> Vec<Vec<char>> {
    let mut rows = vec![vec![' '; axis.width]; if separate { sets.len() } else { 1 }];
    for (index, set) in sets.iter().enumerate() {
        let row = &mut rows[if separate { index } else { 0 }];
        let (mean, deviation) = (set.mean(), set.stddev());
        let (left, right) = (axis.column(mean - deviation), axis.column(mean + deviation));
        (row[left], row[right]) = ('|', '|');
        for cell in row
            .iter_mut()
            .take(right)
            .skip(left + 1)
            .filter(|cell| **cell == ' ')
        {
            *cell = '_';
        }
        row[axis.column(set.median())] = 'M';
        row[axis.column(mean)] = 'A';
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_stack_and_the_higher_stack_stays() {
        let set = |points: [f64; 4]| Dataset::new("", points.to_vec()).unwrap();
        let plot = Plot {
            width: 10,
            separate: true,
        };
        let drawn = plot.draw(&[set([1.0, 1.0, 1.0, 10.0]), set([2.0, 3.0, 4.0, 10.0])]);
        let rows: Vec<_> = drawn.lines().collect();
        assert_eq!(
            rows.len(),
            7,
            "three rows of points, two of deviations, two rules:\n{drawn}"
        );
        assert_eq!(
            rows.iter().filter(|row| row.contains('x')).count(),
            3,
            "{drawn}"
        );
        assert!(rows[3].contains('*'), "the common 10 is a *:\n{drawn}");
    }

    #[test]
    fn a_mark_stands_for_many_points_where_the_stack_would_be_too_high() {
        let many = |count: usize, value| std::iter::repeat_n(value, count);
        let points: Vec<f64> = many(1_000_000, 1.0).chain(many(15_000, 2.0)).collect();
        let drawn = Plot {
            width: 10,
            separate: false,
        }
        .draw(&[Dataset::new("", points).unwrap()]);
        let rows: Vec<_> = drawn.lines().collect();
        assert_eq!(rows.len(), HIGHEST + 4, "{drawn}");
        assert_eq!(rows[HIGHEST + 3], "[each mark: up to 10000 points]");
        assert_eq!(drawn.matches('x').count(), HIGHEST + 2, "{drawn}");
    }

    #[test]
    fn a_span_beyond_the_numbers_has_no_plot() {
        let set = Dataset::new("", vec![-f64::MAX, 0.0, f64::MAX]).unwrap();
        let drawn = Plot::default().draw(&[set]);
        assert_eq!(drawn, "[no plot, span is beyond the largest number]\n");
    }

    #[test]
    fn equal_points_have_no_plot() {
        let set = Dataset::new("", vec![5.0; 3]).unwrap();
        assert_eq!(
            Plot::default().draw(&[set]),
            "[no plot, span is zero width]\n"
        );
    }
}
