//! A scheduler: which task runs on which CPU.
//!
//! [`Sched`] implements [`machine::Scheduler`] over [`machine::Contexts`]: tasks that park and are
//! unparked, sleep, yield and are preempted. It knows how a task leaves a CPU, how another one
//! arrives, and how a wake-up meets a task that is about to park. A [`Policy`] knows the queues:
//! which task is next, where a woken task goes, and how long a task may run.
//!
//! | module | content |
//! |---|---|
//! | `state` | a task's state: active, with a permit, or parked |
//! | `task`, `table` | a task's words, and where they live |
//! | `cpu` | the data of one CPU |
//! | `switch` | how a CPU goes from one context to another |
//! | `sleep` | tasks that wait for a time |
//! | `sched` | the operations |
//! | `new_task` | tasks reserved beforehand, which can begin whatever memory is left then |
//! | `best` | the default policy |
//! | `heap` | an intrusive heap, for queues by time |
//! | `openbsd`, `freebsd`, `linux` | policies: those of OpenBSD 7.0, FreeBSD 12 and Linux 3.0 |
//! | `queue`, `cpuset`, `handed` | for these: lists of tasks, sets of CPUs, and a lock that a switch hands on |
#![no_std]
#![warn(missing_docs, missing_debug_implementations)]

extern crate alloc;

pub mod best;
mod cpu;
mod cpuset;
mod debug;
pub mod freebsd;
mod handed;
mod heap;
pub mod linux;
mod new_task;
pub mod openbsd;
mod policy;
mod queue;
mod sched;
mod sleep;
#[doc(hidden)]
pub mod state;
mod switch;
mod table;
mod task;

pub use best::{Best, Bounds};
pub use new_task::NewTask;
pub use policy::{Leaving, Policy, Tick, Why};
pub use sched::Sched;
pub use task::{Task, TaskRef};

// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
