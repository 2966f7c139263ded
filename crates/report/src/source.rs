//! Files of results, read. Nothing in them is trusted.

use profile::Profile;
use serde::Deserialize;
use stats::environment::Environment;
use stats::record::{self, Record, Run};
use stats::store::EXTENSION;
use stats::{InputError, from_json};
use std::fs;
use std::io;
use std::path::Path;

/// What one file holds, or one store.
#[derive(Debug, Default)]
pub struct Source {
    /// The file or store, as the user named it.
    pub name: String,
    /// Samples and summaries.
    pub records: Vec<Record>,
    /// The runs they make. Those of several files of a store are never taken together.
    pub runs: Vec<Run>,
    /// Where time went.
    pub profiles: Vec<Profile>,
    /// Runs of two sides in turn.
    pub paired: Vec<Paired>,
    /// What held simulated runs up.
    pub findings: Vec<Finding>,
    /// The seeds' figures and ours.
    pub reproductions: Vec<Reproduction>,
    /// What is doubtful about the file itself.
    pub notes: Vec<String>,
}

/// Runs of two sides, taken in turn (a `verdict` line of `compare`).
#[derive(Debug, Deserialize)]
pub struct Paired {
    /// One line on what was run.
    pub about: String,
    /// Unit of the rates.
    pub unit: String,
    /// The base.
    pub a: Side,
    /// What is judged.
    pub b: Side,
    /// Whether the sides took turns.
    pub interleaved: bool,
    /// The smallest difference that matters, as a share.
    pub minimum_effect: f64,
    /// The machine, if known.
    #[serde(default)]
    pub machine: Option<Environment>,
}

/// A side of a comparison.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Side {
    /// What it is called.
    pub name: String,
    /// Rates, one for each run.
    pub runs: Vec<f64>,
}

/// What held a simulated run up (an `attribution` line).
#[derive(Debug, Deserialize)]
pub struct Finding {
    /// The workload.
    pub workload: String,
    /// The preset.
    pub vm: String,
    /// Tasks at work.
    pub tasks: u32,
    /// What they are.
    pub mode: record::Mode,
    /// One sentence.
    pub bottleneck: String,
}

/// A figure of a seed and ours (a `reproduction` line of `reproduce`).
#[derive(Debug, Deserialize)]
pub struct Reproduction {
    /// The seed, by its number: `000`.
    pub document: String,
    /// The system: `S3`.
    pub system: String,
    /// What the figure is of.
    pub what: String,
    /// Of the figures: `1/s`, `share` of a whole, or `1`.
    pub unit: String,
    /// The simulated machine.
    pub machine: String,
    /// Its sockets × cores × threads.
    pub topology: String,
    /// What it is held against: `seed`, `at-least`, `at-most`, `words`.
    pub aim: String,
    /// The figure aimed at, if it is one.
    pub figure: Option<f64>,
    /// Where it stands, or what it is for.
    pub source: String,
    /// Ours: the median over the seeds of the simulation.
    pub median: f64,
    /// Ours over the figure.
    pub ratio: Option<f64>,
    /// How far the ratio may be off.
    pub band: Option<Band>,
    /// Whether it `holds`, or `misses`.
    pub verdict: String,
    /// Whether it does at a corner of what is plausible of the machine.
    pub holds_at_a_corner: bool,
    /// Why it misses.
    pub why: Option<String>,
    /// What else is to be said.
    pub note: Option<String>,
    /// Seconds that it took.
    pub seconds: f64,
}

/// How far a ratio may be off.
#[derive(Debug, Deserialize)]
pub struct Band {
    /// What kind of prediction it is.
    pub kind: String,
    /// The least.
    pub low: f64,
    /// The greatest.
    pub high: f64,
}

#[derive(Deserialize)]
struct Kind {
    kind: String,
}

impl Source {
    /// Reads the file at `path`, or all files of the store there, as they were begun, or
    /// the profile whose folder it is.
    pub fn read(path: &str) -> Result<Self, InputError> {
        let unreadable = |source| InputError::Unreadable {
            file: path.into(),
            source,
        };
        if !Path::new(path).is_dir() {
            return Self::parse(path, &fs::read(path).map_err(unreadable)?);
        }
        let mut all = Source {
            name: path.into(),
            ..Source::default()
        };
        for file in files(path).map_err(unreadable)? {
            // An invocation may have ended before its first sample.
            all.append(Self::lines(&file, &fs::read(&file).map_err(unreadable)?)?);
        }
        all.or_nothing()
    }

