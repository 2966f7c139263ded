//! The costs of an operation: the locks that it acquires, and the lines that CPUs share which
//! perform it at the same time.

use super::commute::{Pair, Sharing};
use super::conflicts_of;
use super::examine::{self, Conflict};
use super::known::class;
use super::operation::{Operation, Placement};
use baselines::Preset;
use std::collections::BTreeSet;
use std::io;
use sync::watch::classes;

/// The locks and lines of an operation, performed when tables exist and caches are filled.
pub struct Taken {
    pub operation: Operation,
    /// The classes of the locks it acquires, and how often, in the order of ranks.
    pub locks: Vec<(&'static str, u64)>,
    /// Lines in which two threads of a process conflict, each working in memory of its own.
    pub threads: BTreeSet<String>,
    /// Lines in which two processes conflict, each working in memory of its own.
    pub processes: BTreeSet<String>,
}

impl Taken {
    /// The operations of the page of baselines.
    pub const OPERATIONS: [Operation; 11] = [
        Operation::Map,
        Operation::Fault,
        Operation::Copy,
        Operation::Protect,
        Operation::Unmap,
        Operation::Brk,
        Operation::ReadFile,
        Operation::PageOut,
        Operation::Scan,
        Operation::Fork,
        Operation::Exit,
    ];

    /// The locks and lines of `operation` in the VM of `preset`.
    ///
    /// # Errors
    /// If there is no memory for the simulated machine.
    pub fn by(preset: Preset, operation: Operation) -> io::Result<Self> {
        let pair = |sharing| Pair {
            first: operation,
            second: operation,
            sharing,
            placement: Placement::Allocated,
        };
        let meet = |sharing| -> io::Result<BTreeSet<String>> {
            let conflicts = conflicts_of(preset, &pair(sharing))?;
            let names = conflicts
                .iter()
                .map(|Conflict { what, .. }| class(what).to_owned());
            Ok(names.collect())
        };
        let alone = pair(Sharing::Processes);
        let counts = examine::locks(&alone, preset.options())?;
        let mut ranked: Vec<_> = classes().collect();
        ranked.sort_by_key(|class| class.rank());
        let names = ranked.into_iter().map(|class| class.name());
        Ok(Taken {
            operation,
            locks: names
                .filter_map(|name| Some((name, *counts.get(name)?)))
                .collect(),
            threads: if operation.is_whole() {
                BTreeSet::new()
            } else {
                meet(Sharing::Threads)?
            },
            processes: meet(Sharing::Processes)?,
        })
    }
}
