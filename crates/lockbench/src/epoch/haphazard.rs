//! The hazard pointers of `haphazard`, for comparison.

use super::{Counted, Done, all_ran, done};
use crate::subject::Subject;
use haphazard::{AtomicPtr, Domain, HazardPointer};
use machine::CpuRange;
use std::hint::black_box;

/// Protect an object by the thread's hazard pointer, and let it go.
pub struct Protect(AtomicPtr<u64>);

impl Subject for Protect {
    const EXCLUSIVE: bool = false;
    type Own<'a> = HazardPointer<'static>;

    fn new(_: CpuRange) -> Self {
        Protect(AtomicPtr::from(Box::new(1)))
    }

    fn own(&self) -> HazardPointer<'static> {
        HazardPointer::new()
    }

    #[inline(always)]
    fn operate(&self, own: &mut HazardPointer<'static>, section: impl FnOnce()) {
        let object = self.0.safe_load(own).expect("the object");
        black_box(*object);
        section();
        own.reset_protection();
    }

    fn verify(&self, _: u64) -> Result<(), String> {
        Ok(()) // the library does not tell of other threads
    }
}

impl Drop for Protect {
    fn drop(&mut self) {
        // SAFETY: no thread is left that could read it.
        drop(unsafe { Box::from_raw(self.0.load_ptr()) });
    }
}

/// An object allocated, and freed once no hazard pointer names it.
pub struct Retire(Done);

impl Subject for Retire {
    const EXCLUSIVE: bool = false;
    type Own<'a> = ();

    fn new(_: CpuRange) -> Self {
        Retire(done())
    }

    fn own(&self) {}

    #[inline(always)]
    fn operate(&self, (): &mut (), section: impl FnOnce()) {
        section();
        let object = Counted::boxed(self.0);
        // SAFETY: the object is new, given away, and linked nowhere.
        unsafe { Domain::global().retire_ptr::<Counted, Box<Counted>>(Box::into_raw(object)) };
    }

    fn verify(&self, operations: u64) -> Result<(), String> {
        Domain::global().eager_reclaim();
        all_ran(self.0, operations)
    }
}
