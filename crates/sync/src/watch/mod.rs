//! Watching locks: which locks tasks wait for, where, and in which order locks nest.
//!
//! [`Watched`] wraps a lock and tells an [`Observer`] of each acquisition, with the lock's class
//! and the caller's source line. [`LockProfile`] counts and times (like FreeBSD's LOCK_PROFILING),
//! [`Order`] finds lock orders that can deadlock (like FreeBSD's WITNESS and Linux's lockdep),
//! [`Both`] does both, and [`Off`] does nothing: the wrapper then has the size of the lock and
//! compiles to its instructions.
//!
//! The observer is a type, so one binary can hold watched and unwatched locks, and a test can name
//! its observer in any build. [`DefaultObserver`] is the build's choice: [`Order`] with debug
//! assertions or feature `lock-order`, [`LockProfile`] with feature `lock-profile`, [`Both`] with
//! both, else [`Off`].
//!
//! Observers keep their data in `core`'s types, not the machine's, and per process: a simulator
//! does not charge for being watched, a checker does not see it as part of the program, and
//! watching takes no lock.
//!
//! A call site is the caller of `lock`, by `#[track_caller]`; a function between the user and
//! [`Watched`] needs the attribute too, or it is the call site itself.

mod class;
mod locked;
mod observer;
pub mod order;
pub mod profile;
mod rw;
mod shared;
mod site;

pub use class::{ClassState, LockClass, MAX_CLASSES, Nesting, classes};
pub use locked::{Held, Watched};
pub use observer::{Acquired, Attempt, Both, Kind, Observer, Off, Wait};
pub use order::Order;
pub use profile::LockProfile;
pub use site::MAX_SITES;

#[doc(inline)]
pub use crate::effort::{note_sleep, note_spins};
#[doc(inline)]
pub use crate::lock_class;

/// The observer of this build.
#[cfg(all(
    any(debug_assertions, feature = "lock-order"),
    not(feature = "lock-profile")
))]
pub type DefaultObserver = Order;

/// The observer of this build.
#[cfg(all(
    any(debug_assertions, feature = "lock-order"),
    feature = "lock-profile"
))]
pub type DefaultObserver = Both<Order, LockProfile>;

/// The observer of this build.
#[cfg(all(
    not(any(debug_assertions, feature = "lock-order")),
    feature = "lock-profile"
))]
pub type DefaultObserver = LockProfile;

/// The observer of this build.
#[cfg(not(any(debug_assertions, feature = "lock-order", feature = "lock-profile")))]
pub type DefaultObserver = Off;
