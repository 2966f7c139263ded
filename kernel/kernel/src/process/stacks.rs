//! Memory for kernel stacks: every thread needs one before it begins.

use crate::errno::Errno;
use crate::heap;
use crate::system::system;
use core::sync::atomic::{AtomicUsize, Ordering};
use machine::Frame;
use metal::Metal;
use vm::Content;

/// A place for a thread that is started later.
pub type NewTask = sched::NewTask<Metal, crate::system::Policy>;

/// Stacks, which are reused and never freed, take at most this part of memory.
const PART: usize = 4;
/// No stack is made while less than this part of memory is free.
const RESERVE: usize = 64;

/// The number of frames in stacks. It guards no other memory: relaxed.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// A zeroed frame for a stack, if stacks may have one more.
pub fn frame() -> Option<Frame> {
    let vm = &system().vm;
    let frames = vm.frames();
    let total = frames.total();
    if TAKEN.load(Ordering::Relaxed) >= total / PART || frames.free_count() < total / RESERVE {
        return None;
    }
    // SAFETY: the machine is the VM's.
    let frame = unsafe { frames.allocate(vm.machine(), Content::Zeroed) }?;
    TAKEN.fetch_add(1, Ordering::Relaxed);
    Some(frame)
}

/// A place for a new thread; [`Errno::AGAIN`] if memory is short.
pub fn reserve() -> Result<NewTask, Errno> {
    if heap::is_short() {
        return Err(Errno::AGAIN);
    }
    let reserve = || system().scheduler.reserve();
    let again = || {
        let vm = &system().vm;
        vm.keep_free(vm.frames().total() / RESERVE);
        reserve()
    };
    reserve().or_else(again).ok_or(Errno::AGAIN)
}
