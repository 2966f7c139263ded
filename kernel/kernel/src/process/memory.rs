//! The memory of a process: a space of its own, or one that it shares (`vfork`, `CLONE_VM`).

use super::{Process, Thread};
use crate::errno::Errno;
use crate::system::{Space, system};
use alloc::sync::Arc;
use core::mem::replace;
use core::ptr;
use core::sync::atomic::Ordering;
use ipc::Kernel;

impl Process {
    /// The process's memory; [`Errno::SRCH`] once it has ended.
    pub fn space(&self) -> Result<Arc<Space>, Errno> {
        self.space.lock().clone().ok_or(Errno::SRCH)
    }

    /// Lets the parent that waits in `vfork` continue, since this process no longer uses its
    /// memory.
    pub(super) fn give_memory_back(&self) {
        if self.borrows.swap(false, Ordering::SeqCst) {
            system().kernel.wake(self.borrow_key(), usize::MAX);
        }
    }

    fn borrow_key(&self) -> *const () {
        ptr::from_ref(&self.borrows).cast()
    }
}

impl Thread {
    /// Waits until a child no longer uses the thread's memory.
    pub fn lend_memory(&self, child: &Process) {
        let borrows = || child.borrows.load(Ordering::SeqCst);
        self.wait_patiently(child.borrow_key(), borrows);
    }

    /// Gives the process, whose only thread this is, an empty space.
    pub(super) fn empty_space(&mut self) -> Result<(), Errno> {
        let process = self.process.clone();
        let mut place = process.space.lock();
        // Only the process and this thread refer to it, and no other thread can get a reference
        // now.
        if Arc::strong_count(&self.space) == 2 {
            // SAFETY: so no other thread uses it.
            unsafe { self.space.exec_alone() };
            return Ok(());
        }
        let new = Arc::new(Space::new(&system().vm)?);
        process.limits.lock().set(&new)?;
        let kept = Arc::as_ptr(&new).cast_mut();
        self.shared.space.store(kept, Ordering::Relaxed);
        new.activate();
        let before = (place.replace(new.clone()), replace(&mut self.space, new));
        drop(place);
        drop(before);
        Ok(())
    }
}
