//! Memory barriers in all threads (`membarrier`).

use super::{Answer, Arguments, Errno};
use crate::process::Thread;
use core::sync::atomic::Ordering;
use linux_raw_sys::general::membarrier_cmd;
use machine::{Asid, CpuSet, Flush, Mmu, Topology, VaRange};
use metal::Metal;

const QUERY: usize = membarrier_cmd::MEMBARRIER_CMD_QUERY as usize;
const GLOBAL: usize = membarrier_cmd::MEMBARRIER_CMD_GLOBAL as usize;
const EXPEDITED: usize = membarrier_cmd::MEMBARRIER_CMD_PRIVATE_EXPEDITED as usize;
const REGISTER: usize = membarrier_cmd::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED as usize;

/// Of the expedited barriers, supports only those of one process, which registers first.
pub fn membarrier(thread: &mut Thread, [command, flags, ..]: Arguments) -> Answer {
    let registered = &thread.process.has_barriers;
    if flags != 0 {
        return Err(Errno::INVAL);
    }
    match command {
        QUERY => return Ok(GLOBAL | EXPEDITED | REGISTER),
        REGISTER => registered.store(true, Ordering::Relaxed),
        EXPEDITED if !registered.load(Ordering::Relaxed) => return Err(Errno::PERM),
        GLOBAL | EXPEDITED => everywhere(),
        _ => return Err(Errno::INVAL),
    }
    Ok(0)
}

/// Interrupts each CPU that is not idle. An interrupt is a barrier; for the other CPUs the way to
/// user mode is one.
fn everywhere() {
    let mut all = CpuSet::default();
    (0..Metal.cpus().len()).for_each(|cpu| all.insert(cpu));
    let nothing = Flush::Range(VaRange::sized(0, 0));
    Metal.shootdown(&all, Asid(0), nothing);
}
