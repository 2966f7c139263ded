//! Swap space on a disk, and the task that keeps memory free.

use crate::system::{Lock, system};
use alloc::boxed::Box;
use ipc::Kernel;
use linux_raw_sys::errno::{EINVAL, EIO};
use machine::{Clock, Frame, PAGE_SIZE, Pager, PagerError, Scheduler, Topology};
use metal::{Disk, Metal, Transfer};
use vm::swap::SwapSpace;

/// The time for which a task waits before it checks the disk again, in nanoseconds.
const LOOK: u64 = 50_000;
/// How often the daemon checks the free memory, in nanoseconds.
const PERIOD: u64 = 10_000_000;
/// The daemon starts to free memory when less than this part is free, and stops when the part
/// [`HIGH`] is free.
const LOW: usize = 64;
const HIGH: usize = 32;

/// The disk as a store. One task at a time uses it; others sleep for the lock.
struct Store(Lock<Disk>);

impl Store {
    /// Transfers pages. The task sleeps while the disk works, so that other tasks run.
    fn transfer(&self, transfer: Transfer, first: u64, frames: &[Frame]) -> Result<(), PagerError> {
        let mut nap = || system().kernel.sleep_until(Metal::now() + LOOK);
        let done = self.0.lock().transfer(transfer, first, frames, &mut nap);
        done.map_err(|_| PagerError { errno: EIO as i32 })
    }
}

impl Pager<Metal> for Store {
    unsafe fn read(&self, _: &Metal, first: u64, frames: &[Frame]) -> Result<(), PagerError> {
        self.transfer(Transfer::Read, first, frames)
    }

    /// Writes pages. The store only keeps whole pages.
    unsafe fn write(
        &self,
        _: &Metal,
        first: u64,
        frames: &[Frame],
        bytes: usize,
    ) -> Result<(), PagerError> {
        if bytes != frames.len() * PAGE_SIZE {
            return Err(PagerError {
                errno: EINVAL as i32,
            });
        }
        self.transfer(Transfer::Write, first, frames)
    }
}

/// All of the machine's disk as swap space, if it has one.
pub fn space() -> Option<SwapSpace<Metal>> {
    let disk = Disk::find().unwrap_or_else(|error| panic!("the disk: {error}"))?;
    let slots = disk.pages().min(u32::MAX.into()) as u32;
    let store = Box::new(Store(Lock::new(disk)));
    let space = SwapSpace::new(Metal.cpus(), store, slots).expect("memory for the swap space");
    Some(space)
}

/// Starts the daemon, if there is swap space: it frees memory in advance.
pub fn begin() {
    if system().vm.swap_slots().is_some() {
        system().scheduler.start(Box::new(keep_free));
    }
}

fn keep_free() {
    let vm = &system().vm;
    let total = vm.frames().total();
    loop {
        if vm.frames().free_count() < total / LOW {
            vm.keep_free(total / HIGH);
        }
        system().kernel.sleep_until(Metal::now() + PERIOD);
    }
}
