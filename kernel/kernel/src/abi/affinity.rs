//! Where threads run.

use super::{Answer, Arguments, Errno};
use crate::affinity::Affinity;
use crate::process::{PROCESSES, Thread, ThreadRef};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use machine::{Cpus, Pinned, Topology};
use metal::{MOST_CPUS, Metal};

pub fn sched_getaffinity(thread: &mut Thread, [tid, bytes, to, ..]: Arguments) -> Answer {
    let affinity = *found(thread, tid)?.affinity.lock();
    let mask: Vec<[u8; 8]> = affinity.words().map(u64::to_le_bytes).collect();
    let mask = mask.as_flattened();
    if bytes < mask.len() || bytes % size_of::<usize>() != 0 {
        return Err(Errno::INVAL);
    }
    thread.write_bytes(to, mask)?;
    Ok(mask.len())
}

/// Another thread that is in user mode migrates at once, but the call does not wait for that.
pub fn sched_setaffinity(thread: &mut Thread, [tid, bytes, from, ..]: Arguments) -> Answer {
    let mut mask = vec![0; bytes.min(MOST_CPUS.div_ceil(8))];
    thread.read_bytes(from, &mut mask)?;
    let found = found(thread, tid)?;
    thread.refuse_control(&found.process)?;
    found.set_affinity(Affinity::of(&mask).ok_or(Errno::INVAL)?);
    Ok(0)
}

/// The thread with this number; the caller if it is 0.
pub fn found(thread: &Thread, tid: usize) -> Result<Arc<ThreadRef>, Errno> {
    let tid = match tid as u32 {
        0 => return Ok(thread.shared.clone()),
        tid => tid,
    };
    let mut processes = PROCESSES.all();
    let found = processes.find_map(|process| process.thread(tid));
    found.ok_or(Errno::SRCH)
}

/// The CPU that the thread was on. All CPUs are on one node.
pub fn getcpu(thread: &mut Thread, [cpu, node, ..]: Arguments) -> Answer {
    let here = {
        let pin = Metal::pin();
        Metal.cpus().index_of(pin.cpu())
    };
    if cpu != 0 {
        thread.write(cpu, here as u32)?;
    }
    if node != 0 {
        thread.write(node, 0_u32)?;
    }
    Ok(0)
}
