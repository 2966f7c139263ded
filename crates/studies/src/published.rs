//! Published rates by number of tasks, with their sources, for comparison with predictions.
//!
//! `published/` has a file for each source; its README says what is in it. [`all`] reads those that
//! are compiled in.

mod check;
mod table;

pub use table::table;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use stats::record::Mode;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// The files of `published/`, compiled in. A test holds the list to the folder.
macro_rules! files {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../published/", $name, ".toml")))),*]
    };
}

const FILES: &[(&str, &str)] = files![
    "baghdasaryan-vma-refcount"
    "garg-vma-refcount"
    "gorman-maple"
    "gorman-pcp"
    "guzik-apparmor"
    "howlett-maple"
    "kogan-cna"
    "macy-ebr"
    "macy-munmap"
    "macy-scaling"
    "riel-invlpgb"
    "robot-brk1-hint"
    "robot-brk1-sheaves"
    "robot-brk1-typesafe"
    "robot-fault1-thp"
    "robot-fault2-folios"
    "robot-fault2-folios16"
    "robot-fault2-lruvec"
    "robot-fault2-memcg"
    "robot-fault2-pcp"
    "robot-fault2-prefetch"
    "robot-fault3-prefetch"
    "robot-fault3-vma"
    "robot-mmap1-gup"
    "robot-mmap1-icx"
    "robot-mmap1-srf"
    "robot-mmap1-thp"
    "robot-switch-debug"
    "robot-switch-mmcid"
    "robot-tlb-lazy"
    "song-spf"
    "wang-arm"
    "wang-x86"
    "yan-r630"
];

/// All curves, by file and in each file's order.
pub fn all() -> Result<Vec<Curve>, Error> {
    let path = |file| format!("published/{file}.toml");
    let read = FILES.iter().map(|(file, text)| read(&path(file), text));
    let read: Result<Vec<_>, _> = read.collect();
    read.map(|curves| curves.concat())
}

/// The curves of one file. Its name without folders and ending begins their ids.
pub fn read(path: &str, text: &str) -> Result<Vec<Curve>, Error> {
    let parsed: File = parse(path, text)?;
    check::file(&parsed).map_err(|why| Error {
        path: path.to_owned(),
        why,
    })?;
    let file = Path::new(path)
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy();
    let curve = |told: &Told| Curve {
        id: format!("{file}/{}", told.name),
        source: parsed.source.clone(),
        machine: parsed.machines[&told.machine].clone(),
        workload: told.workload.clone(),
        mode: told.mode,
        kernel: told.kernel.clone(),
        unit: told.unit,
        note: told.note.clone(),
        points: told.points.clone(),
        after: told.after.clone(),
    };
    Ok(parsed.curve.iter().map(curve).collect())
}

/// Rates of one workload on one machine and kernel, and on another kernel where it is an A/B pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The file and the name in it: `kogan-cna/open1-threads`.
    pub id: String,
    /// The source.
    pub source: Source,
    /// The machine on which it was measured.
    pub machine: Machine,
    /// A test of will-it-scale, or `pft`.
    pub workload: String,
    /// The kind of the tasks.
    pub mode: Mode,
    /// System and version or commit.
    pub kernel: String,
    /// Of the rates.
    pub unit: Unit,
    /// A note for readers of the numbers.
    pub note: Option<String>,
    /// In the order of tasks.
    pub points: Vec<Point>,
    /// The other side of an A/B pair.
    pub after: Option<After>,
}

impl Curve {
    /// The file that it is in.
    pub fn file(&self) -> &str {
        self.id.split_once('/').map_or(&*self.id, |(file, _)| file)
    }

    /// After over before at the most tasks that both have.
    pub fn change(&self) -> Option<Point> {
        self.change_within(u32::MAX)
    }

