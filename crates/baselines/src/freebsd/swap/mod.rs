//! Swap reservation by global counters (S5).
//!
//! Each private writable mapping reserves the swap space it may come to need. Case study 000 ends
//! here: once delayed invalidation scales, every `mmap` and `munmap` contends for this account.
//!
//! FreeBSD counts twice: the system's total against the swap space, and each user's for a resource
//! limit that is off by default. The workloads run as one user, so all CPUs share both counters.
//! Its system-wide limit is off by default too (overcommit); the counting is not. Here the limit
//! holds, as [`vm::system::Reservation`] promises.

mod atomic;
mod mutex;

pub use atomic::AtomicSwap;
pub use mutex::{MutexSwap, SwapDevices, SwapUser};
