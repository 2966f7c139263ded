//! Checks that a computer is fit for measurements, and names the changes needed if not.
//!
//! One file for each group of checks. They read below a root and change nothing.

mod cpus;
mod events;
mod host;
mod limits;
mod memory;
mod permissions;
mod programs;
mod surroundings;

#[cfg(test)]
mod tests;

pub use host::Host;

use serde::Serialize;

/// The state of one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Nothing is to be done.
    Ok,
    /// The state cannot be read.
    Unknown,
    /// Figures would be better, or more would be seen, after a change.
    Advice,
    /// Figures are doubtful without a change.
    Change,
}

impl State {
    /// The word used in output.
    pub const fn name(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Unknown => "unknown",
            State::Advice => "advice",
            State::Change => "change",
        }
    }
}

/// The settings that can make figures doubtful.
const DECISIVE: [&str; 4] = [
    "frequency governor",
    "CPU quota",
    "load of others",
    "clock source",
];

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename = "finding")]
pub struct Finding {
    pub name: &'static str,
    pub state: State,
    /// The finding, and why it matters.
    pub found: String,
    /// The command to type, or another remedy; none if all is well or nothing is known.
    pub advice: Option<String>,
}

impl Finding {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Finding {
            name,
            state: State::Ok,
            found: found.into(),
            advice: None,
        }
    }

    fn unknown(name: &'static str, found: impl Into<String>) -> Self {
        Finding {
            state: State::Unknown,
            ..Finding::ok(name, found)
        }
    }

    /// Returns true if it makes figures doubtful: it is wrong, or cannot be read.
    pub fn is_doubtful(&self) -> bool {
        match self.state {
            State::Change => true,
            State::Unknown => DECISIVE.contains(&self.name),
            State::Ok | State::Advice => false,
        }
    }

    fn advice(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Finding {
            name,
            state: State::Advice,
            found: found.into(),
            advice: Some(advice.into()),
        }
    }

    fn change(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Finding {
            state: State::Change,
            ..Finding::advice(name, found, advice)
        }
    }
}

/// Runs all checks.
pub fn examine(host: &Host) -> Vec<Finding> {
    let groups = [
        surroundings::check,
        cpus::check,
        memory::check,
        limits::check,
        permissions::check,
        events::check,
        programs::check,
    ];
    groups.iter().flat_map(|check| check(host)).collect()
}
