//! A named sample, read from one column of a text file.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use crate::InputError;
use crate::input::for_each_line;

/// Fewest points of a sample: with fewer, a deviation means nothing (ministat's limit too).
pub const FEWEST: usize = 3;

/// Which part of each line is the number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The column, counted from 1.
    pub number: usize,
    /// Characters that separate columns; a run of them counts once.
    pub delimiters: String,
}

impl Default for Column {
    fn default() -> Self {
        Self {
            number: 1,
            delimiters: " \t".into(),
        }
    }
}

/// A sample of at least [`FEWEST`] finite numbers, sorted.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    name: String,
    points: Vec<f64>,
}

impl Dataset {
    /// A sample from numbers at hand.
    pub fn new(name: &str, mut points: Vec<f64>) -> Result<Self, InputError> {
        let whole = |reason| InputError::Whole {
            file: name.into(),
            reason,
        };
        if points.len() < FEWEST {
            return Err(whole(format!(
                "{} data points, at least {FEWEST} are needed",
                points.len()
            )));
        }
        if let Some(value) = points.iter().find(|value| !value.is_finite()) {
            return Err(whole(format!("{value} is not a finite number")));
        }
        points.sort_by(f64::total_cmp);
        Ok(Self {
            name: name.into(),
            points,
        })
    }

    /// Reads the file at `path`, `-` being standard input.
    pub fn read(path: &str, column: &Column) -> Result<Self, InputError> {
        let (name, reader): (_, Box<dyn Read>) = match path {
            "-" => ("<stdin>", Box::new(std::io::stdin())),
            _ => match File::open(path) {
                Ok(file) => (path, Box::new(file)),
                Err(source) => {
                    return Err(InputError::Unreadable {
                        file: path.into(),
                        source,
                    });
                }
            },
        };
        Self::parse(name, BufReader::new(reader), column)
    }

    /// Reads numbers, one a line. As in ministat a column that starts with `#` ends the line, and a line without the wanted
    /// column counts for nothing; a column that is there but no finite number is an error.
    pub fn parse(name: &str, reader: impl BufRead, column: &Column) -> Result<Self, InputError> {
        let mut points = Vec::new();
        for_each_line(name, reader, |line| {
            let mut columns = line
                .split(|c| column.delimiters.contains(c))
                .filter(|text| !text.is_empty());
            let wanted = columns
                .by_ref()
                .take_while(|text| !text.starts_with('#'))
                .nth(column.number.saturating_sub(1));
            if let Some(text) = wanted {
                let value: f64 = text
                    .parse()
                    .map_err(|_| format!("`{text}` is not a number"))?;
                if !value.is_finite() {
                    return Err(format!("`{text}` is not a finite number"));
                }
                points.push(value);
            }
            Ok(())
        })?;
        Self::new(name, points)
    }

    /// The sample's name: its file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The numbers, ascending.
    pub fn points(&self) -> &[f64] {
        &self.points
    }

    /// The smallest number.
    pub fn min(&self) -> f64 {
        self.points[0]
    }

    /// The largest number.
    pub fn max(&self) -> f64 {
        self.points[self.points.len() - 1]
    }

    /// The middle number, or the mean of the middle two.
    pub fn median(&self) -> f64 {
        median(&self.points)
    }

    /// The arithmetic mean.
    pub fn mean(&self) -> f64 {
        mean(&self.points)
    }

    /// The unbiased variance.
    pub fn variance(&self) -> f64 {
        variance(&self.points)
    }

    /// The square root of the unbiased variance.
    pub fn stddev(&self) -> f64 {
        self.variance().sqrt()
    }
}

/// The middle of `sorted`, or the mean of the middle two.
pub(crate) fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) {
        sorted[middle - 1] / 2.0 + sorted[middle] / 2.0
    } else {
        sorted[middle]
    }
}

/// The arithmetic mean; NaN of nothing.
pub fn mean(points: &[f64]) -> f64 {
    points.iter().sum::<f64>() / points.len() as f64
}

/// The unbiased variance, from deviations and not from the difference of two large sums: throughputs in the millions leave
/// that difference few digits.
pub fn variance(points: &[f64]) -> f64 {
    let mean = mean(points);
    points
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f64>()
        / (points.len() as f64 - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, column: &Column) -> Result<Vec<f64>, String> {
        Dataset::parse("f.txt", text.as_bytes(), column)
            .map(|set| set.points)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn comments_blank_lines_and_short_lines_are_skipped() {
        let text = "# header\n\n 3 # three\n\t1e0\t9\n2\r\n   # 7\n";
        assert_eq!(parse(text, &Column::default()).unwrap(), [1.0, 2.0, 3.0]);
    }

    #[test]
    fn columns_and_delimiters() {
        let column = Column {
            number: 2,
            delimiters: ",".into(),
        };
        assert_eq!(
            parse("a,3,x\nb,,1\nc,2\nshort\n#,5\n1,#2\n", &column).unwrap(),
            [1.0, 2.0, 3.0]
        );
    }

    #[test]
    fn bad_input_is_named() {
        let bad = |text| parse(text, &Column::default()).unwrap_err();
        assert_eq!(bad("1\n2\nx3\n"), "f.txt:3: `x3` is not a number");
        assert_eq!(
            bad("1\nnan\n3\n4\n"),
            "f.txt:2: `nan` is not a finite number"
        );
        assert_eq!(
            bad("1\n1e999\n3\n4\n"),
            "f.txt:2: `1e999` is not a finite number"
        );
        assert_eq!(bad("1\n2\n"), "f.txt: 2 data points, at least 3 are needed");
        let missing = Dataset::read("no/such/file", &Column::default())
            .unwrap_err()
            .to_string();
        assert!(
            missing.starts_with("no/such/file: No such file"),
            "{missing}"
        );
    }

    #[test]
    fn variance_keeps_its_digits_far_from_zero() {
        let set = Dataset::new(
            "far",
            vec![1e12 + 4.0, 1e12 + 7.0, 1e12 + 13.0, 1e12 + 16.0],
        )
        .unwrap();
        assert_eq!(
            (set.mean(), set.variance(), set.median()),
            (1e12 + 10.0, 30.0, 1e12 + 10.0)
        );
    }
}
