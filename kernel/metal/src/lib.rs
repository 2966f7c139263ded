//! x86-64 processors without an operating system, as a machine.
//!
//! A loader that speaks PVH (QEMU's `-kernel`) starts the kernel in `boot.s`, which calls
//! `kernel_main`, the kernel's own. [`start_cpus`] starts the other CPUs; from then on [`Metal`]
//! keeps the contract of `machine`.
//!
//! | module | contents |
//! |---|---|
//! | `boot` | from the loader to `kernel_main`: memory, command line, the first CPU |
//! | `acpi`, `start` | which CPUs there are, and how they start |
//! | `cpu` | data of one CPU; pins |
//! | `trap`, `frame` | exceptions, interrupts, system calls |
//! | `apic` | interrupts between CPUs, timers |
//! | `clock` | nanoseconds since the start |
//! | `memory`, `stacks` | frames that are handed over; kernel stacks with guard pages |
//! | `mmu`, `shootdown`, `access` | address spaces, flushes, a task's memory |
//! | `disk` | a virtio block device |
//! | `context`, `task`, `execute` | stacks to switch to; tasks without and with a scheduler |
//! | `sample` | samples of the CPUs' work, by their timers |
//! | `report` | console, report channel, the end of the machine, backtraces |
//!
//! # The kernel is not preempted
//! A timer or a kick that comes while the kernel runs waits for a safe point: the return to user
//! mode, [`machine::Tasks::safe_point`], or the wait for an interrupt. Only shootdowns are served
//! at once. So a context migrates to another CPU only where it allows that, and an interrupt
//! handler never waits.
//!
//! # Address spaces
//! A context has tables like registers: the CPU loads them when it switches to the context, and the
//! kernel's own when it switches to one without tables, such as its idle one. So no CPU uses the
//! tables of a task that has ended. A task that is told when it is back on a CPU
//! ([`machine::Locals::at_switch`]) activates its space itself; until then the CPU has the kernel's
//! tables, unless the last ones it had were those of that space.
#![no_std]

extern crate alloc;

mod access;
mod acpi;
mod apic;
mod boot;
mod builtins;
mod clock;
mod context;
mod cpu;
mod disk;
mod execute;
mod frame;
mod memory;
mod mmu;
pub mod report;
pub mod sample;
mod shootdown;
mod stacks;
mod start;
mod task;
mod trap;

pub use access::{copy_from_user, copy_to_user, exchange_user};
pub use boot::{command_line, initrd};
pub use clock::{cycles, nanoseconds, park_until, start_of_time};
pub use context::{Context, kick_others, set_thread_pointer};
pub use cpu::{MOST as MOST_CPUS, Pin};
pub use disk::{Disk, DiskError, Transfer};
pub use execute::schedule;
pub use frame::{Frame as TrapFrame, Trap};
pub use memory::{DIRECT_MAP, heap};
pub use shootdown::{flush_late, forget_others};
pub use stacks::take_frames_from;
pub use start::{hardware_capabilities, start_cpus};

/// The machine on which this code runs. There is only one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metal;

machine::native_atomics!(Metal);
