//! What there is to choose from besides workloads.

use crate::locks::registry::ROWS;
use baselines::selected::Preset;

/// A name and what it stands for.
pub struct Entry {
    /// The name on the command line.
    pub name: &'static str,
    /// One line.
    pub about: &'static str,
}

const fn entry(name: &'static str, about: &'static str) -> Entry {
    Entry { name, about }
}

/// What workloads run on (`--on`).
pub const SYSTEMS: &[Entry] = &[
    entry("os", "the kernel of this computer, through libc"),
    entry("hosted", "scalevm's own VM on threads of this process"),
    entry(
        "sim",
        "scalevm's own VM on a simulated machine (--machine, --topology)",
    ),
];

/// How scalevm's VM is built (`--vm`).
pub const PRESETS: &[Entry] = &[
    of(Preset::Scalevm),
    of(Preset::FreebsdPvh),
    of(Preset::FreebsdDi),
    of(Preset::FreebsdEpoch),
    of(Preset::FreebsdLocklessDi),
];

const fn of(preset: Preset) -> Entry {
    entry(preset.name(), preset.description())
}

/// The locks, epochs and counters of `sync`, as `scalevm locks` measures them.
pub fn locks() -> impl Iterator<Item = Entry> {
    let ours = ROWS.iter().filter(|row| row.ours);
    ours.map(|row| entry(row.name, row.about))
}
