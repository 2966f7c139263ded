//! Which lock a stack waits for, and on whose behalf.

mod futex;
mod holder;
mod kinds;
mod machinery;
mod names;
mod off;
mod spinning;

pub(crate) use futex::{is_condition, is_itself, own_function, user_spinning};
pub(crate) use holder::{held_as, runs_with, woke_by};
pub(crate) use kinds::kind;
pub(crate) use off::{Off, is_for_work, off};
pub(crate) use spinning::spinning;

use machinery::is_machinery;
use profile::Kind;

/// The lock waited for and the caller: the key of a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Wanted {
    pub name: String,
    pub kind: Kind,
    pub caller: String,
}

/// The lock and caller of a wait for a kernel lock of `kind`, by its kernel frames from the leaf.
pub(crate) fn wanted(kind: Kind, frames: &[String]) -> Wanted {
    let name = names::name(kind, frames).unwrap_or_else(|| profile::UNKNOWN.to_owned());
    Wanted {
        name,
        kind,
        caller: caller(frames).to_owned(),
    }
}

/// As [`wanted`], by the flags of `contention_begin`.
pub(crate) fn contended(flags: u32, frames: &[String]) -> Wanted {
    wanted(kinds::exactly(flags, frames), frames)
}

/// The function that takes a lock, by its kernel frames from the leaf.
pub(crate) fn caller(frames: &[String]) -> &str {
    let caller = frames.iter().find(|frame| !is_machinery(frame));
    caller.map_or("[kernel]", String::as_str)
}

/// Returns true if `name` matches `pattern`, in which a star matches anything.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, end)) = pattern.split_once('*') else {
        return name == pattern;
    };
    name.strip_prefix(start)
        .is_some_and(|rest| rest.ends_with(end))
}

#[cfg(test)]
mod tests;
