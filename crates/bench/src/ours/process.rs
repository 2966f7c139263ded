//! Processes of scalevm's VM.

use machine::{Locals, PAGE_SIZE, Platform, Tasks};
use std::marker::PhantomData;
use std::ptr::from_ref;
use std::sync::Arc;
use sync::EMBEDDER;
use vm::{Pmap, Space, System, Vm};
use workloads::{Call, Error};

/// Pages of program and stack that every process has touched: without them a process
/// that only maps and unmaps would have nothing resident, and a removal nothing to do.
const IMAGE_PAGES: usize = 16;

/// A process: an address space with a program in it.
pub struct Process<S: System> {
    pub(super) space: Space<S>,
    /// The address of its program.
    image: usize,
}

impl<S: System> Process<S> {
    /// A process whose image has been touched, by this CPU.
    pub fn new(vm: &Arc<Vm<S>>) -> Result<Self, Error> {
        let space = Space::new(vm).map_err(failed(Call::Map))?;
        let image = load(&space)?;
        Ok(Process { space, image })
    }

    /// A copy of it, which does not run yet.
    pub(super) fn copy(&self) -> Result<Self, Error> {
        let space = self.space.fork().map_err(failed(Call::Fork))?;
        let image = self.image;
        Ok(Process { space, image })
    }

    /// A child, in which this CPU runs from now on until it [enters](Process::enter) another. It
    /// has written to its stack, as any does.
    pub(super) fn fork(&self) -> Result<Self, Error> {
        let child = self.copy()?;
        child.enter();
        let born = child
            .space
            .store(child.image, 1)
            .map_err(failed(Call::Fork));
        born.map(|()| child).inspect_err(|_| self.enter())
    }

    /// Lets the calling task run in this process from now on, on whatever CPU it is.
    pub(super) fn enter(&self) {
        enter(&self.space);
    }

    /// Returns true if the calling task runs in it.
    pub(super) fn is_entered(&self) -> bool {
        S::Machine::with_locals(|locals| locals.words[EMBEDDER].get() == name(&self.space))
    }

    /// The process with another program, in which this CPU runs.
    pub(super) fn exec(self) -> Result<Self, Error> {
        self.space.exec();
        let image = load(&self.space)?;
        Ok(Process { image, ..self })
    }
}

/// Runs `act` in `space`: the calling task runs there, on whatever CPU it is, and in no space
/// afterwards.
pub fn inside<S: System, R>(space: &Space<S>, act: impl FnOnce() -> R) -> R {
    struct Leaves<M: Platform>(PhantomData<M>);
    impl<M: Platform> Drop for Leaves<M> {
        fn drop(&mut self) {
            leave::<M>();
        }
    }
    let _leaves = Leaves::<S::Machine>(PhantomData);
    enter(space);
    act()
}

/// Lets the calling task run in `space` from now on, on whatever CPU it is.
fn enter<S: System>(space: &Space<S>) {
    S::Machine::with_locals(|locals| {
        locals.words[EMBEDDER].set(name(space));
        locals.at_switch.set(Some(back::<S>));
    });
    space.activate();
}

/// The address of the space's pmap, which stays.
fn name<S: System>(space: &Space<S>) -> usize {
    from_ref::<Pmap<S>>(space.pmap()) as usize
}

/// Lets the calling task run in no process from now on: the one that it was in ends.
pub(super) fn leave<M: Platform>() {
    M::with_locals(|locals| locals.words[EMBEDDER].set(0));
}

/// The task of these words is back on a CPU.
fn back<S: System>(locals: &Locals) {
    let pmap = locals.words[EMBEDDER].get() as *const Pmap<S>;
    // SAFETY: a task that is in a process keeps it, and leaves it before it gives it up.
    if let Some(pmap) = unsafe { pmap.as_ref() } {
        pmap.activate();
    }
}

/// Lets the calling task run in `space` and start a program there; returns the program's address.
fn load<S: System>(space: &Space<S>) -> Result<usize, Error> {
    enter(space);
    let image = space.map(IMAGE_PAGES * PAGE_SIZE, vm::Prot::READ_WRITE);
    let image = image.map_err(failed(Call::Map))?;
    for page in 0..IMAGE_PAGES {
        let stored = space.store(image + page * PAGE_SIZE, 1);
        stored.map_err(failed(Call::Touch))?;
    }
    Ok(image)
}

/// Names the call that failed.
pub(super) fn failed(call: Call) -> impl Fn(vm::Error) -> Error {
    move |error| Error::Failed(call, error.errno())
}
