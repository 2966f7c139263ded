//! Where a system has placed a sequence's handles.

use crate::address::{Address, Handle, Origin, PAGE, Range, WINDOW, WINDOW_PAGES};
use crate::outcome::Outcome;
use crate::step::{Call, Map, ProcessId, Remap, RemapFlag, Where};
use std::collections::BTreeMap;

/// The real addresses of one sequence's handles, by process.
#[derive(Default)]
pub struct Places {
    /// The first address of every process's heap.
    heap: u64,
    handles: BTreeMap<(ProcessId, Handle), u64>,
}

impl Places {
    /// No handles yet; every process's heap begins at `heap`.
    pub fn new(heap: u64) -> Self {
        Places {
            heap,
            handles: BTreeMap::new(),
        }
    }

    /// The real address.
    ///
    /// # Panics
    /// If the handle is unknown; [`crate::System::perform`] guarantees that it is known.
    pub fn resolve(&self, process: ProcessId, address: Address) -> u64 {
        let base = match address.place {
            Origin::Window => WINDOW,
            Origin::Heap => self.heap,
            Origin::Absolute => 0,
            Origin::Handle(handle) => self.handles[&(process, handle)],
        };
        base.wrapping_add(address.offset)
    }

    /// Returns true if the address can be resolved: its handle, if any, is known.
    pub fn knows(&self, process: ProcessId, address: Address) -> bool {
        match address.place {
            Origin::Handle(handle) => self.handles.contains_key(&(process, handle)),
            Origin::Window | Origin::Heap | Origin::Absolute => true,
        }
    }

    /// The outcome that reports a mapping which `call` has put at `at`.
    pub fn placed(&mut self, process: ProcessId, call: &Call, at: u64) -> Outcome {
        let window = WINDOW..WINDOW + WINDOW_PAGES * PAGE;
        if window.contains(&at) {
            return Outcome::At(Address::window(0).plus(at - WINDOW));
        }
        let (handle, named) = names(call);
        match (handle, named) {
            // The mapping is where the step asked for it.
            (_, Some(named)) if self.resolve(process, named) == at => Outcome::At(named),
            (Some(handle), None) => {
                self.handles.insert((process, handle), at);
                Outcome::Somewhere
            }
            _ => Outcome::At(Address {
                place: Origin::Absolute,
                offset: at,
            }),
        }
    }

    /// Translates regions at real addresses into the terms of `call`, which was `resolved`.
    pub fn named(&self, call: &Call, resolved: &Call, mut outcome: Outcome) -> Outcome {
        if let (Call::Regions(asked), Call::Regions(real)) = (call, resolved)
            && let Outcome::Regions(regions) = &mut outcome
        {
            for region in regions {
                let further = region.start.offset.wrapping_sub(real.start.offset);
                region.start = asked.start.plus(further);
            }
        }
        outcome
    }

    /// A child inherits its parent's handles.
    pub fn fork(&mut self, parent: ProcessId, child: ProcessId) {
        self.forget(child);
        let theirs = self.handles.range((parent, 0)..=(parent, Handle::MAX));
        let copies: Vec<_> = theirs
            .map(|(&(_, handle), &at)| ((child, handle), at))
            .collect();
        self.handles.extend(copies);
    }

    /// Forgets a process that has ended or been replaced.
    pub fn forget(&mut self, process: ProcessId) {
        self.handles.retain(|&(owner, _), _| owner != process);
    }
}

/// The handle that `call` gives to the mapping it places, or the address that it requests.
fn names(call: &Call) -> (Option<Handle>, Option<Address>) {
    match *call {
        Call::Map(map) => match map.at {
            Where::Hint(_, handle) | Where::Anywhere(handle) => (Some(handle), None),
            Where::Fixed(at) | Where::FixedNoReplace(at) => (None, Some(at)),
        },
        Call::Remap(remap) => {
            let pages = |bytes: u64| bytes.div_ceil(PAGE);
            let grows = pages(remap.bytes) > pages(remap.old.bytes);
            let moves = grows || remap.flags.has(RemapFlag::DontUnmap);
            match remap.fixed {
                None if moves && remap.handle.is_some() => (remap.handle, None),
                None => (None, Some(remap.old.start)),
                fixed => (None, fixed),
            }
        }
        _ => (None, None),
    }
}

impl Places {
    /// The call with all addresses replaced by real ones.
    pub fn resolved(&self, process: ProcessId, call: &Call) -> Call {
        let at = |address| Address {
            place: Origin::Absolute,
            offset: self.resolve(process, address),
        };
        let range = |range: Range| Range {
            start: at(range.start),
            ..range
        };
        match *call {
            Call::Map(map) => Call::Map(Map {
                at: match map.at {
                    Where::Fixed(address) => Where::Fixed(at(address)),
                    Where::FixedNoReplace(address) => Where::FixedNoReplace(at(address)),
                    Where::Hint(address, handle) => Where::Hint(at(address), handle),
                    Where::Anywhere(handle) => Where::Anywhere(handle),
                },
                ..map
            }),
            Call::Remap(remap) => Call::Remap(Remap {
                old: range(remap.old),
                fixed: remap.fixed.map(at),
                ..remap
            }),
            Call::Unmap(it) => Call::Unmap(range(it)),
            Call::Protect(it, prot) => Call::Protect(range(it), prot),
            Call::Advise(it, advice) => Call::Advise(range(it), advice),
            Call::Sync(it, flags) => Call::Sync(range(it), flags),
            Call::Lock(it) => Call::Lock(range(it)),
            Call::LockOnFault(it) => Call::LockOnFault(range(it)),
            Call::Unlock(it) => Call::Unlock(range(it)),
            Call::InCore(it) => Call::InCore(range(it)),
            Call::Regions(it) => Call::Regions(range(it)),
            Call::Dump(it) => Call::Dump(range(it)),
            Call::Load(address, width) => Call::Load(at(address), width),
            Call::Store(address, width, value) => Call::Store(at(address), width, value),
            Call::LockAll(_)
            | Call::UnlockAll
            | Call::Break(_)
            | Call::Fork(_)
            | Call::Exit
            | Call::Replace
            | Call::Truncate(..)
            | Call::Read(_)
            | Call::Write(..)
            | Call::Scarce(_) => *call,
        }
    }
}
