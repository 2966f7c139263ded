//! An event as a line of text. Lines are for `grep` and scripts: their form does not change.

use crate::{Call, Event, FaultKind, Place, Prot, Sharing, WaitFor, What};
use std::fmt::{self, Display, Formatter};

/// `0.000004000 t0 +1000 munmap m0+0x0 12288 = 0`: the time in seconds, the thread, the nanoseconds
/// that it computed before, and what it did.
impl Display for Event {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (seconds, nanoseconds) = (self.at / 1_000_000_000, self.at % 1_000_000_000);
        write!(
            f,
            "{seconds}.{nanoseconds:09} t{} +{} {}",
            self.thread, self.computed, self.what
        )
    }
}

impl Display for What {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            What::Call { call, error, parts } => {
                write!(f, "{call}")?;
                for (at, length) in parts {
                    write!(f, " and {at} {length}")?;
                }
                match error {
                    0 => write!(f, " = 0"),
                    error => write!(f, " = -{error}"),
                }
            }
            What::Given { call } => write!(f, "given {call}"),
            What::Fault {
                at,
                pages,
                write,
                kind,
                in_kernel,
            } => {
                let access = if *write { "write" } else { "read" };
                let kind = match kind {
                    FaultKind::Missing => "missing",
                    FaultKind::Protected => "protected",
                };
                let whose = if *in_kernel { " in-kernel" } else { "" };
                write!(f, "fault {at} pages {pages} {access} {kind}{whose}")
            }
            What::Unknown => write!(f, "unknown"),
            What::Start { thread } => write!(f, "start t{thread}"),
            What::Fork { thread, borrows } => {
                let how = if *borrows { " borrows" } else { "" };
                write!(f, "fork t{thread}{how}")
            }
            What::Exec => write!(f, "exec"),
            What::Exit => write!(f, "exit"),
            What::Wait {
                on,
                nanoseconds,
                by,
            } => {
                write!(f, "wait {} {nanoseconds} ns", on.name())?;
                by.map_or(Ok(()), |(thread, number)| {
                    write!(f, " by t{thread} wake {number}")
                })
            }
            What::Wake { thread } => write!(f, "wake t{thread}"),
            What::Hold {
                process,
                write,
                nanoseconds,
            } => {
                let how = if *write { "write" } else { "read" };
                write!(f, "hold p{process} {how} {nanoseconds} ns")
            }
        }
    }
}

impl Display for Call {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name())?;
        match self {
            Call::Map { mapping, .. } | Call::Break { mapping, .. } => write!(f, " m{mapping}")?,
            _ => self.at().map_or(Ok(()), |at| write!(f, " {at}"))?,
        }
        match self {
            Call::Remap { length, .. } => write!(f, " {length}")?,
            _ => self
                .length()
                .map_or(Ok(()), |length| write!(f, " {length}"))?,
        }
        match self {
            Call::Map { .. } => mapped(self, f),
            Call::Protect { prot, .. } => write!(f, " {prot}"),
            Call::Advise { advice, .. } => write!(f, " {advice:?}"),
            Call::Remap { new_length, to, .. } => {
                write!(f, " to {new_length}")?;
                to.map_or(Ok(()), |to| write!(f, " m{to}"))
            }
            Call::Other { number } => write!(f, " {number}"),
            _ => Ok(()),
        }
    }
}

/// What is mapped, and how.
fn mapped(call: &Call, f: &mut Formatter<'_>) -> fmt::Result {
    let Call::Map {
        prot,
        sharing,
        file,
        over,
        populate,
        no_reserve,
        huge,
        ..
    } = call
    else {
        return Ok(());
    };
    let sharing = match sharing {
        Sharing::Private => "private",
        Sharing::Shared => "shared",
    };
    write!(f, " {prot} {sharing}")?;
    file.map_or(Ok(()), |(file, offset)| write!(f, " f{file}+{offset:#x}"))?;
    over.map_or(Ok(()), |over| write!(f, " over {over}"))?;
    let flags = [
        (populate, "populate"),
        (no_reserve, "noreserve"),
        (huge, "huge"),
    ];
    let mut set = flags.iter().filter(|(is_set, _)| **is_set);
    set.try_for_each(|(_, name)| write!(f, " {name}"))
}

impl Display for Place {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "m{}+{:#x}", self.mapping, self.offset)
    }
}

impl Display for Prot {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let rights = [(self.read, 'r'), (self.write, 'w'), (self.execute, 'x')];
        rights
            .iter()
            .try_for_each(|(has, letter)| write!(f, "{}", if *has { *letter } else { '-' }))
    }
}

impl WaitFor {
    /// All of them.
    pub const ALL: [WaitFor; 6] = [
        WaitFor::Futex,
        WaitFor::Pipe,
        WaitFor::Poll,
        WaitFor::Child,
        WaitFor::Time,
        WaitFor::Other,
    ];

    /// Its name in output.
    pub fn name(self) -> &'static str {
        match self {
            WaitFor::Futex => "futex",
            WaitFor::Pipe => "pipe",
            WaitFor::Poll => "poll",
            WaitFor::Child => "child",
            WaitFor::Time => "time",
            WaitFor::Other => "other",
        }
    }
}
