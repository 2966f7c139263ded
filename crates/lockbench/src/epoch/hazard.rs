//! `sync`'s hazard pointers.

use super::{Done, Linked, all_ran, done};
use crate::subject::Subject;
use hosted::Hosted;
use machine::CpuRange;
use std::hint::black_box;
use sync::hazard::{Domain, Shared};

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
        // SAFETY: the object is new, given away, linked nowhere, and of words that any CPU may use.
        unsafe { self.domain.retire(Linked::node(self.done), Linked::free) };
    }

    fn verify(&self, operations: u64) -> Result<(), String> {
        let held: usize = (0..self.cpus).map(|cpu| self.domain.pending(cpu)).sum();
        all_ran(self.done, operations - held as u64)
    }
}
