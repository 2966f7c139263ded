//! Simpler variants of a step. Each candidate is smaller in some order, so simplifying ends.

use crate::address::{PAGE, Range};
use crate::flags::{Flag, Flags};
use crate::step::{Backing, Call, Map, Prot, Remap, Scarcity, Step, Width};

/// Simpler variants of a step, the simplest first.
pub fn simpler(step: &Step) -> Vec<Step> {
    let calls = match step.call {
        Call::Map(map) => maps(map).into_iter().map(Call::Map).collect(),
        Call::Remap(remap) => remaps(remap).into_iter().map(Call::Remap).collect(),
        Call::Unmap(range) => ranges(range, Call::Unmap),
        Call::Protect(range, prot) => ranges(range, |it| Call::Protect(it, prot)),
        Call::Advise(range, advice) => ranges(range, |it| Call::Advise(it, advice)),
        Call::Sync(range, flags) => {
            let mut calls = ranges(range, |it| Call::Sync(it, flags));
            calls.extend(fewer(flags).map(|flags| Call::Sync(range, flags)));
            calls
        }
        Call::Lock(range) => ranges(range, Call::Lock),
        Call::LockOnFault(range) => ranges(range, Call::LockOnFault),
        Call::Unlock(range) => ranges(range, Call::Unlock),
        Call::LockAll(flags) => fewer(flags).map(Call::LockAll).collect(),
        Call::InCore(range) => ranges(range, Call::InCore),
        Call::Regions(range) => ranges(range, Call::Regions),
        Call::Dump(range) => ranges(range, Call::Dump),
        Call::Break(bytes) => lengths(bytes).into_iter().map(Call::Break).collect(),
        Call::Truncate(file, bytes) => {
            let lengths = lengths(bytes).into_iter();
            lengths.map(|bytes| Call::Truncate(file, bytes)).collect()
        }
        Call::Store(address, width, value) if value > 1 => {
            vec![Call::Store(address, width, 1)]
        }
        Call::Scarce(scarcity) => sooner(scarcity).into_iter().map(Call::Scarce).collect(),
        Call::Store(address, Width::Word, value) => {
            vec![Call::Store(address, Width::Byte, value)]
        }
        _ => vec![],
    };
    let process = step.process;
    calls
        .into_iter()
        .map(|call| Step { process, call })
        .collect()
}

/// The failure of `scarcity`, earlier.
fn sooner(scarcity: Scarcity) -> Vec<Scarcity> {
    let smaller = |nth: u64, make: fn(u64) -> Scarcity| {
        let mut smaller = vec![1, nth / 2, nth.saturating_sub(1)];
        smaller.retain(|&one| one > 0 && one < nth);
        smaller.dedup();
        smaller.into_iter().map(make).collect()
    };
    match scarcity {
        Scarcity::Left(_) => vec![],
        Scarcity::Frame(nth) => smaller(nth, Scarcity::Frame),
        Scarcity::File(nth) => smaller(nth, Scarcity::File),
        Scarcity::Swap(nth) => smaller(nth, Scarcity::Swap),
    }
}

fn maps(map: Map) -> Vec<Map> {
    let mut maps = Vec::new();
    if map.backing != Backing::Anonymous {
        let backing = Backing::Anonymous;
        maps.push(Map { backing, ..map });
    }
    if map.shared {
        maps.push(Map {
            shared: false,
            ..map
        });
    }
    if let Backing::File {
        file,
        offset,
        read_only,
    } = map.backing
    {
        let simpler = |offset, read_only| Map {
            backing: Backing::File {
                file,
                offset,
                read_only,
            },
            ..map
        };
        maps.extend(read_only.then(|| simpler(offset, false)));
        maps.extend(lengths(offset).into_iter().map(|it| simpler(it, read_only)));
    }
    maps.extend(fewer(map.flags).map(|flags| Map { flags, ..map }));
    maps.extend(
        lengths(map.bytes)
            .into_iter()
            .map(|bytes| Map { bytes, ..map }),
    );
    if map.prot.execute {
        let prot = Prot {
            execute: false,
            ..map.prot
        };
        maps.push(Map { prot, ..map });
    }
    maps
}

fn remaps(remap: Remap) -> Vec<Remap> {
    let mut remaps: Vec<_> = fewer(remap.flags)
        .map(|flags| Remap { flags, ..remap })
        .collect();
    let both = lengths(remap.bytes)
        .into_iter()
        .zip(lengths(remap.old.bytes));
    remaps.extend(both.map(|(bytes, old)| Remap {
        bytes,
        old: Range {
            bytes: old,
            ..remap.old
        },
        ..remap
    }));
    remaps.extend(
        lengths(remap.bytes)
            .into_iter()
            .map(|bytes| Remap { bytes, ..remap }),
    );
    let olds = shorter(remap.old).into_iter();
    remaps.extend(olds.map(|old| Remap { old, ..remap }));
    remaps
}

fn ranges(range: Range, call: impl Fn(Range) -> Call) -> Vec<Call> {
    shorter(range).into_iter().map(call).collect()
}

/// The first part of a range, and the last.
fn shorter(range: Range) -> Vec<Range> {
    let whole = range.bytes.is_multiple_of(PAGE);
    let first = lengths(range.bytes).into_iter();
    let last = lengths(range.bytes).into_iter().filter(|_| whole);
    let last = last.map(|bytes| Range {
        start: range.start.plus(range.bytes - bytes),
        bytes,
    });
    first
        .map(|bytes| Range { bytes, ..range })
        .chain(last)
        .collect()
}

/// Shorter lengths: whole pages if it was in pages, but never 0.
fn lengths(bytes: u64) -> Vec<u64> {
    let pages = bytes / PAGE;
    if bytes == 0 || bytes >= 1 << 40 {
        return vec![];
    }
    if !bytes.is_multiple_of(PAGE) {
        return vec![pages * PAGE, (pages + 1) * PAGE];
    }
    let mut shorter = vec![1, pages / 2, pages - 1];
    shorter.retain(|&shorter| shorter > 0 && shorter < pages);
    shorter.dedup();
    shorter.into_iter().map(|pages| pages * PAGE).collect()
}

/// The set minus one flag, for each of its flags.
fn fewer<F: Flag>(flags: Flags<F>) -> impl Iterator<Item = Flags<F>> {
    flags.iter().map(move |flag| flags.without(flag))
}
