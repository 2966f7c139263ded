//! Systems by name.

use super::{Account, AnyKernel, Design, Selected};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;
use ipc::Own;
use machine::{Machine, Platform};
use vm::Options;

/// A system of the seeds, or today's, or ours: a choice of policies with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Preset {
    /// FreeBSD 10: one lock over every change of a mapping.
    FreebsdPvh,
    /// FreeBSD in May 2018: seed 000's "before".
    FreebsdDi,
    /// FreeBSD today.
    FreebsdLocklessDi,
    /// Seed 000's experiment.
    FreebsdEpoch,
    /// `vm`'s own designs.
    Scalevm,
}

impl Preset {
    /// All presets, oldest first.
    pub const ALL: [Preset; 5] = [
        Preset::FreebsdPvh,
        Preset::FreebsdDi,
        Preset::FreebsdEpoch,
        Preset::FreebsdLocklessDi,
        Preset::Scalevm,
    ];

    /// The name, as on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Preset::FreebsdPvh => "freebsd-pvh",
            Preset::FreebsdDi => "freebsd-di",
            Preset::FreebsdLocklessDi => "freebsd-lockless-di",
            Preset::FreebsdEpoch => "freebsd-epoch",
            Preset::Scalevm => "scalevm",
        }
    }

    /// One line on what it does.
    pub const fn description(self) -> &'static str {
        match self {
            Preset::FreebsdPvh => {
                "one reader/writer lock held across every removal and mapping; removal by \
                 the reverse map stops them all"
            }
            Preset::FreebsdDi => {
                "delayed invalidation: a list of open blocks, one mutex at start and finish"
            }
            Preset::FreebsdLocklessDi => {
                "delayed invalidation: one list appended to by a 16-byte compare-and-swap"
            }
            Preset::FreebsdEpoch => {
                "epochs in place of delayed invalidation: enter, exit, and a grace period to wait"
            }
            Preset::Scalevm => {
                "epoch sections named in the page: wait only for blocks that hold it; swap \
                 reserved per CPU"
            }
        }
    }

    /// Where the design comes from.
    pub const fn source(self) -> &'static str {
        match self {
            Preset::FreebsdPvh => "FreeBSD/amd64 10.4 pmap, before b4ddfd (2016)",
            Preset::FreebsdDi => "seed 000; FreeBSD/amd64 pmap b4ddfd (2016) to r347695 (2019)",
            Preset::FreebsdLocklessDi => "FreeBSD/amd64 pmap since r347695 (2019)",
            Preset::FreebsdEpoch => "seed 000, the experiment",
            Preset::Scalevm => "this project",
        }
    }

    /// The VM as this preset builds it.
    pub fn options<M: Platform>(self) -> Options<M, Selected> {
        Options {
            invalidation: self.design(),
            swap: self.account(),
            ..Options::default()
        }
    }

    /// How its tasks enter the kernel and sleep there. Made on a CPU of the machine.
    pub fn kernel<M: Machine>(self) -> AnyKernel<M> {
        AnyKernel::Own(Own::new())
    }

    /// Its delayed invalidation.
    pub const fn design(self) -> Design {
        match self {
            Preset::FreebsdPvh => Design::Pvh,
            Preset::FreebsdDi => Design::Di,
            Preset::FreebsdLocklessDi => Design::LocklessDi,
            Preset::FreebsdEpoch => Design::Epoch,
            Preset::Scalevm => Design::Own,
        }
    }

    /// Its swap account.
    pub const fn account(self) -> Account {
        match self {
            Preset::FreebsdPvh | Preset::FreebsdDi | Preset::FreebsdEpoch => Account::Mutex,
            Preset::FreebsdLocklessDi => Account::Atomic,
            Preset::Scalevm => Account::Own,
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Preset {
    type Err = UnknownPreset;

    fn from_str(name: &str) -> Result<Self, UnknownPreset> {
        let found = Preset::ALL.into_iter().find(|preset| preset.name() == name);
        found.ok_or_else(|| UnknownPreset {
            name: name.to_string(),
            nearest: nearest(name),
        })
    }
}

/// No preset has this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPreset {
    /// What was asked for.
    pub name: String,
    /// The preset whose name is most like it, if one is.
    pub nearest: Option<Preset>,
}

impl fmt::Display for UnknownPreset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown preset '{}'", self.name)?;
        if let Some(nearest) = self.nearest {
            return write!(f, "; did you mean '{nearest}'?");
        }
        f.write_str("; there are")?;
        for (i, preset) in Preset::ALL.iter().enumerate() {
            write!(f, "{} {preset}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownPreset {}

/// The preset whose name, or its part after the system's, is within a third of its length
/// of edits from `name`.
fn nearest(name: &str) -> Option<Preset> {
    let distance = |preset: Preset| {
        let full = preset.name();
        let short = full.strip_prefix("freebsd-").unwrap_or(full);
        let candidates = [full, short].map(|known| (edits(known, name), known.len()));
        candidates
            .into_iter()
            .filter(|&(edits, length)| edits * 3 <= length.max(3))
            .min()
    };
    Preset::ALL
        .into_iter()
        .filter_map(|preset| Some((distance(preset)?, preset)))
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, preset)| preset)
}

/// How many bytes must be inserted, removed or replaced to make `b` of `a` (Levenshtein),
/// case aside.
fn edits(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(!x.eq_ignore_ascii_case(&y));
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
