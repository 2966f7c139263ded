//! Private time: the computation of a workload's call in addition to the simulator's charges.
//!
//! One number a workload, so that one task on a profile of a computer (`scalevm calibrate`)
//! takes as long as one thread of that computer runs the same code (`--on hosted`), which
//! enters no kernel, plus `kernel.syscall` for each call. Fitted once, on 2 CPUs of Cascade
//! Lake in a virtual machine, one of the fastest of nine runs each, and never to a curve:
//!
//! | workload | hosted, ns an iteration | calls | + system calls | simulated without | private, ns a call |
//! |---|---|---|---|---|---|
//! | mmap1 | 181.7 | 2 | 365.9 | 337.8 | 14 |
//! | brk1 (one call) | 114.0 | 1 | 206.1 | 176.2 | 30 |
//! | page_fault1 | 1,172 | 0 | | 1,449 | the mean |
//!
//! A fault of page_fault1 is no call: its cost is `kernel.fault` and `memory.zero_page`
//! of the profile, and nothing is left to be fitted; hosted does not have the first. A recorded
//! program computes between its calls what it computed when it was recorded.

use workloads::Workload;

/// Nanoseconds that a call of the workload computes in addition to the simulator's charges.
pub(super) fn private(workload: &Workload) -> f64 {
    const MMAP1: f64 = 14.0;
    const BRK1: f64 = 30.0;
    match workload.name {
        "mmap1" => MMAP1,
        "brk1" => BRK1,
        _ if workload.replay().is_some() => 0.0,
        // Not fitted: the mean of those that are.
        _ => (MMAP1 + BRK1) / 2.0,
    }
}
