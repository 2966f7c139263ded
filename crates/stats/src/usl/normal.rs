//! Least squares in three unknowns.

/// Normal equations of a least-squares problem in three parameters.
#[derive(Default)]
pub(super) struct Normal {
    matrix: [[f64; 3]; 3],
    right: [f64; 3],
}

impl Normal {
    /// Adds a row of the design matrix with its value; fixed parameters are left out.
    pub(super) fn add(&mut self, row: [f64; 3], value: f64, free: [bool; 3]) {
        for i in (0..3).filter(|&i| free[i]) {
            self.right[i] += row[i] * value;
            for j in (0..3).filter(|&j| free[j]) {
                self.matrix[i][j] += row[i] * row[j];
            }
        }
    }

    /// Solves with the diagonal raised by `damping`. The equations are scaled to a unit diagonal
    /// first: λ is in the millions, κ in the millionths.
    pub(super) fn solve(&self, damping: f64, free: [bool; 3]) -> Option<[f64; 3]> {
        let scale: [f64; 3] = std::array::from_fn(|i| {
            if free[i] {
                self.matrix[i][i].sqrt()
            } else {
                1.0
            }
        });
        if scale
            .iter()
            .any(|value| !value.is_finite() || *value == 0.0)
        {
            return None;
        }
        let mut rows: [[f64; 4]; 3] = std::array::from_fn(|i| {
            let mut row = [0.0; 4];
            for j in 0..3 {
                row[j] = self.matrix[i][j] / (scale[i] * scale[j]);
            }
            row[i] = 1.0 + damping;
            row[3] = self.right[i] / scale[i];
            row
        });
        for column in 0..3 {
            let pivot = (column..3)
                .max_by(|&a, &b| rows[a][column].abs().total_cmp(&rows[b][column].abs()))?;
            rows.swap(column, pivot);
            if rows[column][column].abs() < 1e-14 {
                return None;
            }
            let top = rows[column];
            for row in &mut rows[column + 1..] {
                let factor = row[column] / top[column];
                row.iter_mut()
                    .zip(top)
                    .for_each(|(cell, above)| *cell -= factor * above);
            }
        }
        let mut found = [0.0; 3];
        for i in (0..3).rev() {
            let known: f64 = (i + 1..3).map(|j| rows[i][j] * found[j]).sum();
            found[i] = (rows[i][3] - known) / rows[i][i];
        }
        Some(std::array::from_fn(|i| found[i] / scale[i]))
    }
}
