//! Reclamation: sections, waiting, callbacks, protected objects; `sync`'s epochs and hazard
//! pointers, and the nearest equivalents of other libraries.

pub mod crossbeam;
pub mod haphazard;
pub mod hazard;
pub mod ours;
pub mod seize;

use hosted::Hosted;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use sync::Padded;
use sync::epoch::Deferred;

/// Counts callbacks that have run. Never freed (128 bytes a subject): a library may run
/// callbacks as late as it likes.
type Done = &'static Padded<AtomicU64>;

fn done() -> Done {
    Box::leak(Box::default())
}

/// Fails unless each callback has run.
fn all_ran(done: Done, operations: u64) -> Result<(), String> {
    let ran = done.load(Relaxed);
    if ran == operations {
        Ok(())
    } else {
        Err(format!("{ran} of {operations} callbacks ran"))
    }
}

/// An object that `sync` frees, by its node, and that counts then.
#[repr(C)]
struct Linked {
    /// The first field, so that a pointer to it also points to the whole.
    node: Deferred<Hosted>,
    done: Done,
}

impl Linked {
    /// The node of a new object.
    fn node(done: Done) -> *mut Deferred<Hosted> {
        let node = Deferred::new();
        Box::into_raw(Box::new(Linked { node, done })).cast()
    }

    /// Frees the object and counts.
    ///
    /// # Safety
    /// `node` comes from [`Linked::node`], and this call may free it.
    unsafe fn free(node: *mut Deferred<Hosted>) {
        // SAFETY: the caller's promise.
        let object = unsafe { Box::from_raw(node.cast::<Linked>()) };
        object.done.fetch_add(1, Relaxed);
    }
}

/// An object that other libraries free, and that counts then; as large as [`Linked`].
struct Counted {
    done: Done,
    _rest: [u64; 2],
}

impl Counted {
    fn boxed(done: Done) -> Box<Self> {
        let _rest = [0; 2];
        Box::new(Counted { done, _rest })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.done.fetch_add(1, Relaxed);
    }
}
