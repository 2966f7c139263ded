//! Steps as text.

use crate::address::{PAGE, Range};
use crate::step::{Backing, Call, Map, Remap, Scarcity, Step, Transfer, Where, Width};
use std::fmt::{Display, Formatter, Result};

impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}: {}", self.process, self.call)
    }
}

impl Display for Call {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Call::Map(map) => map.fmt(f),
            Call::Unmap(range) => write!(f, "unmap {range}"),
            Call::Protect(range, prot) => write!(f, "protect {range} {prot}"),
            Call::Remap(remap) => remap.fmt(f),
            Call::Advise(range, advice) => write!(f, "advise {range} {}", advice.name()),
            Call::Sync(range, flags) => write!(f, "sync {range}{flags}"),
            Call::Lock(range) => write!(f, "lock {range}"),
            Call::LockOnFault(range) => write!(f, "lock-on-fault {range}"),
            Call::Unlock(range) => write!(f, "unlock {range}"),
            Call::LockAll(flags) => write!(f, "lock-all{flags}"),
            Call::UnlockAll => write!(f, "unlock-all"),
            Call::InCore(range) => write!(f, "in-core {range}"),
            Call::Break(bytes) => write!(f, "break {}", Length(*bytes)),
            Call::Fork(child) => write!(f, "fork {child}"),
            Call::Exit => write!(f, "exit"),
            Call::Replace => write!(f, "replace"),
            Call::Load(address, width) => write!(f, "load {width} {address}"),
            Call::Store(address, width, value) => write!(f, "store {width} {address} {value:#x}"),
            Call::Truncate(file, bytes) => write!(f, "truncate {file} {}", Length(*bytes)),
            Call::Read(transfer) => write!(f, "read {transfer}"),
            Call::Write(transfer, byte) => write!(f, "write {transfer} {byte:#x}"),
            Call::Regions(range) => write!(f, "regions {range}"),
            Call::Dump(range) => write!(f, "dump {range}"),
            Call::Scarce(scarcity) => write!(f, "scarce {scarcity}"),
        }
    }
}

impl Display for Map {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Map { bytes, prot, .. } = self;
        let bytes = Length(*bytes);
        let sharing = if self.shared { "shared" } else { "private" };
        match self.at {
            Where::Fixed(at) => write!(f, "map fixed {at}")?,
            Where::FixedNoReplace(at) => write!(f, "map fixed-noreplace {at}")?,
            Where::Hint(at, _) => write!(f, "map hint {at}")?,
            Where::Anywhere(_) => write!(f, "map anywhere")?,
        }
        write!(
            f,
            " {bytes} {prot} {sharing} {}{}",
            self.backing, self.flags
        )?;
        match self.at {
            Where::Hint(_, handle) | Where::Anywhere(handle) => write!(f, " as h{handle}"),
            Where::Fixed(_) | Where::FixedNoReplace(_) => Ok(()),
        }
    }
}

impl Display for Backing {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Backing::File {
            file,
            offset,
            read_only,
        } = self
        else {
            return write!(f, "anonymous");
        };
        write!(f, "file {file} @{}", Length(*offset))?;
        write!(f, "{}", if *read_only { " readonly" } else { "" })
    }
}

impl Display for Remap {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "remap {} {}", self.old, Length(self.bytes))?;
        if let Some(at) = self.fixed {
            write!(f, " fixed {at}")?;
        }
        write!(f, "{}", self.flags)?;
        match self.handle {
            Some(handle) => write!(f, " as h{handle}"),
            None => Ok(()),
        }
    }
}

impl Display for Scarcity {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Scarcity::Left(frames) => write!(f, "left {frames}"),
            Scarcity::Frame(nth) => write!(f, "frame {nth}"),
            Scarcity::File(nth) => write!(f, "file {nth}"),
            Scarcity::Swap(nth) => write!(f, "swap {nth}"),
        }
    }
}

impl Display for Transfer {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Transfer {
            file,
            offset,
            bytes,
        } = self;
        write!(f, "{file} @{} {}", Length(*offset), Length(*bytes))
    }
}

impl Display for Width {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            Width::Byte => "byte",
            Width::Word => "word",
        })
    }
}

impl Display for Range {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{} {}", self.start, Length(self.bytes))
    }
}

/// A number of bytes: in pages if it is whole pages, in hexadecimal if it is absurd.
struct Length(u64);

impl Display for Length {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.0 {
            bytes if bytes >= 1 << 40 => write!(f, "{bytes:#x}"),
            bytes if bytes > 0 && bytes.is_multiple_of(PAGE) => write!(f, "{}p", bytes / PAGE),
            bytes => write!(f, "{bytes}"),
        }
    }
}
