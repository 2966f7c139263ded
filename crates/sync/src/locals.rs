//! Who uses which task-local word ([`machine::Locals`]).
//!
//! | words | user |
//! |---|---|
//! | 0–3 | `spin`: pools of queue nodes |
//! | 4–60 | `watch::Order`: the locks the task holds |
//! | 61 | free |
//! | 62–63 | `watch`: how often the task has spun and slept for locks |

/// How many locks the task holds (low 32 bits) and how many more did not fit (high).
pub(crate) const HELD_DEPTH: usize = 4;
/// The first word of the held locks, two a lock.
pub(crate) const HELD_FIRST: usize = 5;
/// How many held locks fit.
pub(crate) const HELD_MAX: usize = 28;
/// Rounds of spinning, wrapping.
pub(crate) const SPINS: usize = 62;
/// Sleeps, wrapping.
pub(crate) const SLEEPS: usize = 63;

const _: () = assert!(HELD_FIRST + 2 * HELD_MAX <= SPINS && SLEEPS < machine::LOCAL_WORDS);
