//! The points of a campaign.
//!
//! ```toml
//! [[part]]
//! command = "run"
//! args = ["mmap1", "page_fault1"]   # the arguments in front of the options
//! vm = ["freebsd-di", "scalevm"]
//! machine = "freebsd-96"
//! tasks = [1, 48, 96]
//! seed = [1, 2, 3]
//! ```
//! Each key of a part is an option of its command, and each array an axis. A part's points are all
//! combinations, the last axis changing first: above `run mmap1 --vm=freebsd-di
//! --machine=freebsd-96 --tasks=1 --seed=1 --json`, then `--seed=2`, and so on to 36 points. An
//! array in an array is one value, its elements with commas between them; `true` is an option
//! without a value, `false` leaves it out.

use crate::Error;
use fnv::FnvHasher;
use std::fs;
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The points of a campaign, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Its file, absolute.
    pub path: PathBuf,
    /// Each of them differs from all others.
    pub points: Vec<Point>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// Its place in the plan, from 0.
    pub number: usize,
    /// The arguments of the command.
    pub argv: Vec<String>,
}

/// The most points of a plan: more are surely a mistake in an axis.
const MOST: usize = 1_000_000;

impl Plan {
    /// Reads a plan's file.
    ///
    /// # Errors
    /// The file cannot be read, or says something that makes no sense; the text names the place.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let path = path.canonicalize().map_err(Error::file(path))?;
        let text = fs::read_to_string(&path).map_err(Error::file(&path))?;
        let points = points(&text).map_err(|why| Error::Plan {
            path: path.clone(),
            why,
        })?;
        Ok(Plan { path, points })
    }

    /// The directory that paths in the plan are relative to.
    pub fn directory(&self) -> &Path {
        self.path.parent().expect("a file is in a directory")
    }
}

impl Point {
    /// A name made of what is run and of the build of the command: no result of another plan or
    /// build has the same.
    pub fn id(&self, build: &str) -> String {
        let mut hasher = FnvHasher::default();
        for word in self.argv.iter().map(String::as_str).chain([build]) {
            hasher.write(word.as_bytes());
            // No word contains it, so no two lists of words are the same bytes.
            hasher.write_u8(0);
        }
        format!("{:016x}", hasher.finish())
    }
}

fn points(text: &str) -> Result<Vec<Point>, String> {
    let plan: Table = text
        .parse()
        .map_err(|error: toml::de::Error| one_line(&error, text))?;
    let mut points = Vec::new();
    for (key, value) in &plan {
        let parts = match (key.as_str(), value) {
            ("part", Value::Array(parts)) => parts,
            _ => {
                return Err(format!(
                    "`{key}` is not a list of parts; begin each part with [[part]]"
                ));
            }
        };
        for (number, part) in parts.iter().enumerate() {
            let part = part.as_table().ok_or("begin each part with [[part]]")?;
            expand(part, &mut points).map_err(|why| format!("part {}: {why}", number + 1))?;
        }
    }
    if points.is_empty() {
        return Err("no points: begin each part with [[part]]".into());
    }
    let mut sorted: Vec<&Point> = points.iter().collect();
    sorted.sort_by(|a, b| a.argv.cmp(&b.argv));
    match sorted.windows(2).find(|two| two[0].argv == two[1].argv) {
        Some(two) => Err(format!("`{}` is given twice", two[0].argv.join(" "))),
        None => Ok(points),
    }
}

/// What the parser says, without its drawing of the place.
fn one_line(error: &toml::de::Error, text: &str) -> String {
    let line = error
        .span()
        .map(|span| 1 + text[..span.start].matches('\n').count());
    let message = error.message().replace('\n', ", ");
    line.map_or(message.clone(), |line| format!("line {line}: {message}"))
}

/// Adds a part's points.
fn expand(part: &Table, points: &mut Vec<Point>) -> Result<(), String> {
    let command = part.get("command").and_then(Value::as_str);
    let command = command.ok_or("expected `command`, e.g. command = \"run\"")?;
    let mut lines: Vec<Vec<String>> = vec![command.split_whitespace().map(str::to_owned).collect()];
    // Arguments come first wherever they are written, for a part to read as a command line does.
    let arguments = part.iter().filter(|(key, _)| *key == "args");
    let options = part
        .iter()
        .filter(|(key, _)| !["args", "command"].contains(&key.as_str()));
    for (key, value) in arguments.chain(options) {
        let words = axis(key, value)?;
        if points.len() + lines.len() * words.len() > MOST {
            return Err(format!("more than {MOST} points"));
        }
        lines = lines
            .into_iter()
            .flat_map(|line| {
                words
                    .iter()
                    .map(move |word| line.iter().chain(word).cloned().collect())
            })
            .collect();
    }
    for mut argv in lines {
        argv.push("--json".into());
        let number = points.len();
        points.push(Point { number, argv });
    }
    Ok(())
}

