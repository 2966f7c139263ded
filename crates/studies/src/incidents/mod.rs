//! Incidents: real programs whose memory operations did not scale, recorded.
//!
//! `incidents/` has a folder for each: a page, recordings, and what is [`About`] it. [`all`] reads
//! those that are compiled in. [`About::settings`] are the runs that an incident needs, and
//! [`Incident::findings`] says what these runs show.

mod about;
mod finding;

pub use about::{About, Change, Comparison, Measure, Setting, Shape};
pub use finding::{Finding, Findings, Run};

use crate::published::{Error, parse};
use bench::{Failure, Job, Mode, Plan, Recorded};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::path::{Path, PathBuf};

/// The files of an incident, compiled in: its page, what is about it, and its recordings.
struct BuiltIn {
    name: &'static str,
    page: &'static str,
    about: &'static str,
    recordings: &'static [(&'static str, &'static [u8])],
}

/// The folders of `incidents/` and the recordings in each. A test holds the list to the folder.
macro_rules! built_in {
    ($($name:literal: $($recording:literal)*,)*) => {
        &[$(BuiltIn {
            name: $name,
            page: include_str!(concat!("../../../../incidents/", $name, "/README.md")),
            about: include_str!(concat!("../../../../incidents/", $name, "/incident.toml")),
            recordings: &[$((
                $recording,
                include_bytes!(concat!("../../../../incidents/", $name, "/", $recording, ".vmrec")),
            )),*],
        }),*]
    };
}

const BUILT_IN: &[BuiltIn] = built_in![
    "bun": "before" "after",
    "bytedance": "before",
    "cadvisor": "before" "after",
    "clickhouse": "before" "after",
    "deepep": "before" "after",
    "golang": "before" "after",
    "kudu": "before" "after",
    "memsql": "before" "after",
    "munmap": "before",
    "node": "before" "after",
    "opensearch": "before" "after",
    "redis": "before",
    "spin": "before" "after",
    "timefusion": "before" "after",
    "wasmer": "before" "after",
];

/// The recording of the program as it was.
pub const BEFORE: &str = "before";

/// An incident.
#[derive(Debug)]
pub struct Incident {
    /// The name of its folder.
    pub name: String,
    /// Its page, in Markdown.
    pub page: String,
    pub about: About,
    recordings: BTreeMap<String, &'static Recorded>,
}

/// Those that are compiled in, by name.
pub fn all() -> Result<Vec<Incident>, Failure> {
    let incident = |one: &BuiltIn| {
        let read = |name: &str| {
            let found = one.recordings.iter().find(|(known, _)| *known == name);
            let missing = || Failure::Unavailable(format!("{}: no recording {name}", one.name));
            found.map(|(_, bytes)| bytes.to_vec()).ok_or_else(missing)
        };
        Incident::new(one.name, one.page.to_owned(), one.about, read)
    };
    BUILT_IN.iter().map(incident).collect()
}

impl Incident {
    /// The one in `folder`.
    ///
    /// # Errors
    /// A file is missing, or is not what it should be.
    pub fn open(folder: &Path) -> Result<Self, Failure> {
        let file = |name: &str| -> (PathBuf, Result<Vec<u8>, Failure>) {
            let path = folder.join(name);
            let bytes = fs::read(&path).map_err(Failure::file(&path));
            (path, bytes)
        };
        let text = |name: &str| {
            let (path, bytes) = file(name);
            String::from_utf8(bytes?)
                .map_err(|_| Failure::Unavailable(format!("{}: no UTF-8", path.display())))
        };
        let read = |name: &str| file(&format!("{name}.vmrec")).1;
        let name = folder.display().to_string();
        Self::new(&name, text("README.md")?, &text("incident.toml")?, read)
    }

    fn new(
        name: &str,
        page: String,
        about: &str,
        read: impl Fn(&str) -> Result<Vec<u8>, Failure>,
    ) -> Result<Self, Failure> {
        let path = format!("{name}/incident.toml");
        let bad = |error: Error| Failure::Unavailable(error.to_string());
        let about: About = parse(&path, about).map_err(bad)?;
        about.check().map_err(|why| bad(Error { path, why }))?;
        let mut recordings = BTreeMap::new();
        for setting in about.settings() {
            let recording = &setting.recording;
            if let Entry::Vacant(place) = recordings.entry(recording.clone()) {
                let (bytes, file) = (read(recording)?, Path::new(name).join(recording));
                let recorded = Recorded::of_bytes(&bytes, &file, about.role.as_deref())?;
                place.insert(recorded);
            }
        }
        Ok(Incident {
            name: name.to_owned(),
            page,
            about,
            recordings,
        })
    }

    /// The plan of one run of a setting.
    pub fn plan(&self, setting: &Setting) -> Plan {
        let recorded = self.recordings[&setting.recording];
        Plan::of(Job::from(recorded), setting.threads, Mode::Threads, Some(1))
    }
}
