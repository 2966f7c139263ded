//! `/proc/meminfo`.

use crate::errno::Errno;
use crate::fs::live::Sheet;
use crate::system::system;
use core::fmt::Write;
use machine::PAGE_SIZE;

/// Physical memory and swap space, in bytes.
pub struct Amounts {
    /// Memory that programs may get.
    pub total: u64,
    /// The free part of it.
    pub free: u64,
    /// Swap space.
    pub swap: u64,
    /// The free part of it.
    pub free_swap: u64,
    /// The memory that programs may come to need.
    pub committed: u64,
}

/// The amounts, a moment ago.
pub fn amounts() -> Amounts {
    let vm = &system().vm;
    let bytes = |pages: u64| pages * PAGE_SIZE as u64;
    let slots = vm.swap_slots();
    Amounts {
        total: bytes(vm.frames().total() as u64),
        free: bytes(vm.frames().free_count() as u64),
        swap: slots.map_or(0, |slots| bytes(u64::from(slots.slots))),
        free_swap: slots.map_or(0, |slots| {
            bytes(u64::from(slots.slots).saturating_sub(slots.used))
        }),
        committed: bytes(vm.committed()),
    }
}

/// Those of Linux's lines that are counted here. Files are only in memory, so memory becomes free
/// only through the swap space.
pub fn meminfo(to: &mut Sheet) -> Result<(), Errno> {
    let amounts = amounts();
    for (name, bytes) in [
        ("MemTotal:", amounts.total),
        ("MemFree:", amounts.free),
        ("MemAvailable:", amounts.free),
        ("SwapTotal:", amounts.swap),
        ("SwapFree:", amounts.free_swap),
        ("Committed_AS:", amounts.committed),
    ] {
        writeln!(to, "{name:<16}{:>8} kB", bytes >> 10)?;
    }
    Ok(())
}
