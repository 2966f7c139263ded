//! What there is to choose from besides workloads.

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

/// The locks of `sync`.
pub const LOCKS: &[Entry] = &[
    entry("tas", "test-and-set"),
    entry("ticket", "ticket lock"),
    entry("proportional", "ticket lock with proportional backoff"),
    entry("conbo", "ticket lock with conservative backoff (seed 004)"),
    entry("mcs", "queue lock, spins locally"),
    entry("clh", "queue lock, spins on the predecessor's node"),
    entry(
        "k42",
        "MCS variant without a node carried to unlock (seed 004)",
    ),
    entry("obm", "one-byte mutex on shared turnstiles (seed 002)"),
    entry("adaptive", "spins while the owner runs, then a turnstile"),
];
