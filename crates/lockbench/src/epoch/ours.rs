//! `sync`'s epochs.

use super::{Done, Linked, all_ran, done};
use crate::subject::Subject;
use hosted::Hosted;
use machine::CpuRange;
use sync::epoch::{Domain, Section};

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
        closed(&self.0)
    }
}

/// Enter and exit inside another section.
pub struct Nested(Domain<Hosted>);

impl Subject for Nested {
    const EXCLUSIVE: bool = false;
    type Own<'a> = Section<'a, Hosted>;

    fn new(cpus: CpuRange) -> Self {
        Nested(Domain::new(cpus))
    }

    fn own(&self) -> Self::Own<'_> {
        self.0.enter()
    }

    #[inline(always)]
    fn operate(&self, _: &mut Self::Own<'_>, section: impl FnOnce()) {
        let guard = self.0.enter();
        section();
        drop(guard);
    }

    fn verify(&self, _: u64) -> Result<(), String> {
        closed(&self.0)
    }
}

/// Fails if a section is open.
fn closed(domain: &Domain<Hosted>) -> Result<(), String> {
    if domain.has_passed(&domain.snapshot()) {
        Ok(())
    } else {
        Err("a section is still open when all have left".into())
    }
}

/// Waiting until all sections have ended.
pub struct Wait(Domain<Hosted>);

impl Subject for Wait {
    const EXCLUSIVE: bool = false;
    type Own<'a> = ();

    fn new(cpus: CpuRange) -> Self {
        Wait(Domain::new(cpus))
    }

    fn own(&self) {}

    #[inline(always)]
    fn operate(&self, (): &mut (), section: impl FnOnce()) {
        self.0.wait();
        section();
    }

    fn verify(&self, _: u64) -> Result<(), String> {
        closed(&self.0)
    }
}

/// An object allocated, and freed by a callback.
pub struct Call {
    domain: Domain<Hosted>,
    done: Done,
}

impl Subject for Call {
    const EXCLUSIVE: bool = false;
    type Own<'a> = ();

    fn new(cpus: CpuRange) -> Self {
        Call {
            domain: Domain::new(cpus),
            done: done(),
        }
    }

    fn own(&self) {}

    #[inline(always)]
    fn operate(&self, (): &mut (), section: impl FnOnce()) {
        section();
        // SAFETY: the object is new, given away, and of words that any CPU may use.
        unsafe { self.domain.call(Linked::node(self.done), Linked::free) };
    }

    fn verify(&self, operations: u64) -> Result<(), String> {
        self.domain.barrier();
        all_ran(self.done, operations)
    }
}
