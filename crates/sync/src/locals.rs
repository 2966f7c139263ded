//! The users of the task-local words ([`machine::Locals`]).
//!
//! | words | user |
//! |---|---|
//! | 0 | the task's unused MCS nodes ([`crate::spin::Mcs`]) |
//! | 1 | the task's unused CLH nodes ([`crate::spin::Clh`]) |
//! | 2 | how long the task has slept ([`crate::sleepq`]) |
//! | 3 | the embedder: where the task's address space is |
//! | 4–56 | `watch::Order`: the locks the task holds |
//! | 57 | the next number of the task's acquisitions ([`crate::spin::Hapax`]) |
//! | 59 | the lock that the task gives up while it is off its CPU ([`crate::off_cpu`]) |
//! | 60 | how often the task has passed over sleepers ([`crate::obm::RestrictedObm`]) |
//! | 61 | the task's places in queues ([`crate::spin::Queued`]) |
//! | 62–63 | `watch`: how often the task has spun and slept for locks |

/// The task's unused MCS nodes.
pub(crate) const MCS_NODES: usize = 0;
/// The task's unused CLH nodes.
pub(crate) const CLH_NODES: usize = 1;
/// Nanoseconds asleep, wrapping.
pub(crate) const ASLEEP: usize = 2;
/// The embedder's word.
pub const EMBEDDER: usize = 3;
/// The number of locks that the task holds (low 32 bits), and of those that did not fit (high).
pub(crate) const HELD_DEPTH: usize = 4;
/// The first word of the held locks, two a lock.
pub(crate) const HELD_FIRST: usize = 5;
/// The number of held locks that fit.
pub(crate) const HELD_MAX: usize = 26;
/// The next number of the task's acquisitions; a multiple of a block's size if there is none.
pub(crate) const HAPAX: usize = 57;
/// The lock of the whole kernel, if the task holds it.
pub(crate) const KERNEL_LOCK: usize = 59;
/// Releases that left tasks asleep, up to the one that wakes one.
pub(crate) const PASSES: usize = 60;
/// The task's places in queues.
pub(crate) const QUEUE_PLACES: usize = 61;
/// Rounds of spinning, wrapping.
pub(crate) const SPINS: usize = 62;
/// Sleeps, wrapping.
pub(crate) const SLEEPS: usize = 63;

const _: () = assert!(HELD_FIRST + 2 * HELD_MAX <= HAPAX && SLEEPS < machine::LOCAL_WORDS);
