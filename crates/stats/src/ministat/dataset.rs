//! A named sample, read from one column of a text file.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use super::moments::{mean, median, stddev, variance};
use crate::InputError;
use crate::input::for_each_line;

/// Fewest points of a sample: with fewer, a deviation means nothing (ministat has the same limit).
pub const FEWEST: usize = 3;

/// Which column of each line is the number.
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
    times: bool,
}

impl Dataset {
    /// A sample of the given numbers.
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
        points.sort_unstable_by(f64::total_cmp);
        Ok(Self {
            name: name.into(),
            points,
            times: false,
        })
    }

    /// Reads the file at `path`; `-` is standard input.
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

    /// Reads numbers, one per line. As in ministat, a column that starts with `#` ends the line,
    /// and lines without the requested column are skipped; a column that is present but not a
    /// finite number is an error. A number with a unit of time (`1.5ms`, or `0m1.5s` as the shell's
    /// `time` prints it) is in seconds; either all numbers have a unit or none.
    pub fn parse(name: &str, reader: impl BufRead, column: &Column) -> Result<Self, InputError> {
        let mut points = Vec::new();
        let mut times = None;
        for_each_line(name, reader, |line| {
            let mut columns = line
                .split(|c| column.delimiters.contains(c))
                .filter(|text| !text.is_empty());
            let wanted = columns
                .by_ref()
                .take_while(|text| !text.starts_with('#'))
                .nth(column.number.saturating_sub(1));
            if let Some(text) = wanted {
                let time = seconds(text);
                let is_time = time.is_some();
                if *times.get_or_insert(is_time) != is_time {
                    return Err(format!(
                        "`{text}`: some numbers have a unit of time and some have none"
                    ));
                }
                let value = match time {
                    Some(seconds) => seconds,
                    None => text
                        .parse()
                        .map_err(|_| format!("`{text}` is not a number"))?,
                };
                if !value.is_finite() {
                    return Err(format!("`{text}` is not a finite number"));
                }
                points.push(value);
            }
            Ok(())
        })?;
        Ok(Self {
            times: times.unwrap_or(false),
            ..Self::new(name, points)?
        })
    }

    /// Returns true if the numbers are times, in seconds.
    pub fn are_times(&self) -> bool {
        self.times
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
        stddev(&self.points)
    }
}

/// The seconds of a number with a unit of time; none without a unit.
fn seconds(text: &str) -> Option<f64> {
    const UNITS: [(&str, f64); 8] = [
        ("ns", 1e-9),
        ("us", 1e-6),
        ("µs", 1e-6),
        ("ms", 1e-3),
        ("sec", 1.0),
        ("s", 1.0),
        ("min", 60.0),
        ("h", 3600.0),
    ];
    if let Some((minutes, rest)) = text.strip_suffix('s').and_then(|text| text.split_once('m')) {
        let minutes: Option<u32> = minutes.parse().ok();
        if let Some((minutes, seconds)) = minutes.zip(rest.parse::<f64>().ok()) {
            return Some(60.0 * f64::from(minutes) + seconds);
        }
    }
    let unit = |(unit, seconds): &(&str, f64)| {
        let number: f64 = text.strip_suffix(unit)?.parse().ok()?;
        Some(number * seconds)
    };
    UNITS.iter().find_map(unit)
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
    fn times_are_in_seconds() {
        let set = |text: &str| Dataset::parse("f", text.as_bytes(), &Column::default());
        let times = set("1.5ms\n20us\n3µs\n4ns\n2s\n1min\n0m1.250s\n1h\n").unwrap();
        let wanted = [4e-9, 3e-6, 2e-5, 1.5e-3, 1.25, 2.0, 60.0, 3600.0];
        for (found, wanted) in times.points().iter().zip(wanted) {
            assert!((found / wanted - 1.0).abs() < 1e-12, "{found} {wanted}");
        }
        assert!(times.are_times() && !set("1\n2\n3\n").unwrap().are_times());
        let mixed = set("1s\n2\n3s\n").unwrap_err().to_string();
        assert!(mixed.starts_with("f:2: `2`: some numbers"), "{mixed}");
        let bad = set("1s\n2 s\n3parsecs\n").unwrap_err().to_string();
        assert!(bad.starts_with("f:2: `2`: some"), "{bad}");
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
}
