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
    /// Its memory; [`Errno::SRCH`] once it has ended.
    pub fn space(&self) -> Result<Arc<Space>, Errno> {
        self.space.lock().clone().ok_or(Errno::SRCH)
    }

    /// The parent that waits in `vfork` may go on: its memory is not used any more.
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
    /// Waits until a child does not use the thread's memory any more.
    pub fn lend_memory(&self, child: &Process) {
        let borrows = || child.borrows.load(Ordering::SeqCst);
        self.wait_patiently(child.borrow_key(), borrows);
    }

    /// Gives the process, whose only thread this is, a space with nothing mapped.
    pub(super) fn empty_space(&mut self) -> Result<(), Errno> {
        let process = self.process.clone();
        let mut place = process.space.lock();
        // The process and this thread have it, and no other thread can get it now.
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
