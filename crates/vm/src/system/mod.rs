//! The differences between operating systems' designs, as traits.
//!
//! A system is a machine and six parts. Each part is made once for a VM; by default it does nothing
//! or is the project's own design.
//!
//! | part | what designs vary in it |
//! |---|---|
//! | [`Gate`] | the locks of a space, and the records of its regions; an operation passes it once |
//! | [`Invalidation`] | how removal by the reverse map waits for removals under way |
//! | [`PvLocking`] | which lock protects a page's PV list |
//! | [`PvChunks`] | where PV entries are, if not in tables |
//! | [`PageQueues`] | where pages queue |
//! | [`Reservation`] | how swap space is reserved |

mod choices;
mod gate;
mod invalidation;
mod part;
mod pv;
mod queues;
mod reservation;
mod seldom;

pub use choices::{ForkTables, FramePools, ObjectPages};
pub use gate::{Change, Gate, Mapping, NoGate, Op};
pub use invalidation::Invalidation;
pub use part::{Extent, Part};
pub use pv::{NoChunks, PvByteHeld, PvBytes, PvChunks, PvLocking, Victim};
pub use queues::{NoQueues, PageQueues, Purpose};
pub use reservation::Reservation;
pub use seldom::Seldom;

use machine::Platform;

/// A system: a machine, and the parts in which designs of the field differ.
pub trait System: Sized + 'static {
    /// The machine on which it runs.
    type Machine: Platform;
    /// The locks of a space in addition to its slots', and its records.
    type Gate: Gate<Self::Machine>;
    /// How removal by the reverse map waits.
    type Invalidation: Invalidation<Self::Machine>;
    /// How swap space is reserved.
    type Swap: Reservation<Self::Machine>;
    /// The queues of pages.
    type Queues: PageQueues<Self::Machine>;
    /// The locks of pages' PV lists.
    type PvLocks: PvLocking<Self::Machine>;
    /// The place of PV entries, if not in tables.
    type PvChunks: PvChunks<Self::Machine>;
}
