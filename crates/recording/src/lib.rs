//! A program's memory operations: the calls and faults of each thread, with the thread's own
//! computing between them, and which thread woke which.
//!
//! A [`Recording`] holds no content of memory or files. Addresses are offsets in
//! [mappings](Place), and time is a thread's own: what the kernel took is not in it, since a replay
//! makes that anew.
//!
//! A [`Writer`] stores a recording while it is made, and a [`Reader`] reads it back. A [`Summary`]
//! has its figures; [`Recording::cut`] and [`Recording::only`] make smaller ones.

mod beside;
mod call;
mod environment;
mod error;
mod event;
mod file;
mod memory;
mod part;
mod recording;
mod renumber;
mod role;
mod scale;
mod summary;
mod text;

pub use environment::Environment;
pub use error::Error;
pub use event::{Advice, Call, Event, FaultKind, File, Place, Prot, Sharing, WaitFor, What};
pub use file::{End, Reader, Writer};
pub use recording::{Birth, Lost, Process, Recording, Thread};
pub use role::Role;
pub use summary::{Calls, Group, Holder, Span, Summary, Work};
