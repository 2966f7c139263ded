//! What there is to choose from besides workloads.

use crate::locks::registry::ROWS;
use baselines::selected::Preset;

/// A name and what it stands for.
#[derive(Clone, Copy)]
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

/// How scalevm's VM is built (`--vm`), oldest first.
pub const PRESETS: &[Entry] = &{
    let mut entries = [entry("", ""); Preset::ALL.len()];
    let mut index = 0;
    while index < entries.len() {
        entries[index] = of(Preset::ALL[index]);
        index += 1;
    }
    entries
};

const fn of(preset: Preset) -> Entry {
    entry(preset.name(), preset.description())
}

/// The locks, epochs and counters of `sync`, as `scalevm locks` measures them.
pub fn locks() -> impl Iterator<Item = Entry> {
    let ours = ROWS.iter().filter(|row| row.ours);
    ours.map(|row| entry(row.name, row.about))
}
