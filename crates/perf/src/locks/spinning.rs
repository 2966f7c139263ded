//! Samples that spin for a kernel lock.

use super::kinds::sleeping;
use super::{Wanted, matches, wanted};
use profile::Kind;

/// Functions that only spin. They count anywhere in the stack: the task still spins while an
/// interrupt runs above them.
const SPINNING: &[(&str, Spin)] = &[
    ("native_queued_spin_lock_slowpath", Spin::Spinlock),
    ("__pv_queued_spin_lock_slowpath", Spin::Spinlock),
    ("queued_spin_lock_slowpath", Spin::Spinlock),
    ("queued_read_lock_slowpath", Spin::Read),
    ("queued_write_lock_slowpath", Spin::Write),
    ("rwsem_optimistic_spin", Spin::Sleeping),
    ("rwsem_spin_on_owner", Spin::Sleeping),
    ("mutex_optimistic_spin", Spin::Sleeping),
    ("mutex_spin_on_owner", Spin::Sleeping),
    ("osq_lock", Spin::Sleeping),
];

/// Functions that spin themselves where the compiler has inlined the loop, and otherwise sleep or
/// call: they spin if they are the leaf.
const SPINNING_LEAVES: &[&str] = &["rwsem_down_*_slowpath", "__mutex_lock", "__mutex_lock_*"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Spin {
    Spinlock,
    Read,
    Write,
    /// For a sleeping lock.
    Sleeping,
}

/// The lock that a stack spins for, if it does, by its kernel frames from the leaf.
pub(crate) fn spinning(frames: &[String]) -> Option<Wanted> {
    let at = frames.iter().position(|frame| spin(frame).is_some());
    let kind = match at {
        Some(at) => match spin(&frames[at])? {
            Spin::Read => Kind::RwlockRead,
            Spin::Write => Kind::RwlockWrite,
            Spin::Sleeping => sleeping(&frames[at..])?,
            Spin::Spinlock => match frames.get(at + 1).and_then(|frame| spin(frame)) {
                // Readers and writers queue on a spin lock inside the rwlock.
                Some(Spin::Read) => Kind::RwlockRead,
                Some(Spin::Write) => Kind::RwlockWrite,
                _ => Kind::Spinlock,
            },
        },
        None if spins_as_leaf(frames.first()?) => sleeping(frames)?,
        None => return None,
    };
    Some(wanted(kind, &frames[at.unwrap_or(0)..]))
}

fn spin(frame: &str) -> Option<Spin> {
    SPINNING
        .iter()
        .find(|(name, _)| *name == frame)
        .map(|&(_, spin)| spin)
}

fn spins_as_leaf(frame: &str) -> bool {
    SPINNING_LEAVES
        .iter()
        .any(|pattern| matches(pattern, frame))
}
