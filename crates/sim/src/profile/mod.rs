//! Machine profiles: the shape of a simulated computer and its costs.
//!
//! A profile is a TOML file in which every number carries its source; `docs/simulator/profiles.md`
//! says how to write one. Times are nanoseconds in the file and **picoseconds** here: whole
//! numbers, so that a simulated clock never rounds.

mod corners;
mod costs;
mod embedded;
mod error;
mod fields;
mod read;
mod reshape;
mod topology;
mod write;

pub use costs::{Arbitration, Clocks, Core, Ipi, KernelCosts, MemoryCosts, PerClass, Transfer};
pub use error::ProfileError;
pub use topology::{Class, Location, Topology};

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A simulated computer. Checked when read; code that changes fields calls
/// [`check`](MachineProfile::check).
#[derive(Clone, Debug, PartialEq)]
pub struct MachineProfile {
    /// Its name, as on the command line.
    pub name: String,
    /// The name of the profile that its costs are from, whatever its shape.
    pub costs: String,
    /// One line about the computer that it describes.
    pub about: String,
    /// The topology of its CPUs.
    pub topology: Topology,
    /// The cost of moving a cache line.
    pub transfer: Transfer,
    /// The costs of a core by itself.
    pub core: Core,
    /// The costs of its kernel.
    pub kernel: KernelCosts,
    /// The costs of interrupting other CPUs.
    pub ipi: Ipi,
    /// The costs of pages and translations.
    pub memory: MemoryCosts,
    /// Where each number comes from, by its dotted key (`transfer.sibling`).
    pub sources: BTreeMap<String, String>,
}

/// One number of a profile, as in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// Section and name, as `transfer.sibling`.
    pub key: &'static str,
    /// The value as text; times in nanoseconds.
    pub value: String,
    /// Where it comes from.
    pub source: String,
}

impl MachineProfile {
    /// Parses the text of a profile; `file` is its name in errors.
    ///
    /// # Errors
    /// One line naming file, line and key: no TOML, a key missing or unknown, a number without a
    /// source or out of its range, an impossible topology.
    pub fn parse(text: &str, file: &str) -> Result<Self, ProfileError> {
        read::read(text, file)
    }

    /// Reads a profile from a file.
    ///
    /// # Errors
    /// If the file cannot be read, or [`parse`](MachineProfile::parse) refuses it.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ProfileError> {
        let file = path.as_ref().display().to_string();
        match fs::read_to_string(path) {
            Ok(text) => MachineProfile::parse(&text, &file),
            Err(source) => Err(ProfileError::Unreadable { file, source }),
        }
    }

    /// One of the built-in machines.
    ///
    /// # Errors
    /// If no machine has this name; the error lists the known names.
    pub fn named(name: &str) -> Result<Self, ProfileError> {
        embedded::named(name)
    }

    /// The names of the built-in machines, in the order of [`all`](MachineProfile::all).
    pub fn names() -> impl Iterator<Item = &'static str> {
        embedded::names()
    }

    /// The built-in machines, the one of case study 000 first.
    pub fn all() -> Vec<Self> {
        embedded::all()
    }

    /// The text of a file that [`parse`](MachineProfile::parse) reads back as this profile.
    pub fn to_toml(&self) -> String {
        write::write(self)
    }

    /// Every number with its source, in the order of the file.
    pub fn entries(&self) -> Vec<Number> {
        write::entries(self)
    }

    /// Sets a time, in picoseconds, by its dotted key, with its source.
    ///
    /// # Panics
    /// If no time has this key.
    pub fn set_time(&mut self, key: &str, time: u64, source: String) {
        match fields::fields(self)
            .into_iter()
            .find(|(name, _)| *name == key)
        {
            Some((_, fields::Field::Time(place))) => *place = time,
            _ => panic!("`{key}` is not a time"),
        }
        self.sources.insert(key.to_owned(), source);
    }

    /// Checks the fields, and the conditions on them together.
    ///
    /// # Errors
    /// Names the key and its error.
    pub fn check(&self) -> Result<(), ProfileError> {
        let whole = |reason| ProfileError::Invalid {
            file: self.name.clone(),
            reason,
        };
        fields::check(self).map_err(|(key, reason)| whole(format!("`{key}`: {reason}")))
    }

    /// The number of CPUs (hardware threads).
    pub fn cpus(&self) -> usize {
        self.topology.cpus()
    }

    /// The place of a CPU.
    ///
    /// # Panics
    /// If there is no such CPU.
    pub fn place(&self, cpu: usize) -> Location {
        self.topology.place(cpu)
    }

    /// The distance of two CPUs.
    ///
    /// # Panics
    /// If there is no such CPU.
    pub fn distance(&self, a: usize, b: usize) -> Class {
        self.topology.distance(a, b)
    }

    /// Picoseconds that a transfer takes to CPU `b` of a line that CPU `a` wrote last; a hit if
    /// they are the same.
    ///
    /// # Panics
    /// If there is no such CPU.
    pub fn latency(&self, a: usize, b: usize) -> u64 {
        match self.distance(a, b) {
            Class::SameThread => self.core.hit,
            Class::Sibling => self.transfer.sibling,
            Class::Cluster => self.transfer.cluster,
            Class::Socket => self.transfer.socket,
            Class::Hops(hops) => self.transfer.hops[usize::from(hops) - 1],
        }
    }
}

#[cfg(test)]
mod tests;
