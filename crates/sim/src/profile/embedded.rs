//! The built-in machines.

use super::{MachineProfile, ProfileError};

/// Name and text, the machine of case study 000 first.
const MACHINES: &[(&str, &str)] = &[
    ("freebsd-96", include_str!("../../machines/freebsd-96.toml")),
    ("pc-16c32t", include_str!("../../machines/pc-16c32t.toml")),
    ("arm64-16", include_str!("../../machines/arm64-16.toml")),
    ("xeon-4s", include_str!("../../machines/xeon-4s.toml")),
    ("xeon-8s", include_str!("../../machines/xeon-8s.toml")),
    ("opteron-48", include_str!("../../machines/opteron-48.toml")),
    ("epyc-256", include_str!("../../machines/epyc-256.toml")),
];

/// All built-in machines.
pub(super) fn all() -> Vec<MachineProfile> {
    MACHINES
        .iter()
        .map(|(name, text)| parse(name, text))
        .collect()
}

/// The names of the built-in machines.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    MACHINES.iter().map(|(name, _)| *name)
}

/// The built-in machine of this name.
pub(super) fn named(name: &str) -> Result<MachineProfile, ProfileError> {
    let found = MACHINES.iter().find(|(known, _)| *known == name);
    let (name, text) = found.ok_or_else(|| {
        let known: Vec<&str> = names().collect();
        ProfileError::Unknown {
            name: name.to_owned(),
            known: known.join(", "),
        }
    })?;
    Ok(parse(name, text))
}

fn parse(name: &str, text: &str) -> MachineProfile {
    // A test parses each of them.
    MachineProfile::parse(text, name).unwrap_or_else(|error| panic!("built-in machine: {error}"))
}
