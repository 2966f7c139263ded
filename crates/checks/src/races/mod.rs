//! Scenarios under many schedules, each named by a seed.
//!
//! Random delays at random accesses, on machines of random shapes, lead to schedules that a machine
//! without delays never shows. `docs/simulator/checking.md` says what is explored.

mod panics;
pub(crate) mod play;
pub(crate) mod scenarios;
mod search;
mod trial;

use super::planted;
use play::Scenario;
pub use search::{Found, search};
pub use trial::Failure;

/// The names of scenarios and of their families.
pub fn names() -> Vec<String> {
    let names: Vec<_> = scenarios::all().into_iter().map(|one| one.name).collect();
    let mut families: Vec<_> = names.iter().map(|name| family(name).to_owned()).collect();
    families.dedup();
    families.into_iter().chain(names).collect()
}

/// The names of planted bugs.
pub fn planted_names() -> Vec<&'static str> {
    planted::all().into_iter().map(|bug| bug.name).collect()
}

/// A scenario, and its planted bug, if any.
pub struct Subject {
    pub scenario: Scenario,
    /// What the bug is; empty if there is none.
    pub about: &'static str,
}

/// The scenarios of these names or families; all if there are none.
pub fn scenarios(only: &[String]) -> Vec<Subject> {
    let asked = |name: &str| {
        let mut only = only.iter();
        only.len() == 0 || only.any(|asked| asked == name || asked == family(name))
    };
    let all = scenarios::all().into_iter();
    let chosen = all.filter(|scenario| asked(&scenario.name));
    let subject = |scenario| Subject {
        scenario,
        about: "",
    };
    chosen.map(subject).collect()
}

/// The planted bug of that name, or `all`.
pub fn planted(name: &str) -> Vec<Subject> {
    let asked = |one: &planted::Planted| name == "all" || name == one.name;
    let bugs = planted::all().into_iter().filter(asked);
    let subject = |bug: planted::Planted| Subject {
        scenario: bug.scenario,
        about: bug.about,
    };
    bugs.map(subject).collect()
}

fn family(name: &str) -> &str {
    name.split_once('.').map_or(name, |(family, _)| family)
}
