//! The contract between scalevm and the machine it runs on.
//!
//! `sync` and `vm` are written once and run on hosted threads, on a simulated many-core machine and
//! under an exhaustive checker. A kernel that embeds them implements the same contract for bare
//! metal. Each of these is a *machine*: a type that implements the small capability traits below.
//! This crate holds no implementation, only the contract and the [`conformance`] suite, which
//! checks that a machine keeps it.
//!
//! | capability | offers | kind |
//! |---|---|---|
//! | [`Atomics`] | atomic integers, pointers, pairs and plain shared cells | types |
//! | [`Cpus`] | the current CPU, pinning, relaxing | static: "this CPU" |
//! | [`Tasks`] | parking and unparking, task-local words | static: "this task" |
//! | [`Clock`] | monotonic nanoseconds | static |
//! | [`Topology`] | which CPUs a machine has | instance |
//! | [`Memory`] | physical frames | instance |
//! | [`Mmu`] | address translation, TLB flush and shootdown | instance |
//! | [`Execute`] | run one job on each CPU | instance |
//! | [`Contexts`] | the needs of a scheduler on a machine without tasks | both |
//!
//! Everything about "the CPU that runs this code" is static, because a kernel finds its CPU in a
//! register; everything about a particular machine (how many CPUs, which memory) is a value, so
//! that one process can hold several.
//!
//! # Ordering
//! Orderings mean the same as in [`core::sync::atomic`]. One operation is
//! added: [`Atomic::publish`], a store followed by a full fence, which real
//! hardware does in one instruction.
#![no_std]
#![warn(missing_docs, missing_debug_implementations)]

extern crate alloc;

mod anchor;
mod atomic;
pub mod conformance;
mod cpu;
mod debug;
mod memory;
mod mmu;
mod native;
mod pager;
mod pair;
pub mod pte;
mod schedule;
pub mod soft;
mod task;

pub use anchor::Anchor;
pub use atomic::{Atomic, AtomicInt, AtomicPair, Atomics, ConstInit, SharedCell};
pub use core::sync::atomic::Ordering;
pub use cpu::{CpuId, CpuRange, CpuSet, Cpus, MAX_CPUS, Pinned, Topology};
pub use memory::{Frame, Memory, PAGE_SHIFT, PAGE_SIZE, WORDS_PER_FRAME};
pub use mmu::{Access, Asid, Flush, KernelEntries, Mmu, PageFault, VaRange};
pub use native::NativeCell;
#[doc(hidden)]
pub use native::full_fence;
pub use pager::{Pager, PagerError, Truncate};
pub use pair::NativePair;
pub use schedule::{Contexts, Scheduler, TaskName};
pub use task::{Clock, Execute, Job, LOCAL_WORDS, Locals, Tasks};

/// Everything that locks and epochs need.
pub trait Machine: Atomics + Cpus + Tasks + Clock + Send + Sync + 'static {}
impl<M: Atomics + Cpus + Tasks + Clock + Send + Sync + 'static> Machine for M {}

/// Everything that the virtual-memory subsystem needs.
pub trait Platform: Machine + Topology + Memory + Mmu {}
impl<M: Machine + Topology + Memory + Mmu> Platform for M {}

// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