    /// Reads lines; `name` is what errors and the page call them. The first damaged line
    /// ends it, but for a last one that was cut short in writing.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self, InputError> {
        Self::lines(name, bytes)?.or_nothing()
    }

    fn lines(name: &str, bytes: &[u8]) -> Result<Self, InputError> {
        let mut sorted = Sorted::default();
        let mut notes = Vec::new();
        for (index, line) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
            let number = index + 1;
            match sorted.add(line) {
                Ok(()) => {}
                Err(_) if !line.ends_with(b"\n") && sorted.kinds > 0 => {
                    notes.push(format!("{name}:{number}: cut short; left out"));
                }
                Err(reason) => {
                    return Err(InputError::Line {
                        file: name.into(),
                        line: number,
                        reason,
                    });
                }
            }
        }
        sorted.finish(name, notes)
    }
}

/// Lines by what reads them. Each text has a line for each of the file, so that errors
/// name the right one.
#[derive(Default)]
struct Sorted {
    records: String,
    profiles: String,
    paired: Vec<Paired>,
    findings: Vec<Finding>,
    reproductions: Vec<Reproduction>,
    kinds: usize,
}

impl Sorted {
    fn add(&mut self, line: &[u8]) -> Result<(), String> {
        let line = std::str::from_utf8(line)
            .map_err(|error| format!("not UTF-8 text (byte {})", error.valid_up_to() + 1))?
            .trim();
        if line.is_empty() {
            self.next("", "");
            return Ok(());
        }
        let kind: Kind = from_json(line)?;
        let (mut record, mut profile) = ("", "");
        match kind.kind.as_str() {
            "sample" | "summary" => record = line,
            "profile" => profile = line,
            // A comparison without runs says only that there were too few.
            "verdict" if line.contains("\"runs\"") => self.paired.push(from_json(line)?),
            "attribution" => self.findings.push(from_json(line)?),
            "reproduction" => self.reproductions.push(from_json(line)?),
            _ => {}
        }
        self.kinds += 1;
        self.next(record, profile);
        Ok(())
    }

    fn next(&mut self, record: &str, profile: &str) {
        self.records.extend([record, "\n"]);
        self.profiles.extend([profile, "\n"]);
    }

    fn finish(self, name: &str, notes: Vec<String>) -> Result<Source, InputError> {
        let records = match self.records.trim().is_empty() {
            true => Vec::new(),
            false => record::parse(name, self.records.as_bytes())?,
        };
        Ok(Source {
            name: name.into(),
            runs: record::runs(&records),
            records,
            profiles: profile::parse(name, self.profiles.as_bytes())?,
            paired: self.paired,
            findings: self.findings,
            reproductions: self.reproductions,
            notes,
        })
    }
}

impl Source {
    fn or_nothing(self) -> Result<Self, InputError> {
        let empty = [
            self.records.is_empty(),
            self.profiles.is_empty(),
            self.paired.is_empty(),
            self.reproductions.is_empty(),
        ];
        match empty.contains(&false) {
            false => Err(InputError::Whole {
                file: self.name,
                reason: "no results, comparisons, profiles or reproduced figures in it".into(),
            }),
            true => Ok(self),
        }
    }

    fn append(&mut self, other: Source) {
        self.records.extend(other.records);
        self.runs.extend(other.runs);
        self.profiles.extend(other.profiles);
        self.paired.extend(other.paired);
        self.findings.extend(other.findings);
        self.reproductions.extend(other.reproductions);
        self.notes.extend(other.notes);
    }

    /// The machines named in the file, in its order.
    pub fn machines(&self) -> impl Iterator<Item = &Environment> {
        let of_records = self.records.iter().filter_map(|record| match record {
            Record::Summary(summary) => summary.machine.as_ref(),
            Record::Sample(_) => None,
        });
        let of_pairs = self.paired.iter().filter_map(|pair| pair.machine.as_ref());
        let of_profiles = self.profiles.iter();
        let of_profiles = of_profiles.filter_map(|profile| profile.machine.as_ref());
        of_records.chain(of_pairs).chain(of_profiles)
    }
}

/// What a profile's folder calls the profile itself.
const PROFILE: &str = "profile.json";

/// The files of the store at `path`, by name: as they were begun; or of a profile.
fn files(path: &str) -> io::Result<Vec<String>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(path)? {
        let file = entry?.path();
        let of_store = file.extension().is_some_and(|end| end == EXTENSION);
        if (of_store || file.ends_with(PROFILE)) && file.is_file() {
            files.push(file.display().to_string());
        }
    }
    files.sort();
    Ok(files)
}
