//! What is known about an incident: the file `incident.toml`.

use baselines::Preset;
use bench::Failure;
use bench::simulated::Simulated;
use serde::{Deserialize, Deserializer};
use sim::profile::MachineProfile;

/// An incident, as its file describes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// What happened, in a line.
    pub title: String,
    /// The program.
    pub program: String,
    /// The month in which it was told: `2021-09`.
    pub date: String,
    /// The address of the source.
    pub source: String,
    pub shape: Shape,
    /// The operations that hold the program up, in a few words.
    pub operations: String,
    /// A part of the sentence that must name the bottleneck: a lock, a line, a mechanism.
    pub named: String,
    /// Requests of each thread in the recordings.
    pub requests: u32,
    /// The threads that were recorded.
    pub tasks: u32,
    /// The role whose threads are multiplied; the busiest one by default.
    pub role: Option<String>,
    /// Where it happened.
    pub at: Setting,
    /// What was changed. The first is the fix.
    pub compare: Vec<Comparison>,
}

/// What kind of story it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Shape {
    /// A reader of `/proc` and the owner of the memory.
    P,
    /// Storms of madvise and mprotect, which lock the map for writing.
    W,
    /// Memory that decays, and faults again.
    D,
    /// Instances made and unmade.
    I,
    /// A fork of a large process.
    F,
    /// One large munmap or madvise while others fault.
    B,
    /// All threads map or fault at the start.
    S,
    /// A scanner in the background.
    N,
    /// Faults of huge pages.
    H,
}

/// A run: a recording, on a machine, under a preset.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    #[serde(default = "before")]
    pub recording: String,
    #[serde(deserialize_with = "preset")]
    pub vm: Preset,
    pub machine: String,
    /// Sockets, cores, threads; the machine's own by default.
    pub topology: Option<[usize; 3]>,
    /// Threads of the role.
    pub threads: usize,
}

/// What differs from [`About::at`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Change {
    pub recording: Option<String>,
    #[serde(deserialize_with = "some_preset")]
    pub vm: Option<Preset>,
    pub machine: Option<String>,
    pub topology: Option<[usize; 3]>,
    pub threads: Option<usize>,
}

/// Two runs, and how much better the second is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// What the second run has that the first lacks.
    pub what: String,
    #[serde(default)]
    pub by: Measure,
    #[serde(default)]
    pub from: Change,
    pub to: Change,
    /// The factor that the source states, by whatever it measures.
    pub published: Option<f64>,
    /// Why the simulated factor is another; none if it need not be explained.
    pub explained: Option<String>,
}

/// What two runs are compared by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// Requests a second of all threads: the more, the better.
    #[default]
    Rate,
    /// The longest wait for a lock: the shorter, the better.
    Wait,
}

fn before() -> String {
    super::BEFORE.to_owned()
}

fn preset<'de, D: Deserializer<'de>>(from: D) -> Result<Preset, D::Error> {
    let name = String::deserialize(from)?;
    name.parse().map_err(serde::de::Error::custom)
}

fn some_preset<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Preset>, D::Error> {
    preset(from).map(Some)
}

impl About {
    /// All runs, each once. The first is the incident's.
    pub fn settings(&self) -> Vec<Setting> {
        let mut all = vec![self.at.clone()];
        for comparison in &self.compare {
            for side in comparison.sides(&self.at) {
                if !all.contains(&side) {
                    all.push(side);
                }
            }
        }
        all
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let parts: Vec<_> = self.date.split('-').map(str::parse::<u32>).collect();
        if !matches!(parts[..], [Ok(1990..), Ok(1..=12)]) {
            return Err(format!(
                "date: {} is not a month such as 2021-09",
                self.date
            ));
        }
        if !self.source.starts_with("https://") {
            return Err(format!("source: {} is not an address", self.source));
        }
        if self.named.is_empty() || self.compare.is_empty() || self.requests == 0 {
            return Err("nothing is named, compared or requested".into());
        }
        for setting in self.settings() {
            let target = setting.simulated().map_err(|why| why.to_string())?;
            if setting.threads == 0 || setting.threads > 32 * target.profile.cpus() {
                return Err(format!(
                    "{} threads on {}",
                    setting.threads,
                    setting.place()
                ));
            }
        }
        Ok(())
    }
}

impl Comparison {
    pub(super) fn sides(&self, at: &Setting) -> [Setting; 2] {
        [&self.from, &self.to].map(|change| at.with(change))
    }
}

impl Setting {
    fn with(&self, change: &Change) -> Self {
        let own = self.clone();
        Setting {
            recording: change.recording.clone().unwrap_or(own.recording),
            vm: change.vm.unwrap_or(own.vm),
            // Another machine has a topology of its own.
            topology: match change.machine {
                Some(_) => change.topology,
                None => change.topology.or(own.topology),
            },
            machine: change.machine.clone().unwrap_or(own.machine),
            threads: change.threads.unwrap_or(own.threads),
        }
    }

    /// The simulated machine with its preset.
    pub fn simulated(&self) -> Result<Simulated, Failure> {
        let bad = |error: sim::profile::ProfileError| Failure::Unavailable(error.to_string());
        let mut profile = MachineProfile::named(&self.machine).map_err(bad)?;
        if let Some([sockets, cores, threads]) = self.topology {
            profile = profile
                .with_topology(sockets, cores, threads)
                .map_err(bad)?;
        }
        Ok(Simulated::new(self.vm, profile, 1))
    }

    /// The machine and its shape: `pc-16c32t 1x8x2`.
    pub fn place(&self) -> String {
        match self.topology {
            Some([sockets, cores, threads]) => {
                format!("{} {sockets}x{cores}x{threads}", self.machine)
            }
            None => self.machine.clone(),
        }
    }
}
