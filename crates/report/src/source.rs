//! Reading files of results. Their content is not trusted.

use profile::Profile;
use serde::Deserialize;
use stats::environment::Environment;
use stats::record::{self, Record, Run};
use stats::store::EXTENSION;
use stats::verdict::Better;
use stats::{InputError, from_json};
use std::fs;
use std::io;
use std::path::Path;

/// The content of one file or store.
#[derive(Debug, Default)]
pub struct Source {
    /// The file or store, as the user named it.
    pub name: String,
    /// Samples and summaries.
    pub records: Vec<Record>,
    /// The runs they form. Runs never mix files of a store.
    pub runs: Vec<Run>,
    /// Profiles: where time went.
    pub profiles: Vec<Profile>,
    /// Comparisons whose sides took turns.
    pub paired: Vec<Paired>,
    /// Bottlenecks of simulated runs.
    pub findings: Vec<Finding>,
    /// Published figures with their reproductions.
    pub reproductions: Vec<Reproduction>,
    /// Doubts about the file itself.
    pub notes: Vec<String>,
}

/// Runs of two sides that took turns (a `verdict` line of `compare`).
#[derive(Debug, Deserialize)]
pub struct Paired {
    /// One line on the runs.
    pub about: String,
    /// Unit of the numbers.
    pub unit: String,
    /// Which direction is better; older lines lack it and hold rates.
    #[serde(default)]
    pub better: Better,
    /// The base.
    pub a: Side,
    /// The side that is judged.
    pub b: Side,
    /// True if the sides took turns.
    pub interleaved: bool,
    /// True if the runs are simulated; older lines lack it.
    #[serde(default)]
    pub simulated: bool,
    /// The smallest difference that matters, as a share.
    pub minimum_effect: f64,
    /// The machine, if known.
    #[serde(default)]
    pub machine: Option<Environment>,
}

/// A side of a comparison.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Side {
    pub name: String,
    /// Rates, one for each run.
    pub runs: Vec<f64>,
}

/// The bottleneck of a simulated run (an `attribution` line).
#[derive(Debug, Deserialize)]
pub struct Finding {
    pub workload: String,
    /// The preset.
    pub vm: String,
    /// Tasks at work.
    pub tasks: u32,
    /// The tasks' kind.
    pub mode: record::Mode,
    /// One sentence.
    pub bottleneck: String,
}

/// A published figure and its reproduction (a `reproduction` line of `reproduce`).
#[derive(Debug, Deserialize)]
pub struct Reproduction {
    /// The case study, by its number: `000`.
    pub document: String,
    /// The system: `S3`.
    pub system: String,
    /// The figure's subject.
    pub what: String,
    /// The unit of the figures: `1/s`, `share` of a whole, or `1`.
    pub unit: String,
    /// The simulated machine.
    pub machine: String,
    /// Its sockets × cores × threads.
    pub topology: String,
    /// The condition on the reproduced figure: `seed` (the published figure), `at-least`,
    /// `at-most`, `words`.
    pub aim: String,
    /// The meaning of a success: `published`, `words`, `aim`; or `check`, of the instrument. Older
    /// files lack it.
    #[serde(default)]
    pub class: String,
    /// The figure to meet, if there is one.
    pub figure: Option<f64>,
    /// Where it is published, or its purpose.
    pub source: String,
    /// The reproduced figure: the median over the simulation's seeds.
    pub median: f64,
    /// The reproduced figure over the published one.
    pub ratio: Option<f64>,
    /// The expected error of the ratio.
    pub band: Option<Band>,
    /// `holds` or `misses`.
    pub verdict: String,
    /// True if it holds at one of the extremes of the plausible values of the machine's
    /// unpublished properties.
    pub holds_at_a_corner: bool,
    /// Why it misses.
    pub why: Option<String>,
    /// Further remarks.
    pub note: Option<String>,
}

/// The expected error of a ratio.
#[derive(Debug, Deserialize)]
pub struct Band {
    /// The kind of prediction.
    pub kind: String,
    /// The least.
    pub low: f64,
    /// The greatest.
    pub high: f64,
}

/// What is wrong with an empty source.
const NOTHING: &str = "contains no results, comparisons, profiles or reproduced figures";

#[derive(Deserialize)]
struct Kind {
    kind: String,
}

impl Source {
    /// Reads the files at `paths`. One without anything to report is an error if all are, and else
    /// has a note.
    pub fn read_all(paths: &[String]) -> Result<Vec<Self>, InputError> {
        let sources: Result<Vec<Source>, _> = paths.iter().map(|path| Self::open(path)).collect();
        let mut sources = sources?;
        if sources.iter().all(Source::is_empty) {
            let first = sources.into_iter().next();
            return first.map_or(Ok(Vec::new()), |first| Ok(vec![first.or_nothing()?]));
        }
        for source in sources.iter_mut().filter(|source| source.is_empty()) {
            source
                .notes
                .push(format!("{}: {NOTHING}; left out", source.name));
        }
        Ok(sources)
    }

    /// Reads the file at `path`, which may be a recording of the program perf, all files of a store
    /// in the order of their creation, or the profile in a profile's folder.
    pub fn read(path: &str) -> Result<Self, InputError> {
        Self::open(path)?.or_nothing()
    }

    fn open(path: &str) -> Result<Self, InputError> {
        let unreadable = |source| InputError::Unreadable {
            file: path.into(),
            source,
        };
        if !Path::new(path).is_dir() {
            let bytes = fs::read(path).map_err(unreadable)?;
            return match perf::script::parse(path, &bytes)? {
                Some(profile) => Ok(Self::recorded(path, profile)),
                None => Self::lines(path, &bytes),
            };
        }
        let mut all = Source {
            name: path.into(),
            ..Source::default()
        };
        for file in files(path).map_err(unreadable)? {
            // An invocation may have ended before its first sample.
            all.append(Self::lines(&file, &fs::read(&file).map_err(unreadable)?)?);
        }
        Ok(all)
    }

    fn recorded(name: &str, profile: Profile) -> Self {
        Source {
            name: name.into(),
            profiles: vec![profile],
            ..Source::default()
        }
    }

    /// Parses lines; errors and the page name the file `name`. The first damaged line is an error,
    /// except for a last line that was cut short.
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

/// Lines sorted by their parser. Each text keeps one line per line of the file, so that errors name
/// the right one.
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
            // A comparison without runs only reports that there were too few.
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
        let records = if self.records.trim().is_empty() {
            Vec::new()
        } else {
            record::parse(name, self.records.as_bytes())?
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
    fn is_empty(&self) -> bool {
        self.records.is_empty()
            && self.profiles.is_empty()
            && self.paired.is_empty()
            && self.reproductions.is_empty()
    }

    fn or_nothing(self) -> Result<Self, InputError> {
        match self.is_empty() {
            false => Ok(self),
            true => Err(InputError::Whole {
                file: self.name,
                reason: NOTHING.into(),
            }),
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

    /// The machines described in the file, in its order.
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

/// The name of a profile's file in its folder.
const PROFILE: &str = "profile.json";

/// The files of the store at `path`, in the order of their creation; or the profile of a folder.
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
