//! Spin locks.
//!
//! | lock | bytes | order | waits on | uncontended release |
//! |---|---|---|---|---|
//! | [`TestAndSet`] | 1 | any | the lock | store |
//! | [`Ticket`] | 8 | FIFO | the lock | store |
//! | [`Proportional`] | 8 | FIFO | the lock, delayed | store |
//! | [`Conbo`] | 8 | FIFO | the lock, delayed unless next in line | store |
//! | [`Mcs`] | 8 + a node a holder or waiter | FIFO | its own node | compare-and-swap |
//! | [`Clh`] | 8 + a node a lock, holder or waiter | FIFO | its predecessor's node | store |
//! | [`K42`] | 16 + a node on a waiter's stack | FIFO | its own node | compare-and-swap |
//! | [`Reciprocating`] | 8 + a node on a waiter's stack | last first, in turns | its own node | compare-and-swap |
//! | [`Hapax`] | 16 | FIFO | a word of the machine's 256 | two stores |
//! | [`Qspinlock`] | 4 + a node a waiter | FIFO | the lock if first, else its own node | and |
//! | [`Cna`] | 4 + a node a waiter | own NUMA node first | the lock if first, else its own node | and |
//!
//! Time to hand over with `n` waiters: O(n) for the first four (all waiters fetch the cache line
//! again), O(1) for the queue locks.
//!
//! # Preemption
//! A FIFO lock goes to the waiter whose turn it is, running or not. If that waiter, or the holder,
//! has lost its CPU, all others wait for the scheduler: with more tasks than CPUs each acquisition
//! can cost a time slice. So the contract is:
//!
//! - *A kernel* disables preemption from before `lock` until after `unlock` (holds a
//!   [`machine::Cpus::Pin`]). Then no more CPUs compete than exist, and every task in the queue
//!   runs.
//! - *Hosted threads* cannot do that. There [`machine::Cpus::relax`] yields the time slice after a
//!   bounded number of pauses, so every wait ends, but slowly: FIFO spin locks lose two orders of
//!   magnitude when oversubscribed, [`TestAndSet`] one. Use a parking lock where tasks may
//!   outnumber CPUs.
//! - No task parks while it holds a spin lock, and no interrupt handler acquires one that the
//!   interrupted task may hold.
//!
//! [`Mcs`], [`Clh`], [`Qspinlock`] and [`Cna`] take nodes from the calling task's words, so they
//! must not be used while the task's words are being destroyed.

mod clh;
mod conbo;
mod exit;
mod hapax;
mod k42;
mod mcs;
pub(crate) mod osq;
pub(crate) mod place;
pub(crate) mod pool;
mod queued;
mod reciprocating;
mod tas;
mod ticket;

pub(crate) use clh::ClhNode;
pub use clh::{Clh, ClhHeld};
pub use conbo::{Conbo, ConboPace};
pub use hapax::{Hapax, HapaxHeld};
pub use k42::K42;
pub use mcs::{Mcs, McsHeld, McsNode};
pub use queued::{Cna, Qspinlock, Queued};
pub use reciprocating::{Reciprocating, ReciprocatingHeld};
pub use tas::TestAndSet;
pub use ticket::{Eager, Pace, Proportional, ProportionalPace, Ticket, TicketLock};