    /// After over before at the most tasks, up to `most`, that both have.
    pub fn change_within(&self, most: u32) -> Option<Point> {
        let after = self.after.as_ref()?;
        let both = |point: &&Point| point.0 <= most && rate_at(&self.points, point.0).is_some();
        let last = after.points.iter().rfind(both)?;
        Some(Point(last.0, last.1 / rate_at(&self.points, last.0)?))
    }

    /// The point with the highest rate.
    pub fn peak(&self) -> Point {
        let highest = |a: &Point, b: &Point| if b.1 > a.1 { *b } else { *a };
        self.points[1..]
            .iter()
            .fold(self.points[0], |a, b| highest(&a, b))
    }
}

/// Tasks, and the rate of all together.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
pub struct Point(pub u32, pub f64);

/// The rate at exactly `tasks`.
pub fn rate_at(points: &[Point], tasks: u32) -> Option<f64> {
    points
        .iter()
        .find(|point| point.0 == tasks)
        .map(|point| point.1)
}

/// A measurement of the curve's workload and machine with something changed.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct After {
    /// The changed kernel.
    pub kernel: String,
    /// In the order of tasks.
    pub points: Vec<Point>,
    /// Tasks, and after over before there, as the source prints it.
    pub ratio: Option<Point>,
}

/// The source of numbers.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Of the message or page.
    pub title: String,
    /// The authors of the measurement.
    pub author: String,
    /// `2020-09-15`.
    pub date: String,
    /// The address at which it can be read.
    pub address: String,
    /// The way in which the numbers were read.
    pub how: How,
    /// A note on all its numbers.
    pub note: Option<String>,
}

impl Source {
    /// A user's own file.
    pub fn own(path: &str) -> Self {
        Source {
            title: path.to_owned(),
            author: String::new(),
            date: String::new(),
            address: path.to_owned(),
            how: How::Table,
            note: None,
        }
    }
}

/// The way in which numbers were read.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// From a table of figures.
    Table,
    /// From sentences.
    Text,
    /// From a drawing: as exactly as the source's note says.
    Chart,
}

/// A computer.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Its processors' type, or that it is not named.
    pub cpu: String,
    /// Hardware threads.
    pub cpus: u32,
    /// Packages.
    pub sockets: Option<u32>,
    /// Cores of a socket.
    pub cores: Option<u32>,
    /// Hardware threads of a core.
    pub threads: Option<u32>,
    /// NUMA nodes.
    pub nodes: Option<u32>,
    /// GiB.
    pub memory: Option<u32>,
    /// What of this is inferred, and from what.
    pub note: Option<String>,
}

/// Of rates.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
pub enum Unit {
    /// Iterations as the workload counts them; for page faults, of pages.
    #[serde(rename = "operations/s")]
    Operations,
    /// Page faults.
    #[serde(rename = "faults/s")]
    Faults,
    /// Operations over those of one task.
    #[serde(rename = "times one task")]
    TimesOne,
}

/// A file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    source: Source,
    machines: BTreeMap<String, Machine>,
    curve: Vec<Told>,
}

/// A curve as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Told {
    name: String,
    machine: String,
    workload: String,
    mode: Mode,
    kernel: String,
    unit: Unit,
    note: Option<String>,
    points: Vec<Point>,
    after: Option<After>,
}

/// A file, and what is wrong with it.
#[derive(Debug)]
pub struct Error {
    pub(crate) path: String,
    pub(crate) why: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.why)
    }
}

impl std::error::Error for Error {}

/// Parses the TOML of `path`. An error is the parser's in a line, without its drawing of the place.
pub(crate) fn parse<T: DeserializeOwned>(path: &str, text: &str) -> Result<T, Error> {
    toml::from_str(text).map_err(|error| {
        let line = error
            .span()
            .map(|span| 1 + text[..span.start].matches('\n').count());
        let message = error.message().replace('\n', ", ");
        Error {
            path: path.to_owned(),
            why: line.map_or(message.clone(), |line| format!("line {line}: {message}")),
        }
    })
}