/// The words that each value of a key stands for: one, or none.
fn axis(key: &str, value: &Value) -> Result<Vec<Option<String>>, String> {
    let values = match value {
        Value::Array(values) if values.is_empty() => return Err(format!("`{key}` has no values")),
        Value::Array(values) => values.as_slice(),
        one => std::slice::from_ref(one),
    };
    values.iter().map(|value| word(key, value)).collect()
}

fn word(key: &str, value: &Value) -> Result<Option<String>, String> {
    Ok(match value {
        Value::Boolean(_) if key == "args" => return Err("an argument must be a string".into()),
        Value::Boolean(given) => given.then(|| format!("--{key}")),
        Value::Array(values) => {
            let values: Result<Vec<_>, _> = values.iter().map(|value| scalar(key, value)).collect();
            Some(option(key, &values?.join(",")))
        }
        one => Some(option(key, &scalar(key, one)?)),
    })
}

fn option(key: &str, value: &str) -> String {
    match key {
        "args" => value.to_owned(),
        _ => format!("--{key}={value}"),
    }
}

fn scalar(key: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) if text.contains('\0') => {
            Err(format!("`{key}` contains a null character"))
        }
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        other => Err(format!(
            "`{key}`: a {} cannot be the value of an option",
            other.type_str()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        let points = points(text).expect("a plan");
        points.iter().map(|point| point.argv.join(" ")).collect()
    }

    #[test]
    fn points_are_all_combinations_in_the_order_written() {
        let plan = "[[part]]\ncommand = \"run\"\ntasks = [1, 2]\nseed = [7, 8]\nargs = \"mmap1\"\n\
                    [[part]]\ncommand = \"check races\"\nthreads = [true, false]\ncpus = [[1, 2]]";
        assert_eq!(
            lines(plan),
            [
                "run mmap1 --tasks=1 --seed=7 --json",
                "run mmap1 --tasks=1 --seed=8 --json",
                "run mmap1 --tasks=2 --seed=7 --json",
                "run mmap1 --tasks=2 --seed=8 --json",
                "check races --threads --cpus=1,2 --json",
                "check races --cpus=1,2 --json",
            ]
        );
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let bad = [
            ("", "no points"),
            ("[[part]]", "part 1: expected `command`"),
            ("part = 1", "`part` is not a list of parts"),
            (
                "[[part]]\ncommand = \"run\"\ntasks = []",
                "part 1: `tasks` has no values",
            ),
            (
                "[[part]]\ncommand = \"run\"\ntasks = [1, 1]",
                "`run --tasks=1 --json` is given twice",
            ),
            (
                "[[part]]\ncommand = \"run\"\nwhen = 2026-01-01",
                "part 1: `when`: a datetime",
            ),
            (
                "[[part]]\ncommand = \"run\"\nargs = true",
                "an argument must be a string",
            ),
            ("[[part]]\ncommand = \n", "line 2: "),
            (
                "[[parts]]\ncommand = \"run\"",
                "`parts` is not a list of parts",
            ),
        ];
        for (plan, why) in bad {
            let said = points(plan).expect_err(plan);
            assert!(said.contains(why) && !said.contains('\n'), "{plan}: {said}");
        }
    }

    #[test]
    fn a_slip_of_an_axis_is_refused() {
        let axis: Vec<String> = (0..1001).map(|n| n.to_string()).collect();
        let axis = axis.join(",");
        let plan = format!("[[part]]\ncommand = \"run\"\nseed = [{axis}]\ntasks = [{axis}]");
        assert!(
            points(&plan)
                .expect_err("too many")
                .contains("more than 1000000")
        );
    }

    #[test]
    fn an_id_is_of_words_and_build() {
        let point = |words: &[&str]| Point {
            number: 0,
            argv: words.iter().map(|&word| word.into()).collect(),
        };
        let id = point(&["run", "a"]).id("1");
        assert_eq!(id, point(&["run", "a"]).id("1"));
        assert_ne!(id, point(&["run", "a"]).id("2"));
        assert_ne!(id, point(&["runa"]).id("1"));
        assert_ne!(id, point(&["run", "a", "1"]).id(""));
    }
}
