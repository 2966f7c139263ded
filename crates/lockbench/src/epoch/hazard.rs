//! `sync`'s hazard pointers.

use super::{Done, all_ran, done};
use crate::subject::Subject;
use hosted::Hosted;
use machine::CpuRange;
use std::hint::black_box;
use std::sync::atomic::Ordering::Relaxed;
use sync::hazard::{Deferred, Domain, Shared};

/// Enter and exit.
pub struct Enter(Domain<Hosted>);

impl Subject for Enter {
    const EXCLUSIVE: bool = false;
    type Own<'a> = ();

    fn new(cpus: CpuRange) -> Self {
        Enter(Domain::new(cpus))
    }

    fn own(&self) {}

    #[inline(always)]
    fn operate(&self, (): &mut (), section: impl FnOnce()) {
        let guard = self.0.enter();
        section();
        drop(guard);
    }

    fn verify(&self, _: u64) -> Result<(), String> {
        Ok(()) // nothing was written
    }
}

/// Enter, protect an object, let it go, exit.
pub struct Protect {
    shared: Shared<Hosted, u64>,
    domain: Domain<Hosted>,
}

impl Subject for Protect {
    const EXCLUSIVE: bool = false;
    type Own<'a> = ();

    fn new(cpus: CpuRange) -> Self {
        let domain = Domain::new(cpus);
        let shared = Shared::new(&domain, Some(1));
        Protect { shared, domain }
    }

    fn own(&self) {}

    #[inline(always)]
    fn operate(&self, (): &mut (), section: impl FnOnce()) {
        let guard = self.domain.enter();
        let object = guard.protect(&self.shared).expect("the object");
        black_box(*object);
        section();
    }

    fn verify(&self, _: u64) -> Result<(), String> {
        Ok(()) // a slot that is not returned ends the run at the ninth operation
    }
}

/// An object allocated, and freed once no slot names it.
pub struct Retire {
    domain: Domain<Hosted>,
    cpus: usize,
    done: Done,
}

/// The object.
#[repr(C)]
struct Object {
    /// The first field, so that a pointer to it also points to the whole.
    node: Deferred<Hosted>,
    done: Done,
}

/// Frees the object and counts.
///
/// # Safety
/// `node` is that of an [`Object`] made as a box, which this call may free.
unsafe fn free(node: *mut Deferred<Hosted>) {
    // SAFETY: the caller's promise.
    let object = unsafe { Box::from_raw(node.cast::<Object>()) };
    object.done.fetch_add(1, Relaxed);
}

impl Subject for Retire {
    const EXCLUSIVE: bool = false;
    type Own<'a> = ();

    fn new(cpus: CpuRange) -> Self {
        Retire {
            domain: Domain::new(cpus),
            cpus: cpus.len(),
            done: done(),
        }
    }

    fn own(&self) {}

    #[inline(always)]
    fn operate(&self, (): &mut (), section: impl FnOnce()) {
        section();
        let object = Box::new(Object {
            node: Deferred::new(),
            done: self.done,
        });
        // SAFETY: the object is new, given away, linked nowhere, and of words that any CPU may use.
        unsafe { self.domain.retire(Box::into_raw(object).cast(), free) };
    }

    fn verify(&self, operations: u64) -> Result<(), String> {
        let held: usize = (0..self.cpus).map(|cpu| self.domain.pending(cpu)).sum();
        all_ran(self.done, operations - held as u64)
    }
}
