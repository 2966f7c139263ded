//! The reference by which spaces keep the VM alive: the children of one space share a count, so
//! that not all spaces of the machine write the same one.
//!
//! # Protocol
//! A [`Keep`] is a counted reference to a holder of the VM. A space that was not forked has a
//! holder of its own; all children of one space share a second one, which their parent makes
//! with its first fork and refers to as long as it lives. So a fork and an exit write a line
//! of their family, and the VM's own count changes with the first fork of a space only.
//! A holder is freed with its last reference, whichever that is. It refers to the VM alone, never
//! to another holder, so generations of processes leave no chain behind.

use super::Vm;
use crate::error::Error;
use crate::heap::try_box;
use crate::system::System;
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::Deref;
use core::ptr::{self, NonNull};
use machine::{Atomic, AtomicInt, Atomics, Ordering};
use sync::Padded;

/// A reference to a holder of the VM.
pub(crate) struct Keep<S: System>(NonNull<Padded<Holder<S>>>);

struct Holder<S: System> {
    vm: Arc<Vm<S>>,
    references: <S::Machine as Atomics>::AtomicUsize,
}

// SAFETY: a counted reference to a holder, which CPUs share.
unsafe impl<S: System> Send for Keep<S> {}
// SAFETY: the VM may be used by all CPUs at once, and the count is atomic.
unsafe impl<S: System> Sync for Keep<S> {}

impl<S: System> Keep<S> {
    /// A holder of its own.
    pub(crate) fn new(vm: &Arc<Vm<S>>) -> Result<Self, Error> {
        let holder = try_box(Padded(Holder {
            vm: vm.clone(),
            references: <S::Machine as Atomics>::AtomicUsize::new(1),
        }))?;
        S::Machine::label_value(&*holder, "Vm.keep");
        Ok(Keep(NonNull::from(Box::leak(holder))))
    }

    fn holder(&self) -> &Holder<S> {
        // SAFETY: a counted reference keeps it.
        unsafe { &self.0.as_ref().0 }
    }
}

impl<S: System> Deref for Keep<S> {
    type Target = Arc<Vm<S>>;

    #[inline]
    fn deref(&self) -> &Arc<Vm<S>> {
        &self.holder().vm
    }
}

impl<S: System> Clone for Keep<S> {
    fn clone(&self) -> Self {
        // Relaxed: this one keeps it.
        let old = self.holder().references.fetch_add(1, Ordering::Relaxed);
        debug_assert!(old > 0, "a holder that goes gets a reference");
        Keep(self.0)
    }
}

impl<S: System> Drop for Keep<S> {
    fn drop(&mut self) {
        // AcqRel: the task that drops the last one sees what others did before they dropped theirs.
        let old = self.holder().references.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(old > 0, "a holder goes twice");
        if old == 1 {
            // SAFETY: from `new`; no reference is left.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}

/// The reference by which a space's children keep the VM alive, made with its first fork.
pub(crate) struct Children<S: System> {
    /// A [`Keep`] as a pointer, or null. Written once.
    keep: <S::Machine as Atomics>::AtomicPtr,
    of: PhantomData<Keep<S>>,
}

impl<S: System> Children<S> {
    pub(crate) fn none() -> Self {
        Children {
            keep: <S::Machine as Atomics>::AtomicPtr::new(ptr::null_mut()),
            of: PhantomData,
        }
    }

    /// A reference for one more child.
    pub(crate) fn keep(&self, vm: &Arc<Vm<S>>) -> Result<Keep<S>, Error> {
        // Acquire: pairs with the release in `make`.
        if let Some(first) = NonNull::new(self.keep.load(Ordering::Acquire)) {
            // The reference that `self` counts; it stays.
            let first = ManuallyDrop::new(Keep::<S>(first.cast()));
            return Ok(Keep::clone(&first));
        }
        self.make(vm)
    }

    #[cold]
    fn make(&self, vm: &Arc<Vm<S>>) -> Result<Keep<S>, Error> {
        let made = Keep::new(vm)?;
        let stays = ManuallyDrop::new(made.clone());
        // Release: a task that finds the holder finds it whole. Acquire: another task that forks
        // this space may have been faster, and its holder is used below.
        let won = self.keep.compare_exchange(
            ptr::null_mut(),
            stays.0.as_ptr().cast(),
            Ordering::Release,
            Ordering::Acquire,
        );
        match won {
            Ok(_) => Ok(made),
            Err(first) => {
                drop(ManuallyDrop::into_inner(stays));
                let first = NonNull::new(first.cast()).expect("not null, as the exchange failed");
                // The reference that `self` counts; it stays.
                Ok(Keep::clone(&ManuallyDrop::new(Keep::<S>(first))))
            }
        }
    }
}

impl<S: System> Drop for Children<S> {
    fn drop(&mut self) {
        // Relaxed: no other task has the space any more.
        if let Some(keep) = NonNull::new(self.keep.load(Ordering::Relaxed)) {
            drop(Keep::<S>(keep.cast()));
        }
    }
}
