//! The dot plot: every point a mark in its column, and under it mean, median and deviation.

use super::{Dataset, SYMBOLS};

/// How the plot is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plot {
    /// Columns between the borders, at least 2.
    pub width: usize,
    /// A row of its own for each sample's deviation, so that they cannot hide each other.
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
    /// Points in the same column are stacked. Where points of several samples meet, the mark is that of the sum (bitwise or)
    /// of their numbers: `x` (1) and `+` (2) give `*` (3). In the lower rows `|___A___|` spans the mean and one
    /// deviation to each side, `M` is the median, and `A` covers an `M` in the same column. All as ministat does, but for one
    /// fault of it: it cuts the plot to the last sample's highest stack, which hides points of the others; here none is hidden.
    pub fn draw(&self, sets: &[Dataset]) -> String {
        let axis = Axis::over(sets, self.width.max(2));
        if axis.step == 0.0 {
            return "[no plot, span is zero width]\n".into();
        }
        let rule = format!("+{}+\n", "-".repeat(axis.width));
        let mut text = rule.clone();
        for row in marks(sets, &axis)
            .iter()
            .rev()
            .chain(&spreads(sets, &axis, self.separate))
        {
            text.extend(["|", &row.iter().collect::<String>(), "|\n"]);
        }
        text + &rule
    }
}

/// Values to columns; the smallest value is centred in the first column, the largest in the last.
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
        // Nothing to show, or nothing that a double can span: the step is 0 and no plot is drawn.
        let step = if (high - low).is_finite() {
            (high - low) / (width as f64 - 1.0)
        } else {
            0.0
        };
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

/// The rows of points, the lowest first.
fn marks(sets: &[Dataset], axis: &Axis) -> Vec<Vec<char>> {
    let mut rows: Vec<Vec<usize>> = Vec::new();
    for (index, set) in sets.iter().enumerate() {
        let mut stacked = vec![0; axis.width];
        for column in set.points().iter().map(|&value| axis.column(value)) {
            let height = stacked[column];
            if rows.len() == height {
                rows.push(vec![0; axis.width]);
            }
            rows[height][column] |= index + 1;
            stacked[column] += 1;
        }
    }
    let symbol = |set: usize| {
        if set == 0 {
            ' '
        } else {
            SYMBOLS[(set - 1).min(SYMBOLS.len() - 1)]
        }
    };
    rows.into_iter()
        .map(|row| row.into_iter().map(symbol).collect())
        .collect()
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
    fn equal_points_have_no_plot() {
        let set = Dataset::new("", vec![5.0; 3]).unwrap();
        assert_eq!(
            Plot::default().draw(&[set]),
            "[no plot, span is zero width]\n"
        );
    }
}
